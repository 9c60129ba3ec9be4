//! One window of one cell: quiet the database, warm up, pause, quiet it again, measure, account.

use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;

use super::accounting::{Sample, Spent, connections_reason, per_request};
use super::plan::Cell;
use super::server_life::ServerLife;
use super::{Timing, watch};
use crate::contract::{self, BENCH_SECRET, Route, Variety};
use crate::host;
use crate::interrupt::Interrupt;
use crate::load::{self, Engine};
use crate::postgres::Database;
use crate::record::{CpuPerRequest, Latency, Reason, SCHEMA, Settings, Window, finite};

/// No peer needs this long for a request that is not `cpu`; one that hangs shows within the window's drain.
const TIMEOUT: Duration = Duration::from_secs(10);
/// `cpu` serves some 50 requests a second in JavaScript: 100 connections wait two seconds each, unfairly served ones many
/// times that. Nothing may be cut off there, since a cut request is begun again.
const CPU_TIMEOUT: Duration = Duration::from_mins(1);
/// The slowest service of `cpu` seen (with room), for connection counts at which [`CPU_TIMEOUT`] would not do.
const SLOWEST_CPU_REQUEST: Duration = Duration::from_millis(100);

/// What stays the same for all cells.
pub(super) struct Bench<'a> {
    pub(super) settings: &'a Settings,
    pub(super) timing: Timing,
    pub(super) postmaster: Option<i32>,
    pub(super) interrupt: &'a Interrupt,
}

/// Measures a cell once. A window that went wrong is a row with reasons; an error ends the run.
pub(super) fn measure(
    bench: &Bench<'_>,
    cell: &Cell,
    attempt: u32,
    life: &mut ServerLife,
    database: &mut Database,
) -> anyhow::Result<Window> {
    quiet(database, cell.route)?;
    let mut engine = match Engine::start(config(bench.settings, cell, life), bench.interrupt) {
        Ok(engine) => engine,
        Err(error) => return broken(bench, cell, attempt, life, "not_connected", &error),
    };
    let warmup = if life.warm { bench.timing.warmup } else { bench.timing.first_warmup };
    if !warmup.is_zero() {
        match engine.run(warmup, bench.interrupt) {
            Ok(warmed) => life.count(cell.route, &warmed),
            Err(error) => return broken(bench, cell, attempt, life, "warmup_failed", &error),
        }
        life.warm = true;
    }
    bench.interrupt.sleep(bench.timing.pause)?;
    quiet(database, cell.route)?;
    window(bench, cell, attempt, life, database, &mut engine)
}

/// Order rows back to the seed, and nothing left for Postgres to write by itself.
fn quiet(database: &mut Database, route: Route) -> anyhow::Result<()> {
    if route == Route::Order {
        database.reset_orders()?;
    }
    database.checkpoint()
}

fn config(settings: &Settings, cell: &Cell, life: &ServerLife) -> load::Config {
    let address = life.running.address();
    let variety = settings.seed.map_or(Variety::Fixed, Variety::Seeded);
    load::Config {
        endpoint: address.into(),
        host: address.to_string(),
        connections: cell.connections as usize,
        threads: settings.driver_threads as usize,
        timeout: timeout(cell.route, cell.connections),
        // All of it: what a warm-up leaves behind would be worked on, and charged, in the window.
        drain: timeout(cell.route, cell.connections),
        requests: contract::requests(cell.route, variety, BENCH_SECRET).into_iter().map(load::render).collect(),
        success_status: Some(cell.route.success_status()),
        check_every: settings.check_every,
        keeps_alive: true,
        spins: false,
    }
}

fn timeout(route: Route, connections: u32) -> Duration {
    if route == Route::Cpu { CPU_TIMEOUT.max(SLOWEST_CPU_REQUEST * connections * 2) } else { TIMEOUT }
}

