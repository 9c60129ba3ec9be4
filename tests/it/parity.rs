//! The parity gate against servers that keep the contract, miss one line of it, or speak no HTTP at all.

#![expect(clippy::unwrap_used, reason = "a test ends where one of its parts cannot go on")]

mod edits;
mod mutants;
mod proxy;
mod upset;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headroom::contract::BENCH_SECRET;
use headroom::interrupt::Interrupt;
use headroom::parity::{self, Level, Options, Outcome, Scope, Verdict};
use headroom::postgres::Database;

use crate::served::Served;
use crate::support::TestDatabase;
use mutants::{Mutant, SEEN_FROM_OUTSIDE, SEEN_IN_DATABASE};
use proxy::Proxy;

/// Mutants looked at side by side; they share one server.
const AT_ONCE: usize = 4;

fn options(address: SocketAddr) -> Options<'static> {
    Options {
        address,
        host: address.to_string(),
        jwt_secret: BENCH_SECRET.to_owned(),
        database: None,
        allow_writes: false,
        timeout: Duration::from_secs(10),
    }
}

fn core(options: Options<'_>) -> Verdict {
    parity::run_scope(options, Scope { seed: 20_240, strict: false }, &Interrupt::default()).unwrap()
}

/// The reference server on a database of its own.
fn start(store: &str) -> (TestDatabase, Served) {
    let database = TestDatabase::new();
    let served = Served::start(database.url(), &["--workers", "1", "--store", store]);
    (database, served)
}

fn failed(verdict: &Verdict, level: Level) -> Vec<&str> {
    let failed = |outcome: &&Outcome| outcome.level == level && outcome.failure.is_some();
    verdict.outcomes.iter().filter(failed).map(|outcome| outcome.id.as_str()).collect()
}

/// Runs the gate against a mutant and says which of its checks let it through.
fn escaped(mutant: &Mutant, server: SocketAddr, database: Option<&mut Database>) -> Option<String> {
    let proxy = Proxy::start(server, mutant.handler);
    let verdict = core(Options { database, ..options(proxy.address) });
    let failed = failed(&verdict, Level::Core);
    let through: Vec<&str> = mutant.caught_by.iter().filter(|id| !failed.contains(id)).copied().collect();
    if through.is_empty() && !verdict.passed() {
        return None;
    }
    Some(format!("{}: let through by {through:?}, caught only by {failed:?}", mutant.what))
}

fn assert_met(store: &str) {
    let (database, served) = start(store);
    let mut known = Database::connect(database.url()).unwrap();
    let before = known.order_count().unwrap();
    let options = Options { database: Some(&mut known), ..options(served.address) };
    let verdict = parity::run(options, &Interrupt::default()).unwrap();
    let text = parity::text(&verdict, false);
    assert!(verdict.passed(), "{text}");
    assert!(failed(&verdict, Level::Strict).is_empty(), "{text}");
    assert_eq!(verdict.outcomes.iter().filter(|outcome| outcome.skipped.is_some()).count(), 0, "{text}");
    assert_eq!(known.order_count().unwrap() - before, verdict.orders_stored as u64);
}

#[test]
fn the_reference_server_keeps_the_contract() {
    assert_met("pipelined");
}

#[test]
fn the_reference_server_keeps_the_contract_over_sqlx() {
    assert_met("sqlx");
}

#[test]
fn a_proxy_that_changes_nothing_passes() {
    let (_database, served) = start("pipelined");
    let proxy = Proxy::start(served.address, |request, ask, _| ask(&request));
    let verdict = core(options(proxy.address));
    assert!(verdict.passed(), "{}", parity::text(&verdict, false));
    // What needs the database says so instead of passing unseen.
    let skipped =
        verdict.outcomes.iter().filter(|outcome| outcome.skipped.is_some()).map(|outcome| outcome.id.as_str());
    assert_eq!(
        skipped.collect::<Vec<_>>(),
        ["order-refused-yet-stored", "order-not-stored-as-answered", "order-count-differs"]
    );
}

#[test]
fn every_mutant_is_caught_by_a_check_that_says_why() {
    let (_database, served) = start("pipelined");
    let next = AtomicUsize::new(0);
    let work = || -> Vec<String> {
        let turns = std::iter::repeat_with(|| SEEN_FROM_OUTSIDE.get(next.fetch_add(1, Ordering::Relaxed)));
        turns.map_while(|mutant| mutant).filter_map(|mutant| escaped(mutant, served.address, None)).collect()
    };
    let escaped: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
}

#[test]
fn what_only_the_database_shows_is_caught_there() {
    let (database, served) = start("pipelined");
    let mut known = Database::connect(database.url()).unwrap();
    let mut caught = |mutant: &Mutant| escaped(mutant, served.address, Some(&mut known));
    let escaped: Vec<String> = SEEN_IN_DATABASE.iter().filter_map(&mut caught).collect();
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
}
