//! Median, spread, paired ratios, intervals and verdict words. Pure: reads no clock, file or socket.
//!
//! One percentile rule for the few values a report condenses (one a round): the median of an even count is the mean of the
//! middle two. Latency percentiles come from the driver's histogram and are not recomputed here.
//!
//! Ratios of two servers are taken round by round, since what disturbs a host disturbs both rows of a round alike, and
//! averaged as logarithms, since a ratio and its inverse must tell the same story.

/// How often an interval holds the true ratio. The words of a report are read over seven routes at once: at 95 % three of
/// ten servers that are alike would be called different on some route (1 − 0.95⁷), at 99 % one of fifteen.
pub const CONFIDENCE: f64 = 0.99;

/// Verdict words need at least this many paired rounds. With three, "won all rounds and beyond the spread" calls a
/// difference where there is none on 5.6 % of routes.
pub const VERDICT_ROUNDS: usize = 10;

/// A value that no statistic can use.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Refused {
    /// Not a number, or infinite.
    #[error("{0} is not a finite number: record it as null")]
    NotFinite(f64),
    /// Zero or less, where a ratio needs a positive value.
    #[error("{0} is not above zero: a ratio needs two positive values")]
    NotPositive(f64),
}

/// Finite values in ascending order, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample(Vec<f64>);

impl Sample {
    /// `Ok(None)` where there is no value.
    ///
    /// # Errors
    /// Refuses NaN and infinities.
    pub fn new(values: &[f64]) -> Result<Option<Self>, Refused> {
        if let Some(&bad) = values.iter().find(|value| !value.is_finite()) {
            return Err(Refused::NotFinite(bad));
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Ok((!sorted.is_empty()).then_some(Self(sorted)))
    }

    /// How many values.
    #[expect(clippy::len_without_is_empty, reason = "a sample is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The middle value, or the mean of the middle two.
    pub fn median(&self) -> f64 {
        median_of_sorted(&self.0)
    }

    /// The smallest value.
    pub fn min(&self) -> f64 {
        self.0[0]
    }

    /// The largest value.
    pub fn max(&self) -> f64 {
        self.0[self.0.len() - 1]
    }
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) }
}

/// A range that holds the true ratio in 99 of 100 runs, if rounds are independent and their log ratios near normal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// What an interval says about the first of two servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies above 1.
    Ahead,
    /// The whole interval lies below 1.
    Behind,
    /// The interval contains 1.
    NoDifference,
}

impl Verdict {
    /// As reports print it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::NoDifference => "no difference",
        }
    }
}

/// The ratio of two servers over the rounds in which both have a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// Geometric mean of the per-round ratios.
    pub mean: f64,
    /// Smallest ratio of a round.
    pub min: f64,
    /// Largest ratio of a round.
    pub max: f64,
    /// Rounds in which both had a value.
    pub rounds: usize,
    /// Rounds in which the first was strictly larger.
    pub won: usize,
    /// Student's t interval on the mean log ratio; needs two rounds.
    pub interval: Option<Interval>,
    /// Only from [`VERDICT_ROUNDS`] on.
    pub verdict: Option<Verdict>,
}

impl Ratio {
    /// First ÷ second for each pair of one round; `Ok(None)` where there is no pair.
    ///
    /// # Errors
    /// Refuses NaN, infinities, zero and negative values.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Result<Option<Self>, Refused> {
        let mut logs = Vec::with_capacity(pairs.len());
        for &(first, second) in pairs {
            logs.push(positive(first)?.ln() - positive(second)?.ln());
        }
        let Some(sample) = Sample::new(&logs)? else { return Ok(None) };
        let mean_log = logs.iter().sum::<f64>() / logs.len() as f64;
        let interval = interval_of_logs(&logs, mean_log);
        Ok(Some(Self {
            mean: mean_log.exp(),
            min: sample.min().exp(),
            max: sample.max().exp(),
            rounds: logs.len(),
            won: pairs.iter().filter(|(first, second)| first > second).count(),
            interval,
            verdict: interval.filter(|_| logs.len() >= VERDICT_ROUNDS).map(verdict),
        }))
    }
}