fn window(
    bench: &Bench<'_>,
    cell: &Cell,
    attempt: u32,
    life: &mut ServerLife,
    database: &mut Database,
    engine: &mut Engine,
) -> anyhow::Result<Window> {
    let server = life.running.pid();
    let checkpoints = database.checkpoints()?;
    // Without it the mark would be an earlier window's; unknown is then the truth.
    let peak_known = host::reset_peak(server).is_ok();
    let started_at = Timestamp::now();
    let sample = || Sample::take(server, bench.postmaster).context("failed to read the CPU time of the host");
    let before = sample()?;
    let (seen, backends) = watch::during(database, || engine.run(bench.timing.window, bench.interrupt));
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return broken(bench, cell, attempt, life, "window_failed", &error),
    };
    let after = sample()?;
    let memory = host::tree_usage(server).ok();
    life.count(cell.route, &seen);
    let backends = backends.context("failed to count the server's Postgres connections")?;
    life.postgres_connections = life.postgres_connections.max(Some(backends));

    let spent = Spent::between(&before, &after, host::interrupts_apart());
    let mut row = Window { started_at, ..empty(cell, attempt, life.number) };
    fill_load(&mut row, &seen);
    fill_costs(&mut row, &seen, &spent);
    row.rss_bytes = memory.map(|usage| usage.rss_bytes);
    row.peak_rss_bytes = memory.filter(|_| peak_known).map(|usage| usage.peak_rss_bytes);
    row.postgres_connections = Some(backends);

    let by_driver = load::judge(&seen, spent.idle_share);
    let by_driver = by_driver.iter().map(|reason| Reason::new(reason.name(), reason.to_string()));
    let limits = &bench.settings.limits;
    let by_host = spent.reasons(limits).into_iter().chain(connections_reason(Some(backends), limits));
    for reason in by_driver.chain(by_host).chain(checkpoint_reason(database.checkpoints()?, checkpoints)) {
        row.invalidate(&reason);
    }
    note_death(life, &mut row);
    note_owner(life, &mut row);
    Ok(row)
}

/// The driver could not do its work: a row, unless a signal asked it to stop.
fn broken(
    bench: &Bench<'_>,
    cell: &Cell,
    attempt: u32,
    life: &mut ServerLife,
    reason: &str,
    error: &anyhow::Error,
) -> anyhow::Result<Window> {
    bench.interrupt.check()?;
    let mut row = empty(cell, attempt, life.number);
    row.invalidate(&Reason::new(reason, format!("{error:#}")));
    note_death(life, &mut row);
    Ok(row)
}

fn checkpoint_reason(after: u64, before: u64) -> Option<Reason> {
    let ran = after.checked_sub(before)?;
    (ran > 0).then(|| Reason::new("checkpoint", format!("{ran} checkpoints of Postgres ran within the window")))
}

fn note_death(life: &mut ServerLife, row: &mut Window) {
    if let Some(why) = life.death() {
        row.invalidate(&Reason::new("server_died", why));
    }
}

fn note_owner(life: &ServerLife, row: &mut Window) {
    if life.died.is_some() {
        return;
    }
    if let Err(error) = life.running.check_port() {
        row.invalidate(&Reason::new("port_not_owned", format!("{error:#}")));
    }
}

/// A row that nothing was measured for.
fn empty(cell: &Cell, attempt: u32, life: u32) -> Window {
    Window {
        schema: SCHEMA,
        started_at: Timestamp::now(),
        server: cell.server.clone(),
        route: cell.route.name().to_owned(),
        connections: cell.connections,
        round: cell.round,
        attempt,
        life,
        valid: true,
        invalid_reasons: Vec::new(),
        window_s: None,
        requests_ok: 0,
        requests_per_s: None,
        ok_per_second: Vec::new(),
        drained: 0,
        latency_ns: Latency::default(),
        cpu_ns_per_request: CpuPerRequest::default(),
        rss_bytes: None,
        peak_rss_bytes: None,
        errors: std::collections::BTreeMap::new(),
        statuses: std::collections::BTreeMap::new(),
        first_failure: None,
        bodies_checked: 0,
        bytes_read: 0,
        bytes_written: 0,
        unfinished: 0,
        unfinished_oldest_ns: None,
        connections_open: 0,
        connections_lost: 0,
        connections_never_served: 0,
        reconnects: 0,
        closed_by_server: 0,
        driver_busy_share: None,
        foreign_cpu_share: None,
        steal_share: None,
        host_idle_share: None,
        postgres_connections: None,
    }
}

