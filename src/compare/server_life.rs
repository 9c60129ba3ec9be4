//! One life of a server: start, gate, idle memory, what it is asked for, stop, and whether Postgres saw it all.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::accounting::{connections_reason, statements_reason};
use super::facts;
use crate::contract::{BENCH_SECRET, Route};
use crate::host;
use crate::interrupt::Interrupt;
use crate::load;
use crate::parity;
use crate::peer::{Launch, Running, Spec};
use crate::postgres::Database;
use crate::record::{Failure, Gate, Life, Limits, SCHEMA, Stage, Void, Writer};
use crate::setup::Environment;

/// A cold start of the slowest peer takes two seconds on a busy host; one that takes this long will not come.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// For one reply at the gate, which sends one request at a time.
const GATE_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that runs, and what is counted of it.
#[derive(Debug)]
pub(super) struct ServerLife {
    pub(super) number: u32,
    pub(super) running: Running,
    /// Has had its first warm-up.
    pub(super) warm: bool,
    pub(super) postgres_connections: Option<u32>,
    /// Why it is gone.
    pub(super) died: Option<String>,
    server: String,
    round: u32,
    started_at: Timestamp,
    ready: Duration,
    idle_rss_bytes: Option<u64>,
    transactions_before: Option<u64>,
    database_requests_ok: u64,
    routes: BTreeSet<Route>,
}

/// Where and as what a server is started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) environment: &'a Environment,
    pub(super) spec: &'a Spec,
    pub(super) round: u32,
    pub(super) number: u32,
}

impl ServerLife {
    /// Starts a server; `Ok(Err(row))` where it does not come up.
    pub(super) fn start(
        start: Start<'_>,
        writer: &Writer,
        database: &mut Database,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Result<Self, Box<Life>>> {
        let Start { environment, spec, round, number } = start;
        // Somebody's open session would keep this from being counted; then it is unknown, and the record says null.
        let transactions_before = database.transactions().ok();
        let (started_at, clock) = (Timestamp::now(), Instant::now());
        let launch = Launch {
            bench: &environment.bench,
            state: &environment.home,
            database_url: &environment.database_url,
            jwt_secret: BENCH_SECRET,
            log: writer.log_path(&spec.name, number)?,
            ready_timeout: READY_TIMEOUT,
        };
        match Running::start(spec, &launch, interrupt) {
            Ok(running) => Ok(Ok(Self {
                number,
                idle_rss_bytes: host::tree_usage(running.pid()).ok().map(|usage| usage.rss_bytes),
                running,
                warm: false,
                postgres_connections: None,
                died: None,
                server: spec.name.clone(),
                round,
                started_at,
                ready: clock.elapsed(),
                transactions_before,
                database_requests_ok: 0,
                routes: BTreeSet::new(),
            })),
            Err(error) => {
                // A signal that reaches the server too is no failure of the server's.
                interrupt.check()?;
                let why = format!("{error:#}");
                Ok(Err(Box::new(never_ready(&start, started_at, why))))
            }
        }
    }

    /// Every check of the contract. A server that breaks the gate itself has not passed it.
    pub(super) fn gate(&mut self, database: &mut Database, interrupt: &Interrupt) -> anyhow::Result<Gate> {
        let address = self.running.address();
        let options = parity::Options {
            address,
            host: address.to_string(),
            jwt_secret: BENCH_SECRET.to_owned(),
            database: Some(database),
            allow_writes: true,
            timeout: GATE_TIMEOUT,
        };
        match parity::run(options, interrupt) {
            Ok(verdict) => Ok(facts::gate(&verdict)),
            Err(error) => {
                interrupt.check()?;
                Ok(facts::gate_error(&error))
            }
        }
    }

    /// Whether it is gone, remembered.
    pub(super) fn death(&mut self) -> Option<String> {
        if self.died.is_none() {
            self.died = self.running.death();
        }
        self.died.clone()
    }

    /// Counts what must have executed a statement, warm-ups and drained replies included.
    pub(super) fn count(&mut self, route: Route, seen: &load::Window) {
        self.routes.insert(route);
        if route.uses_database() {
            self.database_requests_ok += seen.requests_ok + seen.drained;
        }
    }

    /// Stops it, waits until Postgres has published what it did, and judges the whole life.
    pub(super) fn end(mut self, gate: Option<&Gate>, limits: &Limits, database: &mut Database) -> Life {
        let died = self.death().map(|why| Failure { stage: Stage::Load, why });
        let refused =
            gate.filter(|gate| !gate.passed).map(|gate| Failure { stage: Stage::Gate, why: gate_words(gate) });
        let stopped = self.running.stop();
        let failed_stop = stopped.err().map(|error| Failure { stage: Stage::Load, why: format!("{error:#}") });
        let after = database.transactions().ok();
        let transactions = after.zip(self.transactions_before).and_then(|(after, before)| after.checked_sub(before));
        let names = |wanted: fn(&Route) -> bool| {
            self.routes.iter().filter(|route| wanted(route)).map(|route| route.name().to_owned()).collect()
        };
        let mut voids = Vec::new();
        if let Some(reason) = statements_reason(self.database_requests_ok, transactions) {
            voids.push(Void { routes: names(|route| route.uses_database()), reason });
        }
        if let Some(reason) = connections_reason(self.postgres_connections, limits) {
            voids.push(Void { routes: names(|_| true), reason });
        }
        Life {
            schema: SCHEMA,
            life: self.number,
            server: self.server,
            round: self.round,
            started_at: self.started_at,
            ready_ns: u64::try_from(self.ready.as_nanos()).ok(),
            idle_rss_bytes: self.idle_rss_bytes,
            database_requests_ok: self.database_requests_ok,
            transactions,
            postgres_connections: self.postgres_connections,
            voids,
            failure: refused.or(died).or(failed_stop),
        }
    }
}

/// The row of a life that never began.
fn never_ready(start: &Start<'_>, started_at: Timestamp, why: String) -> Life {
    Life {
        schema: SCHEMA,
        life: start.number,
        server: start.spec.name.clone(),
        round: start.round,
        started_at,
        ready_ns: None,
        idle_rss_bytes: None,
        database_requests_ok: 0,
        transactions: None,
        postgres_connections: None,
        voids: Vec::new(),
        failure: Some(Failure { stage: Stage::Start, why }),
    }
}

fn gate_words(gate: &Gate) -> String {
    match (&gate.error, gate.core_failures.first()) {
        (Some(error), _) => format!("the gate could not run: {error}"),
        (None, Some(first)) => format!("{} core checks differ, the first is {}", gate.core_failures.len(), first.id),
        (None, None) => "no core check ran".to_owned(),
    }
}
