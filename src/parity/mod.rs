//! The parity gate: the contract against a running server.
//!
//! A server that misses one core line is not measured; the strict ones are reported. The checks are tables in
//! `checks`, one file a route; the rest of this module sends them and compares. Bytes go over sockets of the
//! gate's own, framed by hand, so that nothing is normalised on the way.
//!
//! What does not live here: how a server is started, and what happens to one that failed.

mod check;
mod checks;
mod client;
mod expect;
mod framing;
mod junit;
mod list;
mod request;
mod run;
#[cfg(test)]
mod sample;
mod session;
mod show;
mod telltale;
mod text;
mod values;

use std::net::SocketAddr;
use std::time::Duration;

use crate::postgres::Database;

pub use junit::junit;
pub use list::{Listed, ListedExchange, list, list_text};
pub use run::{Scope, ensure_named, is_named, run, run_only, run_scope};
pub use text::text;

/// What to check and how far to go.
#[derive(Debug)]
pub struct Options<'a> {
    /// The server's literal address.
    pub address: SocketAddr,
    /// Value of the `host` header.
    pub host: String,
    /// Signs the tokens; the server under test must use the same.
    pub jwt_secret: String,
    /// The database behind the server, when it is known: orders are read back and counted.
    pub database: Option<&'a mut Database>,
    /// Orders may be posted without proof by reads that the data is the contract's.
    pub allow_writes: bool,
    /// For one reply.
    pub timeout: Duration,
}

/// Core gates, strict is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A server that misses one is not measured.
    Core,
    /// Reported, never a gate.
    Strict,
}

impl Level {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Strict => "strict",
        }
    }
}

/// One check's outcome.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// `user-answers-int4-overflow`: stable, names the failure.
    pub id: String,
    /// Core or strict.
    pub level: Level,
    /// What it proves, one sentence.
    pub proves: String,
    /// `None` = passed or skipped; else what differed and what was sent, one line.
    pub failure: Option<String>,
    /// The request it failed at as it was sent, in lines; long ones are cut.
    #[serde(default)]
    pub request: Option<String>,
    /// What came back, likewise.
    #[serde(default)]
    pub reply: Option<String>,
    /// Why it does not apply to this run (orders are read back only where the database is known).
    pub skipped: Option<String>,
}

/// All outcomes, in the order they were met: core first, then strict.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// Brings the values of this run back.
    pub seed: u64,
    /// Core checks that were not asked for: with any, this is no answer of the gate.
    #[serde(default)]
    pub left_out: usize,
    /// Orders the server says it stored for the gate; they are still there.
    pub orders_stored: usize,
    /// One each check.
    pub outcomes: Vec<Outcome>,
}

/// Checks of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Count {
    /// As the contract says.
    pub passed: usize,
    /// Not as the contract says, or not run.
    pub failed: usize,
    /// Not applicable to this run.
    pub skipped: usize,
}

impl Verdict {
    /// Every core check that applies passed. A verdict without any has not passed.
    pub fn passed(&self) -> bool {
        let core = self.count(Level::Core);
        core.failed == 0 && core.passed > 0
    }

    /// Every check that was asked for and applies passed, of whatever level. A verdict without any has not.
    pub fn clean(&self) -> bool {
        let (core, strict) = (self.count(Level::Core), self.count(Level::Strict));
        core.failed + strict.failed == 0 && core.passed + strict.passed > 0
    }

    /// Passed, failed and skipped checks of a level.
    pub fn count(&self, level: Level) -> Count {
        let mut count = Count::default();
        for outcome in self.outcomes.iter().filter(|outcome| outcome.level == level) {
            match (&outcome.failure, &outcome.skipped) {
                (Some(_), _) => count.failed += 1,
                (None, Some(_)) => count.skipped += 1,
                (None, None) => count.passed += 1,
            }
        }
        count
    }
}

/// A verdict as `headroom parity --json` writes it: the counts and the answer first, then every outcome.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report<'a> {
    /// Version of this format.
    pub format: u32,
    /// Every core check that applies passed; `None` where some were not asked for.
    pub passed: Option<bool>,
    /// Core checks.
    pub core: Count,
    /// Strict ones.
    pub strict: Count,
    /// The verdict's own fields beside these.
    #[serde(flatten)]
    pub verdict: &'a Verdict,
}

impl<'a> From<&'a Verdict> for Report<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        let (core, strict) = (verdict.count(Level::Core), verdict.count(Level::Strict));
        let passed = (verdict.left_out == 0).then(|| verdict.passed());
        Self { format: 1, passed, core, strict, verdict }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(level: Level, failure: Option<&str>, skipped: Option<&str>) -> Outcome {
        let (failure, skipped) = (failure.map(str::to_owned), skipped.map(str::to_owned));
        Outcome {
            id: "a-b".to_owned(),
            level,
            proves: "a is b".to_owned(),
            failure,
            request: None,
            reply: None,
            skipped,
        }
    }

    fn verdict(outcomes: Vec<Outcome>) -> Verdict {
        Verdict { seed: u64::MAX, left_out: 0, orders_stored: 1, outcomes }
    }

    #[test]
    fn a_strict_failure_is_not_clean_and_passes_all_the_same() {
        let failed = Some("expected status 404, got 200");
        let differs = verdict(vec![outcome(Level::Core, None, None), outcome(Level::Strict, failed, None)]);
        assert!(differs.passed() && !differs.clean());
        let skipped = verdict(vec![outcome(Level::Strict, None, None), outcome(Level::Core, None, Some("why"))]);
        assert!(skipped.clean() && !skipped.passed());
        assert!(!verdict(Vec::new()).clean());
    }

    #[test]
    fn core_failures_gate_and_nothing_else_does() {
        let good = outcome(Level::Core, None, None);
        let skipped = outcome(Level::Core, None, Some("no database"));
        assert!(verdict(vec![good.clone(), skipped.clone(), outcome(Level::Strict, Some("x"), None)]).passed());
        assert!(!verdict(vec![good, outcome(Level::Core, Some("x"), None)]).passed());
        // Nothing was shown to be right.
        assert!(!verdict(vec![skipped, outcome(Level::Strict, None, None)]).passed());
        assert!(!verdict(Vec::new()).passed());
    }

    #[test]
    fn a_verdict_survives_json() {
        let verdict = verdict(vec![outcome(Level::Strict, Some("x"), None), outcome(Level::Core, None, Some("y"))]);
        let json = serde_json::to_string(&verdict).unwrap();
        assert!(json.contains(r#""level":"strict""#), "{json}");
        assert_eq!(serde_json::from_str::<Verdict>(&json).unwrap(), verdict);
    }
}