fn fill_load(row: &mut Window, seen: &load::Window) {
    let count = |connections: usize| u32::try_from(connections).unwrap_or(u32::MAX);
    let seconds = seen.window.as_secs_f64();
    row.window_s = Some(seconds);
    row.requests_ok = seen.requests_ok;
    // Over no time there is no rate: 0 ÷ 0 is not finite.
    row.requests_per_s = finite(seen.requests_ok as f64 / seconds);
    row.ok_per_second.clone_from(&seen.ok_per_second);
    row.drained = seen.drained;
    let latency = &seen.latency_ns;
    row.latency_ns = Latency {
        min: latency.min,
        mean: latency.mean,
        p50: latency.p50,
        p90: latency.p90,
        p99: latency.p99,
        p99_9: latency.p99_9,
        max: latency.max,
    };
    row.errors = seen.errors.iter().map(|(kind, count)| (kind.name().to_owned(), *count)).collect();
    row.statuses = seen.statuses.iter().map(|(status, count)| (status.to_string(), *count)).collect();
    row.first_failure =
        seen.first_failure.as_ref().map(|failure| format!("{}: {}", failure.kind.name(), failure.detail));
    row.bodies_checked = seen.bodies_checked;
    row.bytes_read = seen.bytes_read;
    row.bytes_written = seen.bytes_written;
    row.connections_lost = seen.connections_lost;
    row.closed_by_server = seen.closed_by_server;
    row.unfinished = seen.unfinished;
    row.unfinished_oldest_ns = seen.unfinished_oldest_ns;
    row.connections_open = count(seen.connections_open);
    row.connections_never_served = count(seen.connections_never_served);
    row.reconnects = seen.reconnects;
    row.driver_busy_share = seen.driver.busy_share.and_then(finite);
}

fn fill_costs(row: &mut Window, seen: &load::Window, spent: &Spent) {
    let replies = seen.requests_ok + seen.drained;
    row.cpu_ns_per_request = CpuPerRequest {
        server: per_request(spent.server, replies),
        postgres: per_request(spent.postgres, replies),
        driver: seen.driver.cpu_ns_per_request,
    };
    row.foreign_cpu_share = spent.foreign_share;
    row.steal_share = spent.steal_share;
    row.host_idle_share = spent.idle_share;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_requests_have_time_for_every_connection_before_them() {
        assert_eq!(timeout(Route::User, 500), TIMEOUT);
        assert_eq!(timeout(Route::Cpu, 100), CPU_TIMEOUT);
        assert_eq!(timeout(Route::Cpu, 500), Duration::from_secs(100));
    }

    #[test]
    fn one_checkpoint_voids_a_window() {
        assert_eq!(checkpoint_reason(7, 7), None);
        assert_eq!(checkpoint_reason(8, 7).unwrap().name, "checkpoint");
    }

    #[test]
    fn a_row_of_nothing_has_no_figures() {
        let cell = Cell { round: 1, server: "native".to_owned(), route: Route::User, connections: 100 };
        let json = serde_json::to_value(empty(&cell, 2, 3)).unwrap();
        for key in ["requests_per_s", "window_s", "rss_bytes", "foreign_cpu_share", "postgres_connections"] {
            assert!(json[key].is_null(), "{key}");
        }
        assert_eq!((&json["attempt"], &json["life"]), (&2.into(), &3.into()));
    }
}
