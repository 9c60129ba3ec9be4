//! How often verdict words err. Without arguments simulated; with a record's folder and two servers, on comparisons of ten
//! rounds drawn from that record.
//!
//! ```text
//! cargo run --release --example verdicts
//! cargo run --release --example verdicts -- results/DIR native native-again
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use fastrand::Rng;
use headroom::record::Record;
use headroom::stats::{Ratio, VERDICT_ROUNDS, Verdict};

/// Comparisons simulated for each line.
const SIMULATED: usize = 100_000;
/// Comparisons drawn from a record, in the seeded order everybody gets.
const DRAWN: usize = 1_000;
const SEED: u64 = 20_261_204;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => simulated(),
        [folder, first, second] => drawn(Path::new(folder), first, second),
        _ => anyhow::bail!("give nothing, or a record's folder and two servers of it"),
    }
}

/// What a round's log ratio may look like beside its mean. All have the same standard deviation.
struct Noise {
    name: &'static str,
    /// The log ratios of one comparison's rounds.
    rounds: fn(&mut Rng, f64) -> Vec<f64>,
}

const NOISES: &[Noise] = &[
    Noise { name: "normal", rounds: |random, spread| independent(random, |random| spread * normal(random)) },
    Noise {
        name: "uniform",
        rounds: |random, spread| independent(random, |random| spread * 12f64.sqrt() * (random.f64() - 0.5)),
    },
    Noise {
        name: "one round of ten disturbed threefold",
        rounds: |random, spread| {
            // 0.9·s² + 0.1·9·s² = spread².
            let quiet = spread / 1.8f64.sqrt();
            independent(random, |random| quiet * normal(random) * if random.f64() < 0.1 { 3.0 } else { 1.0 })
        },
    },
    Noise {
        name: "skewed (exponential)",
        rounds: |random, spread| independent(random, |random| spread * (-(1.0 - random.f64()).ln() - 1.0)),
    },
    Noise { name: "neighbours alike (correlation 0.3)", rounds: |random, spread| neighbours(random, spread, 0.3) },
    Noise {
        name: "neighbours opposed (correlation −0.3)", rounds: |random, spread| neighbours(random, spread, -0.3)
    },
];

fn independent(random: &mut Rng, mut draw: impl FnMut(&mut Rng) -> f64) -> Vec<f64> {
    (0..VERDICT_ROUNDS).map(|_| draw(random)).collect()
}

/// A stationary autoregressive series of order one.
fn neighbours(random: &mut Rng, spread: f64, correlation: f64) -> Vec<f64> {
    let fresh = (1.0 - correlation * correlation).sqrt();
    let mut last = normal(random);
    independent(random, |random| {
        let now = last;
        last = correlation * last + fresh * normal(random);
        spread * now
    })
}

/// Standard normal numbers (Box and Muller).
fn normal(random: &mut Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

fn simulated() -> anyhow::Result<()> {
    println!(
        "{SIMULATED} comparisons of {VERDICT_ROUNDS} rounds a line: share that is called different, or rightly behind\n"
    );
    println!("| a round's noise | spread | same server | 10 % fewer, called behind | 5 % fewer |");
    println!("|---|--:|--:|--:|--:|");
    let mut random = Rng::with_seed(SEED);
    for noise in NOISES {
        for spread in [0.03, 0.06, 0.1] {
            let mut share = |ratio: f64, wanted: fn(Verdict) -> bool| -> anyhow::Result<f64> {
                let mut count = 0;
                for _ in 0..SIMULATED {
                    let logs = (noise.rounds)(&mut random, spread);
                    let pairs: Vec<(f64, f64)> = logs.iter().map(|log| (ratio * log.exp(), 1.0)).collect();
                    count += usize::from(verdict(&pairs)?.is_some_and(wanted));
                }
                Ok(100.0 * count as f64 / SIMULATED as f64)
            };
            let same = share(1.0, |verdict| verdict != Verdict::NoDifference)?;
            let tenth = share(0.9, |verdict| verdict == Verdict::Behind)?;
            let twentieth = share(0.95, |verdict| verdict == Verdict::Behind)?;
            println!("| {} | {:.0} % | {same:.1} % | {tenth:.1} % | {twentieth:.1} % |", noise.name, spread * 100.0);
        }
    }
    Ok(())
}

fn verdict(pairs: &[(f64, f64)]) -> anyhow::Result<Option<Verdict>> {
    Ok(Ratio::of_pairs(pairs)?.and_then(|ratio| ratio.verdict))
}

/// Rates of the second server and the first, by route and round.
type Rounds = BTreeMap<String, BTreeMap<u32, (f64, f64)>>;

fn drawn(folder: &Path, first: &str, second: &str) -> anyhow::Result<()> {
    let rounds = rounds(&Record::read(folder)?, first, second)?;
    println!("{second} ÷ {first}: all rounds, then {DRAWN} comparisons of {VERDICT_ROUNDS} rounds drawn from them\n");
    println!("| route | rounds | ratio | spread of a round | ahead | no difference | behind |");
    println!("|---|--:|--:|--:|--:|--:|--:|");
    let mut random = Rng::with_seed(SEED);
    let mut alike = vec![true; DRAWN];
    for (route, rounds) in &rounds {
        let mut pairs: Vec<(f64, f64)> = rounds.values().copied().collect();
        ensure!(
            pairs.len() >= 2 * VERDICT_ROUNDS,
            "{route} has {} rounds in both: measure twenty or more",
            pairs.len()
        );
        let all = Ratio::of_pairs(&pairs)?.context("no pair")?;
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
        let variance = logs.iter().map(|log| (log - all.mean.ln()).powi(2)).sum::<f64>() / (logs.len() - 1) as f64;
        let mut words = BTreeMap::from([("ahead", 0), ("behind", 0), ("no difference", 0)]);
        for alike in &mut alike {
            random.shuffle(&mut pairs);
            let word = verdict(&pairs[..VERDICT_ROUNDS])?.context("ten rounds have a verdict")?;
            *words.entry(word.words()).or_insert(0) += 1;
            *alike &= word == Verdict::NoDifference;
        }
        let share = |word: &str| 100.0 * f64::from(words[word]) / DRAWN as f64;
        println!(
            "| {route} | {} | {:.3} | {:.1} % | {:.1} % | {:.1} % | {:.1} % |",
            logs.len(),
            all.mean,
            100.0 * variance.sqrt(),
            share("ahead"),
            share("no difference"),
            share("behind")
        );
    }
    let alike = alike.iter().filter(|alike| **alike).count();
    println!("\nno difference on every route: {:.1} % of the comparisons", 100.0 * alike as f64 / DRAWN as f64);
    Ok(())
}

fn rounds(record: &Record, first: &str, second: &str) -> anyhow::Result<Rounds> {
    let mut rounds = Rounds::new();
    for route in &record.run.settings.routes {
        for round in 1..=record.run.settings.rounds {
            let rate = |server: &str| {
                let windows = record.windows.iter().rev();
                let mut of = windows.filter(|w| w.valid && w.server == server && w.route == *route && w.round == round);
                of.next().and_then(|window| window.requests_per_s)
            };
            if let Some(pair) = rate(second).zip(rate(first)) {
                rounds.entry(route.clone()).or_default().insert(round, pair);
            }
        }
    }
    ensure!(!rounds.is_empty(), "no round of this record has valid windows of both {first} and {second}");
    Ok(rounds)
}
