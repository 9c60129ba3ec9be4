//! The checks as a list: what each proves, what it sends and what must come back.

use std::fmt::Write as _;

use super::Level;
use super::check::{Check, Steps};
use super::checks;
use super::show;
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

/// A line each check, and with `verbose` what it sends and what must come back.
pub fn list_text(checks: &[Listed], verbose: bool) -> String {
    let mut text = String::new();
    for check in checks {
        let _ = writeln!(text, "{:<6} {}: {}", check.level.name(), check.id, check.proves);
        for exchange in check.exchanges.iter().filter(|_| verbose) {
            for line in exchange.request.trim_end().lines() {
                let _ = writeln!(text, "{}", format!("         > {}", show::line(line.as_bytes())).trim_end());
            }
            let _ = writeln!(text, "         < {}", exchange.expected);
        }
    }
    let of = |level| checks.iter().filter(|check| check.level == level).count();
    let _ = writeln!(text, "{} core checks gate, {} strict ones are reported", of(Level::Core), of(Level::Strict));
    text
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_says_what_it_sends_and_wants() {
        let checks = list(7, "secret");
        let one = checks.iter().find(|check| check.id == "health-body-differs").unwrap();
        assert_eq!(one.exchanges[0].request, "GET /health HTTP/1.1\r\nhost: HOST\r\n\r\n");
        assert_eq!(one.exchanges[0].expected, r#"200 application/json {"status":"ok"}"#);
        let text = list_text(std::slice::from_ref(one), true);
        assert!(text.contains("         > GET /health HTTP/1.1\n         > host: HOST\n         < 200 "), "{text}");
        assert_eq!(list_text(std::slice::from_ref(one), false).lines().count(), 2);
    }

    #[test]
    fn ids_are_unique_and_core_comes_first() {
        let checks = list(7, "secret");
        let ids: std::collections::BTreeSet<&str> = checks.iter().map(|check| check.id.as_str()).collect();
        assert_eq!(ids.len(), checks.len());
        assert!(checks.is_sorted_by_key(|check| check.level == Level::Strict));
        assert_eq!(checks, list(7, "secret"));
        assert_ne!(checks, list(8, "secret"));
    }
}
