//! `headroom serve`

use std::io::Write as _;
use std::net::SocketAddr;

use anyhow::Context as _;
use headroom::host::raise_file_limit;
use headroom::server;
use headroom::server::config::{BENCH_SECRET, Config, HttpKind, Limits, ReadPolicy, StoreKind};

use super::Outcome;
use crate::cli;

/// Connections that reads are spread over, for each CPU: fewer leave Postgres idle at ten clients, more cost it a wake-up
/// for every read (`bench/records/2026-12-01-server.md`).
const READ_SPREAD_PER_CPU: usize = 2;

pub(crate) fn run(args: cli::Serve) -> anyhow::Result<Outcome> {
    raise_file_limit();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let database_url = args.database_url.context(
        "no database: set DATABASE_URL or --database-url (`headroom postgres start` makes one, `headroom postgres url` prints its URL)",
    )?;
    let config = Config {
        database_url,
        connections: args.connections,
        workers: args.workers.unwrap_or_else(|| cpus.min(args.connections)),
        http: match args.http {
            cli::Http::Own => HttpKind::Own,
            cli::Http::Axum => HttpKind::Axum,
        },
        store: match args.store {
            cli::Store::Pipelined => StoreKind::Pipelined,
            cli::Store::Sqlx => StoreKind::Sqlx,
            cli::Store::SqlxHeld => StoreKind::SqlxHeld,
        },
        reads: ReadPolicy { spread: args.read_spread.unwrap_or(cpus * READ_SPREAD_PER_CPU), depth: args.read_depth },
        jwt_secret: std::env::var("JWT_SECRET").unwrap_or_else(|_| BENCH_SECRET.to_owned()),
        limits: limits(&args.limits),
    };
    config.check(args.listen)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = stop_signal()?;
        let listener = server::bind(args.listen)?;
        server::run(config, listener, announce, stop).await
    })?;
    Ok(Outcome::Good)
}

fn limits(args: &cli::Limits) -> Limits {
    Limits {
        body_bytes: args.max_body,
        head_bytes: args.max_head,
        idle_time: args.idle_time,
        head_time: args.head_time,
        body_time: args.body_time,
        request_time: args.request_time,
        connections: args.max_connections,
        waiting: args.max_waiting,
        wait_time: args.wait_time,
        drain_time: args.drain_time,
    }
}

/// Whoever started the server waits for this line; a closed stdout is not a reason to stop serving.
fn announce(address: SocketAddr) {
    let _ = writeln!(std::io::stdout(), "listening on http://{address}");
}

/// Completes on the first SIGTERM or SIGINT; the second ends the process at once.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut either = async move || {
        tokio::select! {
            _ = terminate.recv() => 15,
            _ = interrupt.recv() => 2,
        }
    };
    Ok(async move {
        either().await;
        tokio::spawn(async move {
            let signal = either().await;
            let _ = writeln!(std::io::stderr(), "headroom serve: stopped at once by a second signal");
            std::process::exit(128 + signal);
        });
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn the_defaults_typed_are_the_servers_own() {
        let cli = cli::Cli::try_parse_from(["headroom", "serve"]).unwrap();
        let cli::Command::Serve(args) = cli.command else { panic!("another command") };
        assert_eq!(limits(&args.limits), Limits::DEFAULT);
    }
}
