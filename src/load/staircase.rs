//! A staircase over rates: up after a window that kept, down after one that did not, in steps that shrink where it turns.

use std::f64::consts::LN_2;

/// The first step, as a difference of logarithms: double or half.
const COARSE: f64 = LN_2;
/// The finest.
const FINE: f64 = 0.02;
/// So many steps the same way are no accident: the next is twice as long.
const RUN: usize = 4;
/// Turns after which it is at the edge: [`COARSE`] halved to [`FINE`], and two more.
const TURNS_TO_EDGE: usize = 8;
/// So many visits within two fine steps of each other tell that the edge is sharp, and where it is.
const CERTAIN: usize = 16;

/// See the module.
#[derive(Debug)]
pub(super) struct Staircase {
    /// Logarithm of the rate to try next.
    at: f64,
    step: f64,
    last: Option<bool>,
    /// Steps since the last turn.
    run: usize,
    turns: usize,
    /// Every rate tried, as its logarithm.
    visits: Vec<f64>,
    /// How many of them were on the way to the edge.
    way: usize,
}

impl Staircase {
    pub(super) fn new(rate: f64) -> Self {
        Self { at: rate.ln(), step: COARSE, last: None, run: 0, turns: 0, visits: Vec::new(), way: 0 }
    }

    /// The rate to try next.
    pub(super) fn rate(&self) -> f64 {
        self.at.exp()
    }

    /// Takes note of whether that rate kept.
    pub(super) fn step(&mut self, kept: bool) {
        self.visits.push(self.at);
        if self.last.is_some_and(|last| last != kept) {
            self.step = (self.step / 2.0).max(FINE);
            self.turns += 1;
            self.run = 0;
        }
        self.run += 1;
        if self.run >= RUN {
            self.step = (self.step * 2.0).min(COARSE);
        }
        if self.turns < TURNS_TO_EDGE {
            self.way = self.visits.len();
        }
        self.last = Some(kept);
        self.at += if kept { self.step } else { -self.step };
    }

    /// Whether going on would tell nothing more.
    pub(super) fn is_certain(&self) -> bool {
        let there = self.there();
        there.len() >= CERTAIN && {
            let last = &there[there.len() - CERTAIN..];
            let (low, high) = last.iter().fold((f64::MAX, f64::MIN), |(low, high), &at| (low.min(at), high.max(at)));
            high - low < 2.5 * FINE
        }
    }

    /// The rate that half of the tries keep, and the lowest and highest of four results from a quarter of the visits each.
    pub(super) fn edge(&self) -> Option<(f64, [f64; 2])> {
        let there = self.there();
        let quarters = there.chunks(there.len().div_ceil(4).max(1)).map(mean);
        let range = quarters.fold([f64::MAX, f64::MIN], |[low, high], rate| [low.min(rate), high.max(rate)]);
        (!there.is_empty()).then(|| (mean(there), range))
    }

    /// The visits at the edge; where there are few, the later half of all.
    fn there(&self) -> &[f64] {
        &self.visits[self.way.min(self.visits.len() / 2)..]
    }
}

/// Geometric, of logarithms.
fn mean(logarithms: &[f64]) -> f64 {
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches an edge whose logarithm moves by a sum of twelve uniform draws, about normal, times `noise`.
    fn search(edge: f64, noise: f64, seed: u64) -> (Staircase, usize) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut staircase = Staircase::new(edge * 0.75);
        for tried in 0..100 {
            if staircase.is_certain() {
                return (staircase, tried);
            }
            let normal = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
            staircase.step(staircase.rate() < edge * (normal * noise).exp());
        }
        (staircase, 100)
    }

    #[test]
    fn a_sharp_edge_is_found_within_a_step_and_soon() {
        for edge in [0.3, 17.0, 64_000.0] {
            for start in [0.02, 0.75, 3.0] {
                let mut staircase = Staircase::new(edge * start);
                let mut tried = 0;
                while !staircase.is_certain() {
                    staircase.step(staircase.rate() < edge);
                    tried += 1;
                }
                let (found, [low, high]) = staircase.edge().expect("an edge");
                assert!((found / edge - 1.0).abs() < FINE && tried < 45, "{found} for {edge} after {tried}");
                assert!(
                    low < found * 1.001 && found < high * 1.001 && high / low < 1.0 + 2.0 * FINE,
                    "{low} to {high}"
                );
            }
        }
    }

    #[test]
    fn a_blurred_edge_is_found_without_bias_and_its_blur_is_told() {
        let found: Vec<f64> = (0..200).map(|seed| search(1000.0, 0.12, seed).0.edge().expect("an edge").0).collect();
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        let near = found.iter().filter(|found| (*found / 1000.0 - 1.0).abs() < 0.05).count();
        assert!((mean / 1000.0 - 1.0).abs() < 0.01 && near > 190, "{mean}, {near} of 200 within 5 %");
        let (staircase, tried) = search(1000.0, 0.12, 1);
        let [low, high] = staircase.edge().expect("an edge").1;
        assert!(tried == 100 && high / low > 1.01, "{low} to {high}");
    }

    #[test]
    fn nothing_tried_nothing_found() {
        assert!(Staircase::new(10.0).edge().is_none() && !Staircase::new(10.0).is_certain());
    }
}
