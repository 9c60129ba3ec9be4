//! The checks as a list: what each proves, what it sends and what must come back.

use super::Level;
use super::check::{Check, Steps};
use super::checks;
use super::values::Values;

/// A check without its outcome.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    /// Stable, names the failure.
    pub id: String,
    /// Core or strict.
    pub level: Level,
    /// What it proves, one sentence.
    pub proves: String,
    /// What it sends one after the other; empty where it is code (many connections, pieces of requests).
    pub exchanges: Vec<ListedExchange>,
}

/// One request and what must come back.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ListedExchange {
    /// Its bytes, as text; the host is `HOST`.
    pub request: String,
    /// `200 application/json {"status":"ok"}`.
    pub expected: String,
}

/// All checks, with the values of this seed and tokens signed with this secret.
pub fn list(seed: u64, jwt_secret: &str) -> Vec<Listed> {
    let mut checks = checks::all(&Values::from_seed(seed), jwt_secret);
    checks.sort_by_key(|check| check.level == Level::Strict);
    checks.iter().map(listed).collect()
}

fn listed(check: &Check) -> Listed {
    let exchanges = match &check.steps {
        Steps::Script(_) => Vec::new(),
        Steps::Exchanges(exchanges) => exchanges
            .iter()
            .map(|(request, expect)| ListedExchange {
                request: String::from_utf8_lossy(&request.encode("HOST")).into_owned(),
                expected: expect.wanted(),
            })
            .collect(),
    };
    Listed { id: check.id.to_owned(), level: check.level, proves: check.proves.to_owned(), exchanges }
}
