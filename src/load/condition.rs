//! `p99<10ms`: what is asked of a window, as people write it.

use std::fmt;
use std::str::FromStr;

use super::{LatencySummary, Window};

/// A figure of a window compared with a limit.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    figure: Figure,
    compares: Compares,
    limit: f64,
    /// As typed.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Figure {
    P50,
    P90,
    P99,
    P99_9,
    Mean,
    Max,
    Rate,
    Errors,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compares {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const FIGURES: [(&str, Figure); 8] = [
    ("p50", Figure::P50),
    ("p90", Figure::P90),
    ("p99", Figure::P99),
    ("p99.9", Figure::P99_9),
    ("mean", Figure::Mean),
    ("max", Figure::Max),
    ("rate", Figure::Rate),
    ("errors", Figure::Errors),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "write it like 'p99>20ms', 'rate<1000' or 'errors>0'";
        let at = text.find(['<', '>']).ok_or_else(|| format!("it compares nothing: {EXAMPLE}"))?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (_, figure) = *FIGURES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let known: Vec<&str> = FIGURES.iter().map(|(known, _)| *known).collect();
            format!("{name:?} is no figure: use one of {}", known.join(", "))
        })?;
        let (compares, value) = match (rest.as_bytes()[0], rest[1..].strip_prefix('=')) {
            (b'<', Some(value)) => (Compares::LessOrEqual, value),
            (b'<', None) => (Compares::Less, &rest[1..]),
            (_, Some(value)) => (Compares::GreaterOrEqual, value),
            (_, None) => (Compares::Greater, &rest[1..]),
        };
        let limit = if figure.is_time() { nanoseconds(value.trim()) } else { value.trim().parse().ok() };
        let limit = limit.filter(|limit: &f64| limit.is_finite() && *limit >= 0.0).ok_or_else(|| {
            let unit = if figure.is_time() { "time with a unit: us, ms or s" } else { "number" };
            format!("{:?} is no limit for {name}: give a {unit}", value.trim())
        })?;
        Ok(Self { figure, compares, limit, text: text.trim().to_owned() })
    }
}

impl Condition {
    /// Whether it is true of a window; `None` where the window does not support the figure.
    pub fn holds(&self, window: &Window) -> Option<bool> {
        let found = self.figure.of(window)?;
        Some(match self.compares {
            Compares::Less => found < self.limit,
            Compares::LessOrEqual => found <= self.limit,
            Compares::Greater => found > self.limit,
            Compares::GreaterOrEqual => found >= self.limit,
        })
    }

    /// Reads one that keeps a latency below a limit, as an objective does: `p99<10ms`.
    ///
    /// # Errors
    /// Says what is wrong with the text.
    pub fn objective(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "write a latency below a limit, such as 'p99<10ms'";
        let condition = text.parse::<Self>().map_err(|_| format!("it cannot be read: {EXAMPLE}"))?;
        let is_one = condition.figure.is_time() && matches!(condition.compares, Compares::Less | Compares::LessOrEqual);
        if is_one && condition.limit > 0.0 { Ok(condition) } else { Err(format!("it is no objective: {EXAMPLE}")) }
    }

    /// What the window says of the figure: `p99 is 12.31 ms`.
    pub fn found(&self, window: &Window) -> String {
        let (name, _) = FIGURES.iter().find(|(_, figure)| *figure == self.figure).expect("every figure has a name");
        match self.figure.of(window) {
            None if window.latency_censored > 0 => format!("{name} is not known: some requests had no reply"),
            None => format!("{name} is not known: the window has too few requests"),
            Some(found) if self.figure.is_time() => format!("{name} is {:.3} ms", found / 1e6),
            Some(found) => format!("{name} is {found:.1}"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Figure {
    fn is_time(self) -> bool {
        !matches!(self, Self::Rate | Self::Errors)
    }

    fn of(self, window: &Window) -> Option<f64> {
        let LatencySummary { mean, p50, p90, p99, p99_9, max, .. } = window.latency_ns;
        let is_whole = window.latency_censored == 0;
        let time = match self {
            Self::Rate => return Some(window.requests_per_s),
            Self::Errors => return Some(window.errors.values().sum::<u64>() as f64),
            Self::P50 => p50,
            Self::P90 => p90,
            Self::P99 => p99,
            Self::P99_9 => p99_9,
            // A request without a reply took longer than any that had one.
            Self::Mean => mean.filter(|_| is_whole),
            Self::Max => max.filter(|_| is_whole),
        };
        time.map(|ns| ns as f64)
    }
}

/// `20ms` → 20,000,000.
fn nanoseconds(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let scale = match &text[digits.len()..] {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    digits.trim_end().parse::<f64>().ok().map(|value| value * scale)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::tally::{End, Tally};

    /// A thousand replies in a second, of 1 to 1000 µs.
    fn window() -> Window {
        let mut tally = Tally::new(Duration::from_secs(1));
        (1..=1_000).for_each(|us| tally.completed(0, us * 1_000));
        tally.end = End { window_ns: 1_000_000_000, ..End::default() };
        Window::merge(1, None, vec![tally])
    }

    #[test]
    fn figures_are_compared_as_written() {
        for (text, holds) in [
            ("p50<501us", Some(true)),
            ("p50>501us", Some(false)),
            ("P99 <= 1 ms", Some(true)),
            ("p99>=0.9ms", Some(true)),
            ("max>1s", Some(false)),
            ("mean<0.6ms", Some(true)),
            ("rate>=1000", Some(true)),
            ("errors>0", Some(false)),
            ("p99.9<1s", None),
        ] {
            assert_eq!(text.parse::<Condition>().unwrap().holds(&window()), holds, "{text}");
        }
    }

    #[test]
    fn a_request_without_a_reply_may_have_been_the_longest() {
        let mut window = window();
        window.latency_censored = 1;
        for text in ["max>1s", "max<1s", "mean<1s"] {
            assert_eq!(text.parse::<Condition>().unwrap().holds(&window), None, "{text}");
        }
        assert_eq!("p99<1s".parse::<Condition>().unwrap().holds(&window), Some(true));
    }

    #[test]
    fn what_cannot_be_read_is_explained() {
        for (text, says) in [
            ("p99", "compares nothing"),
            ("p98<1ms", "one of p50"),
            ("p99<10", "unit"),
            ("p99<10h", "unit"),
            ("rate<1ms", "number"),
            ("errors>-1", "number"),
            ("mean<infs", "unit"),
        ] {
            let error = text.parse::<Condition>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn an_objective_bounds_a_latency() {
        assert!(Condition::objective("p99<10ms").is_ok() && Condition::objective("mean<=1s").is_ok());
        for wrong in ["p99>10ms", "rate<10", "errors<1", "p99<0ms", "foo"] {
            let error = Condition::objective(wrong).unwrap_err();
            assert!(error.contains("'p99<10ms'"), "{error}");
        }
    }

    #[test]
    fn the_figure_found_is_told() {
        let found = |text: &str| text.parse::<Condition>().unwrap().found(&window());
        assert_eq!(found("p99<1s"), "p99 is 0.990 ms");
        assert_eq!(found("rate<1"), "rate is 1000.0");
        assert!(found("p99.9<1s").contains("too few"));
    }
}
