//! The command line: parse, one match, print the error once, exit code.
//!
//! 0 good; 1 a measured thing failed; 2 the command or its surroundings were wrong; 128 + signal when interrupted.

mod cli;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use headroom::interrupt::Interrupted;
use headroom::server;

use cli::{Cli, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How a command that could run came out.
enum Outcome {
    Good,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match cli.command {
        Command::Serve(args) => serve(args),
    };
    match outcome {
        Ok(Outcome::Good) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headroom: {error:#}");
            let signal = error.downcast_ref::<Interrupted>().map(|interrupted| interrupted.signal);
            ExitCode::from(signal.map_or(2, |signal| u8::try_from(128 + signal).unwrap_or(2)))
        }
    }
}

fn serve(args: cli::Serve) -> anyhow::Result<Outcome> {
    use server::config::{BENCH_SECRET, Config, Limits, ReadPolicy, StoreKind};
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let database_url = args.database_url.context(
        "no database: set DATABASE_URL or --database-url (`headroom postgres start` makes one and prints its URL)",
    )?;
    let config = Config {
        database_url,
        connections: args.connections,
        workers: args.workers.unwrap_or_else(|| cpus.min(args.connections)),
        store: match args.store {
            cli::Store::Pipelined => StoreKind::Pipelined,
            cli::Store::Sqlx => StoreKind::Sqlx,
        },
        reads: ReadPolicy { spread: args.read_spread.unwrap_or((cpus / 2).max(1)), depth: args.read_depth },
        jwt_secret: std::env::var("JWT_SECRET").unwrap_or_else(|_| BENCH_SECRET.to_owned()),
        limits: Limits::default(),
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
            eprintln!("headroom serve: stopped at once by a second signal");
            std::process::exit(128 + signal);
        });
    })
}
