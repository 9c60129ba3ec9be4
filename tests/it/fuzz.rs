//! Random streams of bytes against a server behind each of the two HTTP fronts.
//!
//! A stream is made from a seed (`generate`, `mutate`, `dictionary`), sent in one write and in pieces (`front`), what comes
//! back is read strictly (`replies`) and held against the rules every stream must keep (`oracles`).
//!
//! `HEADROOM_FUZZ_SECONDS=600` runs for so long from a random seed, which is printed; `HEADROOM_FUZZ_SEED` sets the first
//! one. The seeds that follow each other are those of the cases, so a failing case is replayed by its own seed.

mod dictionary;
mod front;
mod generate;
mod mutate;
mod oracles;
mod replies;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use front::Front;
use generate::Case;
use replies::Shape;

use crate::support::TestDatabase;

/// Cases of the usual run: a few seconds.
const USUAL_CASES: u64 = 200;
/// Cases between two looks at the servers.
const BATCH: u64 = 50;
/// How much a server's memory may grow: buffers of one connection are bounded by a head and a body of 64 KiB, and no more
/// than a few connections are open at once.
const GROWTH_BYTES: u64 = 64 * 1_024 * 1_024;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a whole number"))
}

/// A server behind each front, over one database.
struct Fronts {
    own: Front,
    axum: Front,
    _database: TestDatabase,
}

impl Fronts {
    fn start() -> Self {
        let database = TestDatabase::new();
        Self {
            own: Front::start(database.url(), Shape::Own),
            axum: Front::start(database.url(), Shape::Hyper),
            _database: database,
        }
    }

    /// Panics with all that is needed to see the fault again.
    fn assert_lawful(&self, case: &Case, name: &str) {
        let Err(fault) = oracles::check(&self.own, &self.axum, case) else { return };
        let mut text = format!("{name}: {fault}\n");
        let shrunk = oracles::shrink(&self.own, &self.axum, case, &fault);
        for (what, case) in [("whole", case), ("shrunk", &shrunk)] {
            let _ = writeln!(text, "{what}: b\"{}\"\n cut at {:?}", case.bytes.escape_ascii(), case.cuts);
        }
        panic!("{text}");
    }
}

#[test]
fn random_streams_get_lawful_replies() {
    let seconds = setting("HEADROOM_FUZZ_SECONDS");
    let first = setting("HEADROOM_FUZZ_SEED").unwrap_or_else(|| if seconds.is_some() { rand::random() } else { 1 });
    println!("HEADROOM_FUZZ_SEED={first}");
    let fronts = Fronts::start();
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut first_bytes = None;
    let mut cases = 0;
    while until.map_or(cases < USUAL_CASES, |until| Instant::now() < until) {
        let seed = first.wrapping_add(cases);
        fronts.assert_lawful(&Case::from_seed(seed), &format!("HEADROOM_FUZZ_SEED={seed}"));
        cases += 1;
        if cases % BATCH == 0 {
            for front in [&fronts.own, &fronts.axum] {
                front.assert_well();
            }
            let bytes = [&fronts.own, &fronts.axum].map(Front::resident_bytes);
            let before = *first_bytes.get_or_insert(bytes);
            for (now, before) in bytes.into_iter().zip(before) {
                assert!(now < before + GROWTH_BYTES, "memory grew from {before} to {now} bytes in {cases} cases");
            }
        }
    }
    println!("{cases} cases, resident bytes {:?} then {:?}", first_bytes, fronts.own.resident_bytes());
}

/// What random streams have found. Each is sent whole and byte by byte.
#[test]
fn streams_that_once_went_wrong() {
    let fronts = Fronts::start();
    for (name, bytes, statuses) in FOUND {
        let case = Case { bytes: bytes.to_vec(), cuts: (1..bytes.len()).collect(), expected: Some(statuses.to_vec()) };
        fronts.assert_lawful(&case, name);
    }
}

const FOUND: &[(&str, &[u8], &[u16])] = &[
    ("half a version was no version", b"GET / HTTP/2.0\r\nhost: t\r\n\r\n", &[505]),
    ("a second target was a version", b"GET GET /health HTTP/1.1\r\nhost: t\r\n\r\n", &[400]),
    ("a second space was a version", b"GET /health  HTTP/1.1\r\nhost: t\r\n\r\n", &[400]),
    ("a bad head without a line end was looked at only in one piece", b"G@T /echo", &[400]),
    ("half a version may become a whole one", b"GET / HT;", &[]),
    ("a host hid a fragment", b"GET http://t#x/health HTTP/1.1\r\nhost: t\r\n\r\n", &[400]),
    (
        "a request hid in the trailers of another",
        b"POST /echo HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n0\r\nGET /me HTTP/1.1\r\nhost: t\r\n\r\n",
        &[400],
    ),
    (
        "bytes after the last request reset the connection",
        b"GET /users/1 HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\nGET /users/2 HTTP/1.1\r\nhost: t\r\n\r\n",
        &[200],
    ),
    (
        "bytes after a request framed twice reset the connection",
        b"GET /health HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n",
        &[200],
    ),
];

/// RFC 9110, section 9.3.2: whatever is wrong with it.
#[test]
fn refused_heads_have_no_body() {
    let fronts = Fronts::start();
    for (rest, status) in [
        ("/health HTTP/1.1\r\n\r\n", 400),
        ("/health HTTP/3.0\r\n\r\n", 505),
        ("/health HTTP/1.1\r\nhost: t\r\nexpect: x\r\n\r\n", 417),
        ("/health HTTP/1.1\r\nhost: t\r\ntransfer-encoding: x\r\n\r\n", 501),
        ("/health HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\nx", 400),
        ("/health HTTP/1.1\r\nhost: t\r\ncontent-length: 70000\r\n\r\nHEAD", 413),
        ("/nowhere HTTP/1.1\r\nhost: t\r\nexpect: 100-continue\r\ncontent-length: 7\r\n\r\n", 404),
        ("\u{1}", 400),
    ] {
        let stream = format!("HEAD {rest}").into_bytes();
        let pieces: Vec<&[u8]> = stream.chunks(1).collect();
        for pieces in [&[&stream[..]], &pieces[..]] {
            let (bytes, _) = fronts.own.exchange(pieces, 0, Duration::ZERO).expect("an end");
            let replies = replies::read(&bytes, Shape::Own).expect("replies");
            assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [status], "{rest}");
            assert_eq!(replies[0].body, "", "{rest}");
        }
    }
}