fn positive(value: f64) -> Result<f64, Refused> {
    if !value.is_finite() {
        return Err(Refused::NotFinite(value));
    }
    if value > 0.0 { Ok(value) } else { Err(Refused::NotPositive(value)) }
}

/// exp(mean ± t·s/√n), with s the sample standard deviation of the log ratios and t of n − 1 degrees of freedom.
fn interval_of_logs(logs: &[f64], mean: f64) -> Option<Interval> {
    let n = logs.len();
    if n < 2 {
        return None;
    }
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let error = (squares / (n - 1) as f64).sqrt() / (n as f64).sqrt();
    let half = student_t(n - 1) * error;
    Some(Interval { low: (mean - half).exp(), high: (mean + half).exp() })
}

fn verdict(interval: Interval) -> Verdict {
    if interval.low > 1.0 {
        Verdict::Ahead
    } else if interval.high < 1.0 {
        Verdict::Behind
    } else {
        Verdict::NoDifference
    }
}

/// 99.5 % quantiles of Student's t for 1..=30 degrees of freedom (Abramowitz and Stegun, table 26.10).
const STUDENT_T: [f64; 30] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921,
    2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
];

/// Above the table the value of its last row is kept up to 40, and so on: always the wider interval.
fn student_t(degrees: usize) -> f64 {
    match degrees {
        1..=30 => STUDENT_T[degrees - 1],
        0..=39 => 2.750,
        40..=59 => 2.704,
        60..=119 => 2.660,
        _ => 2.617,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).unwrap().unwrap()
    }

    fn ratio(pairs: &[(f64, f64)]) -> Ratio {
        Ratio::of_pairs(pairs).unwrap().unwrap()
    }

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() < 1e-9 * want.abs().max(1.0), "got {got}, want {want}");
    }

    #[test]
    fn nothing_has_no_statistic() {
        assert_eq!(Sample::new(&[]), Ok(None));
        assert_eq!(Ratio::of_pairs(&[]), Ok(None));
    }

    #[test]
    fn one_value_is_its_own_median_without_spread() {
        let one = sample(&[7.0]);
        assert_eq!((one.len(), one.median(), one.min(), one.max()), (1, 7.0, 7.0, 7.0));
    }

    #[test]
    fn an_odd_count_has_a_middle_and_an_even_count_the_mean_of_two() {
        close(sample(&[9.0, 1.0, 4.0]).median(), 4.0);
        close(sample(&[9.0, 1.0, 4.0, 6.0]).median(), 5.0);
    }

    #[test]
    fn order_is_total_and_negative_values_count() {
        let mixed = sample(&[0.0, -3.0, -0.0, 5.0]);
        assert_eq!((mixed.min(), mixed.max(), mixed.median()), (-3.0, 5.0, 0.0));
    }

    #[test]
    fn nan_and_infinity_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(Sample::new(&[1.0, bad]), Err(Refused::NotFinite(_))), "{bad}");
            assert!(matches!(Ratio::of_pairs(&[(1.0, bad)]), Err(Refused::NotFinite(_))), "{bad}");
        }
        for bad in [0.0, -0.0, -1.0] {
            assert_eq!(Ratio::of_pairs(&[(2.0, bad)]), Err(Refused::NotPositive(bad)));
            assert_eq!(Ratio::of_pairs(&[(bad, 2.0)]), Err(Refused::NotPositive(bad)));
        }
    }

    #[test]
    fn a_single_round_has_a_ratio_and_nothing_more() {
        let one = ratio(&[(300.0, 100.0)]);
        close(one.mean, 3.0);
        assert_eq!((one.rounds, one.won, one.interval, one.verdict), (1, 1, None, None));
    }

    #[test]
    fn ratios_are_averaged_as_logarithms() {
        // 4 and 1/4 cancel: an arithmetic mean would say 2.125.
        let even = ratio(&[(4.0, 1.0), (1.0, 4.0)]);
        close(even.mean, 1.0);
        assert_eq!((even.min, even.max, even.won), (0.25, 4.0, 1));
    }

    #[test]
    fn a_ratio_and_its_inverse_tell_the_same_story() {
        let pairs = [(10.0, 4.0), (12.0, 5.0), (9.0, 4.5)];
        let turned = pairs.map(|(a, b)| (b, a));
        let (there, back) = (ratio(&pairs), ratio(&turned));
        close(there.mean, 1.0 / back.mean);
        close(there.interval.unwrap().low, 1.0 / back.interval.unwrap().high);
    }

    #[test]
    fn the_interval_has_its_known_answer() {
        // Logs 0.1, 0.2, 0.3: mean 0.2, s = 0.1, t(2) = 9.925, half = 9.925·0.1/√3.
        let pairs: Vec<(f64, f64)> = [0.1f64, 0.2, 0.3].iter().map(|log| (log.exp(), 1.0)).collect();
        let interval = ratio(&pairs).interval.unwrap();
        let half = 9.925 * 0.1 / 3f64.sqrt();
        close(interval.low, (0.2 - half).exp());
        close(interval.high, (0.2 + half).exp());
    }

    #[test]
    fn ties_win_no_round_and_are_no_difference() {
        let tied = ratio(&[(5.0, 5.0); 10]);
        assert_eq!((tied.mean, tied.won, tied.rounds), (1.0, 0, 10));
        assert_eq!(tied.interval, Some(Interval { low: 1.0, high: 1.0 }));
        assert_eq!(tied.verdict, Some(Verdict::NoDifference));
    }

    #[test]
    fn without_spread_the_interval_is_the_ratio() {
        let steady = ratio(&[(6.0, 3.0); 10]);
        close(steady.interval.unwrap().low, 2.0);
        close(steady.interval.unwrap().high, 2.0);
        assert_eq!(steady.verdict, Some(Verdict::Ahead));
        assert_eq!(ratio(&[(3.0, 6.0); 10]).verdict, Some(Verdict::Behind));
    }

    #[test]
    fn nine_rounds_give_no_verdict_and_ten_do() {
        assert_eq!(ratio(&[(6.0, 3.0); 9]).verdict, None);
        assert!(ratio(&[(6.0, 3.0); 9]).interval.is_some());
        assert!(ratio(&[(6.0, 3.0); 10]).verdict.is_some());
    }

    #[test]
    fn an_interval_around_one_is_no_difference() {
        let mut pairs = vec![(1.1, 1.0); 5];
        pairs.extend([(1.0, 1.09); 5]);
        assert_eq!(ratio(&pairs).verdict, Some(Verdict::NoDifference));
    }

    /// Standard normal numbers (Box and Muller).
    fn normal(random: &mut fastrand::Rng) -> f64 {
        (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
    }

    #[test]
    fn words_err_as_rarely_as_they_promise() {
        const COMPARISONS: usize = 20_000;
        let mut random = fastrand::Rng::with_seed(7);
        let mut words = |ratio: f64, spread: f64| {
            let mut pair = || (ratio * (spread * normal(&mut random)).exp(), 1.0);
            let verdicts = (0..COMPARISONS).map(|_| self::ratio(&std::array::from_fn::<_, 10, _>(|_| pair())).verdict);
            verdicts.filter(|verdict| *verdict != Some(Verdict::NoDifference)).count() as f64 / COMPARISONS as f64
        };
        // 1 − CONFIDENCE, with five standard errors of 20,000 draws.
        assert!((words(1.0, 0.05) - (1.0 - CONFIDENCE)).abs() < 0.0035);
        assert!(words(0.9, 0.05) > 0.99);
    }

    #[test]
    fn t_narrows_and_is_never_below_the_normal_quantile() {
        let mut last = f64::INFINITY;
        for degrees in 1..=500 {
            let t = student_t(degrees);
            assert!(t <= last && t > 2.576, "t({degrees}) = {t}");
            last = t;
        }
        assert_eq!((student_t(9), student_t(30), student_t(35)), (3.250, 2.750, 2.750));
    }
}
