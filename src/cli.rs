//! What can be typed. Only declares; what is typed becomes plain configuration in `main`.

use std::net::SocketAddr;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// How far a Bun or Node HTTP API is from a native ceiling, on the host it will run on.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Cli {
    /// Say nothing about progress; results and errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the reference server
    Serve(Serve),
}

/// Which client talks to Postgres.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Store {
    /// tokio-postgres, many queries in flight on each connection: the ceiling
    Pipelined,
    /// sqlx and its pool, one query in flight on each connection
    Sqlx,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Address to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
    pub(crate) listen: SocketAddr,
    /// Postgres with the contract's tables, as a URL
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Connections to Postgres in all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) connections: usize,
    /// Single-threaded workers, each with its share of the connections [default: one per CPU, at most --connections]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Which client talks to Postgres
    #[arg(long, value_enum, default_value = "pipelined")]
    pub(crate) store: Store,
    /// Pipelined reads are spread over this many connections before any is filled further [default: half of the CPUs]
    #[arg(long, value_name = "N")]
    pub(crate) read_spread: Option<usize>,
    /// Queries in flight on one connection before the next is used
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) read_depth: usize,
}
