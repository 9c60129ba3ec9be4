//! The parity gate against servers that keep the contract, miss one line of it, or speak no HTTP at all.

mod mutants;
mod proxy;
mod upset;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use headroom::contract::BENCH_SECRET;
use headroom::interrupt::Interrupt;
use headroom::parity::{self, Level, Options, Scope, Verdict};
use headroom::postgres::Database;

use mutants::{Mutant, SEEN_FROM_OUTSIDE};
use proxy::Proxy;

/// Mutants looked at together: they share one server.
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

fn server() -> SocketAddr {
    std::env::var("PARITY_DEV").unwrap().parse().unwrap()
}

fn core(options: Options<'_>) -> Verdict {
    parity::run_scope(options, Scope { seed: 20_240, strict: false }, &Interrupt::default()).unwrap()
}

fn failed(verdict: &Verdict, level: Level) -> Vec<&str> {
    let failed = |outcome: &&parity::Outcome| outcome.level == level && outcome.failure.is_some();
    verdict.outcomes.iter().filter(failed).map(|outcome| outcome.id.as_str()).collect()
}

/// Runs every mutant and says which of its checks let it through.
fn escaped(mutant: &Mutant, server: SocketAddr, database: Option<&mut Database>) -> Option<String> {
    let proxy = Proxy::start(server, mutant.handler);
    let verdict = core(Options { database, ..options(proxy.address) });
    let failed = failed(&verdict, Level::Core);
    let through: Vec<&str> = mutant.caught_by.iter().filter(|id| !failed.contains(id)).copied().collect();
    if through.is_empty() && !verdict.passed() {
        return None;
    }
    Some(format!("{}: not caught by {through:?}, only by {failed:?}", mutant.what))
}

#[test]
fn dev_identity() {
    let proxy = Proxy::start(server(), |request, ask, _| ask(&request));
    let verdict = core(options(proxy.address));
    assert!(verdict.passed(), "{}", parity::text(&verdict, false));
}

#[test]
fn dev_mutants() {
    let next = AtomicUsize::new(0);
    let server = server();
    let escaped: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let turns = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
                    turns
                        .map_while(|turn| SEEN_FROM_OUTSIDE.get(turn))
                        .filter_map(|mutant| escaped(mutant, server, None))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
}
