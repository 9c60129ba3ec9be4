//! `GET /cpu?n`.

use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::contract::HASHES;
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{Expect, any_refusal, ok, unprocessable};
use crate::parity::request::{Request, get};
use crate::parity::session::{Fault, Session};
use crate::parity::values::Values;

/// Queries that are 422: id, what it proves, query.
const REFUSED: &[(&str, &str, &str)] = &[
    ("cpu-accepts-missing-n", "n is required", ""),
    ("cpu-accepts-zero", "n is at least 1", "?n=0"),
    ("cpu-accepts-negative", "n has no sign", "?n=-1"),
    ("cpu-accepts-letters", "n is a number", "?n=abc"),
    ("cpu-accepts-fraction", "n is an integer", "?n=1.5"),
    ("cpu-accepts-more-than-a-million", "n is at most 1000000", "?n=1000001"),
];

/// Queries that are 422 where the pattern is written by hand.
const STRICTLY_REFUSED: &[(&str, &str, &str)] = &[
    ("cpu-accepts-leading-zero", "n has no leading zero", "?n=01"),
    ("cpu-accepts-plus", "n has no sign, however it is encoded", "?n=%2B1"),
    ("cpu-accepts-exponent", "n has no exponent", "?n=1e2"),
    ("cpu-accepts-hex", "n is decimal", "?n=0x10"),
    ("cpu-accepts-empty-n", "an empty n is no number", "?n="),
    ("cpu-accepts-n-twice", "a key given twice is 422", "?n=1&n=2"),
];

/// The largest n. Computed once with the same chain; too slow to compute in every run.
const MILLION: (u32, &str) = (1_000_000, "bd564b238dc8189429489f6dbbe33abc067884ab5b50ab52a44f9d8bfa3c643b");

/// 0.3 s on a fast host with SHA instructions; ten times that without them and with a driver on the same core.
const MILLION_WAIT: Duration = Duration::from_secs(15);

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let [one, two, hundred, load] = HASHES.map(|(n, hash)| hashed(n, hash));
    let seeded = hashed(values.rounds, &chain(values.rounds));
    let mut checks = vec![
        core("cpu-first-hash-differs", "n=1 is the hash of the word headroom").sends(one.0, one.1),
        core("cpu-second-hash-differs", "n=2 hashes the 64 characters of the first hash, not its 32 bytes")
            .sends(two.0, two.1),
        core("cpu-hundredth-hash-differs", "n=100 is the published hash").sends(hundred.0, hundred.1),
        core("cpu-any-hash-differs", "any n is hashed, not only the published ones").sends(seeded.0, seeded.1),
        core("cpu-load-hash-differs", "n=15000, which the load sends, is the published hash").sends(load.0, load.1),
        core("cpu-forty-digits-not-refused", "forty digits are refused")
            .sends(get(format!("/cpu?n={}", "9".repeat(40))), any_refusal()),
        strict("cpu-refuses-a-million", "n may be 1000000").runs(a_million),
        strict("cpu-unknown-key-refused", "an unknown key of the query is ignored")
            .sends(get("/cpu?x=9&n=1"), ok(body(1, HASHES[0].1))),
    ];
    let by_query = |query: &str| get(format!("/cpu{query}"));
    checks.extend(REFUSED.iter().map(|&(id, proves, query)| core(id, proves).sends(by_query(query), unprocessable())));
    checks.extend(
        STRICTLY_REFUSED.iter().map(|&(id, proves, query)| strict(id, proves).sends(by_query(query), unprocessable())),
    );
    checks
}

/// The one request that may take seconds, and is given them.
fn a_million(session: &mut Session<'_>) -> Result<(), Fault> {
    let (request, expect) = hashed(MILLION.0, MILLION.1);
    let usual = session.timeout;
    session.timeout = usual.max(MILLION_WAIT);
    let result = session.exchange(&request, &expect);
    session.timeout = usual;
    result.map(|_| ())
}

fn hashed(n: u32, hash: &str) -> (Request, Expect) {
    (get(format!("/cpu?n={n}")), ok(body(n, hash)))
}

fn body(n: u32, hash: &str) -> String {
    format!(r#"{{"n":{n},"hash":"{hash}"}}"#)
}

/// `h = "headroom"`, then `n` times the lower-case hex of SHA-256 of the text.
fn chain(n: u32) -> String {
    (0..n).fold("headroom".to_owned(), |text, _| {
        let digest = Sha256::digest(text.as_bytes());
        digest
            .iter()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .map(|nibble| char::from_digit(nibble.into(), 16).expect("a nibble"))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_gives_the_published_hashes() {
        for (n, hash) in HASHES {
            assert_eq!(chain(n), hash, "n={n}");
        }
    }
}
