//! Every JavaScript server passes the gate, and differs at the strict level in what its README names and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use headroom::contract::BENCH_SECRET;
use headroom::interrupt::Interrupt;
use headroom::parity::{self, Level, Options, Outcome, Verdict};
use headroom::peer::{Catalogue, Launch, Running, Spec};
use headroom::postgres::Database;

use super::servers::PATIENCE;
use crate::support::{self, TestDatabase};

/// For one reply, on a host where other tests run.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Begins the reason of a difference that depends on who is faster.
const AT_TIMES: &str = "at times:";

fn gated(spec: &Spec) -> Verdict {
    let database = TestDatabase::new();
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch {
        bench: &support::bench(),
        state: folder.path(),
        database_url: database.url(),
        jwt_secret: BENCH_SECRET,
        log: folder.path().join("log"),
        ready_timeout: PATIENCE,
    };
    let running = Running::start(spec, &launch, &Interrupt::default()).unwrap();
    let mut known = Database::connect(database.url()).unwrap();
    let options = Options {
        address: running.address(),
        host: running.address().to_string(),
        jwt_secret: BENCH_SECRET.to_owned(),
        database: Some(&mut known),
        allow_writes: false,
        timeout: TIMEOUT,
    };
    let verdict = parity::run(options, &Interrupt::default()).unwrap();
    running.stop().unwrap();
    verdict
}

/// Ids in the rows of a README's table, and whether each may also pass.
fn named(readme: &Path) -> Vec<(String, bool)> {
    let text = fs::read_to_string(readme).unwrap_or_else(|error| panic!("{}: {error}", readme.display()));
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        let (ids, why) = row.split_once(" | ").unwrap();
        assert!(why.len() > 10, "{}: no reason for {ids}", readme.display());
        ids.split(", ").map(|id| (id.trim_matches('`').to_owned(), why.starts_with(AT_TIMES))).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_peer_passes_core_and_its_readme_names_its_strict_differences() {
    support::pinned_postgres();
    let bench = support::bench();
    let catalogue = Catalogue::load(&bench).unwrap();
    let mut wrong = Vec::new();
    for spec in catalogue.servers.iter().filter(|spec| !spec.native) {
        let verdict = gated(spec);
        let failed = |level| move |outcome: &&Outcome| outcome.level == level && outcome.failure.is_some();
        let core: Vec<&str> = verdict.outcomes.iter().filter(failed(Level::Core)).map(|o| o.id.as_str()).collect();
        assert!(verdict.passed(), "{}: {core:?}", spec.name);
        let differs: BTreeSet<String> =
            verdict.outcomes.iter().filter(failed(Level::Strict)).map(|outcome| outcome.id.clone()).collect();
        let readme = bench.join(spec.readme.as_ref().unwrap());
        let named = named(&readme);
        let unnamed: Vec<&String> = differs.iter().filter(|id| named.iter().all(|(known, _)| known != *id)).collect();
        let gone: Vec<&String> =
            named.iter().filter(|(id, at_times)| !at_times && !differs.contains(id)).map(|(id, _)| id).collect();
        if !unnamed.is_empty() || !gone.is_empty() {
            wrong.push(format!("{}: differs in {unnamed:?} too, and no longer in {gone:?}", readme.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
