//! `headroom floor http | postgres | hash`

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use headroom::contract::{self, Expected, Route, Variety};
use headroom::floor::{hash, http, postgres};
use headroom::host::{own_cpu, raise_file_limit, tree_usage};
use headroom::interrupt::Interrupt;
use headroom::postgres::{Cluster, Database};
use headroom::progress::Progress;
use headroom::setup;
use serde::Serialize;

use super::{Outcome, jwt_secret, print};
use crate::cli;

/// Rounds of one chain: what the cpu route is asked for.
const ROUNDS: u32 = 15_000;
/// Before a window of statements: backends plan a statement anew five times before they keep the plan.
const WARMUP: Duration = Duration::from_secs(1);
/// An order's reply differs by its id and clock; this one has the usual length.
const ORDER_REPLY: &str =
    r#"{"id":200001,"userId":4242,"amount":"19.99","currency":"USD","createdAt":"2024-01-01T00:00:00.000Z"}"#;

pub(crate) fn run(floor: cli::Floor, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    match floor {
        cli::Floor::Http { listen, route } => respond(listen, route, interrupt)?,
        cli::Floor::Postgres { route, connections, in_flight, duration, database_url, json } => {
            let statement = match route {
                Route::User | Route::Me => postgres::Statement::User,
                Route::List => postgres::Statement::List,
                Route::Order => postgres::Statement::Order,
                Route::Health | Route::Echo | Route::Cpu => {
                    bail!("--route {route} asks nothing of Postgres: use user, list or order")
                }
            };
            ensure!(connections > 0 && in_flight > 0, "--connections and --in-flight must be at least 1");
            ensure!(!duration.is_zero(), "-d 0 measures nothing: give a duration such as 4s");
            let config = postgres::Config {
                url: database_url.as_deref().unwrap_or_default().to_owned(),
                statement,
                connections,
                in_flight,
                warmup: WARMUP,
                window: duration,
            };
            let report = if database_url.is_some() {
                statements(route, &config)?
            } else {
                let options = setup::cluster_options(&setup::Options::default(), false, progress, interrupt)?;
                let cluster = Cluster::acquire(&options, progress, interrupt)?;
                progress.finish();
                let url = cluster.url().to_owned();
                let report = statements(route, &postgres::Config { url, ..config });
                cluster.leave()?;
                report?
            };
            show(json, &report, || report.text())?;
        }
        cli::Floor::Hash { threads, duration, json } => {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            ensure!((1..=cpus).contains(&threads), "--threads {threads} is out of range: use 1 to {cpus}, one a CPU");
            let report = HashReport::new(hash::run(threads, ROUNDS, duration));
            show(json, &report, || report.text())?;
        }
    }
    Ok(Outcome::Good)
}

/// Serves until a signal comes, as a server does: that is its good end.
fn respond(listen: SocketAddr, route: Route, interrupt: &Interrupt) -> anyhow::Result<()> {
    ensure!(listen.ip().is_loopback(), "{listen} is not a loopback address: a floor is for this host only");
    raise_file_limit();
    let request = contract::requests(route, Variety::Fixed, &jwt_secret()).remove(0);
    let body = match request.expected {
        Expected::Exact(body) => body,
        Expected::Order { .. } => ORDER_REPLY.as_bytes().to_vec(),
    };
    let mut responder = http::Responder::bind(listen, route.success_status(), &body)
        .with_context(|| format!("cannot listen on {listen}: choose another address with --listen"))?;
    print(&format!("listening on http://{}\n", responder.address()?))?;
    responder.run(|| interrupt.requested().is_some()).context("the responder cannot go on")
}

/// What statements cost.
#[derive(Debug, Serialize)]
struct StatementReport {
    route: &'static str,
    connections: usize,
    in_flight: usize,
    window_s: f64,
    statements: u64,
    statements_per_s: f64,
    /// CPU of this process; `null` where nothing was answered.
    client_cpu_ns_per_statement: Option<f64>,
    /// CPU of Postgres; also `null` where it runs on another host or under another name.
    postgres_cpu_ns_per_statement: Option<f64>,
}

fn statements(route: Route, config: &postgres::Config) -> anyhow::Result<StatementReport> {
    // Only a marked database is written to.
    let mut database = Database::connect(&config.url)?;
    let postmaster = database.postmaster_pid()?;
    if config.statement == postgres::Statement::Order {
        database.reset_orders()?;
    }
    database.checkpoint()?;
    let mut edges = Vec::new();
    let outcome = postgres::run(config, || {
        edges.push((own_cpu(), postmaster.and_then(|pid| tree_usage(pid).ok()).map(|usage| usage.cpu)));
    })?;
    if config.statement == postgres::Statement::Order {
        database.reset_orders()?;
    }
    let per_statement = |before: Duration, after: Duration| {
        (outcome.statements > 0).then(|| after.saturating_sub(before).as_nanos() as f64 / outcome.statements as f64)
    };
    let [(client_before, postgres_before), (client_after, postgres_after)] =
        <[_; 2]>::try_from(edges).map_err(|_| anyhow!("the window has no two edges"))?;
    Ok(StatementReport {
        route: route.name(),
        connections: config.connections,
        in_flight: config.in_flight,
        window_s: outcome.elapsed.as_secs_f64(),
        statements: outcome.statements,
        statements_per_s: outcome.statements as f64 / outcome.elapsed.as_secs_f64(),
        client_cpu_ns_per_statement: per_statement(client_before?, client_after?),
        postgres_cpu_ns_per_statement: postgres_before
            .zip(postgres_after)
            .and_then(|(before, after)| per_statement(before, after)),
    })
}

impl StatementReport {
    fn text(&self) -> String {
        let cpu = |ns: Option<f64>| ns.map_or_else(|| "unknown".to_owned(), |ns| format!("{:.1} µs", ns / 1_000.0));
        format!(
            "{}: {:.0} statements/s over {} connections, {} in flight\nCPU per statement: client {}, Postgres {}\n",
            self.route,
            self.statements_per_s,
            self.connections,
            self.in_flight,
            cpu(self.client_cpu_ns_per_statement),
            cpu(self.postgres_cpu_ns_per_statement),
        )
    }
}

/// What hashing comes to.
#[derive(Debug, Serialize)]
struct HashReport {
    threads: usize,
    rounds: u32,
    window_s: f64,
    chains: u64,
    chains_per_s: f64,
    ns_per_hash: f64,
    /// What a chain ends in, so that the work can be checked against the contract.
    hash: String,
}

impl HashReport {
    fn new(outcome: hash::Outcome) -> Self {
        let chains_per_s = outcome.chains as f64 / outcome.elapsed.as_secs_f64();
        Self {
            threads: outcome.threads,
            rounds: ROUNDS,
            window_s: outcome.elapsed.as_secs_f64(),
            chains: outcome.chains,
            chains_per_s,
            ns_per_hash: 1e9 * outcome.threads as f64 / (chains_per_s * f64::from(ROUNDS)),
            hash: String::from_utf8_lossy(&outcome.last).into_owned(),
        }
    }

    fn text(&self) -> String {
        format!(
            "{:.1} chains/s of {} hashes on {} threads, {:.0} ns a hash\n",
            self.chains_per_s, self.rounds, self.threads, self.ns_per_hash
        )
    }
}

fn show(json: bool, report: &impl Serialize, text: impl FnOnce() -> String) -> anyhow::Result<()> {
    print(&if json { format!("{}\n", serde_json::to_string_pretty(report)?) } else { text() })
}
