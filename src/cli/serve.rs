//! `headroom serve`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration;

/// Which code speaks HTTP.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Http {
    /// Our own front on the runtime's sockets: the ceiling
    Own,
    /// axum over hyper: what a Rust team writes first
    Axum,
}

/// Which client talks to Postgres.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Store {
    /// tokio-postgres, many queries in flight on each connection: the ceiling
    Pipelined,
    /// sqlx and its pool, one query in flight on each connection
    Sqlx,
    /// The same connections without the pool and the round trip it adds
    SqlxHeld,
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
    /// Which code speaks HTTP
    #[arg(long, value_enum, default_value = "own")]
    pub(crate) http: Http,
    /// Which client talks to Postgres
    #[arg(long, value_enum, default_value = "pipelined")]
    pub(crate) store: Store,
    /// Pipelined reads are spread over this many connections before any is filled further [default: two for each CPU]
    #[arg(long, value_name = "N")]
    pub(crate) read_spread: Option<usize>,
    /// Queries in flight on one connection before the next is used
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub(crate) read_depth: usize,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// Bounds on what a client may ask of the server; the defaults are the server's own.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Limits {
    /// Longest request head in bytes; a longer one is answered 431
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULTS.head_bytes)]
    pub(crate) max_head: usize,
    /// Longest request body in bytes; a longer one is answered 413
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULTS.body_bytes)]
    pub(crate) max_body: usize,
    /// Client connections in all; further ones wait until one closes
    #[arg(long, value_name = "N", default_value_t = DEFAULTS.connections)]
    pub(crate) max_connections: usize,
    /// Requests of one worker that may wait for Postgres or for the hashing thread; more are answered 503
    #[arg(long, value_name = "N", default_value_t = DEFAULTS.waiting)]
    pub(crate) max_waiting: usize,
    /// From the first byte of a request head to its last
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) head_time: Duration,
    /// From the end of the head to the end of the body
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) body_time: Duration,
    /// Silence between requests, or of a client that takes no byte of its reply
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) idle_time: Duration,
    /// From a whole request to its reply; then 503
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) request_time: Duration,
    /// Wait for a free place on a Postgres connection; then 503
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) wait_time: Duration,
    /// After SIGTERM: how long requests in flight may take to finish
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = duration)]
    pub(crate) drain_time: Duration,
}

const DEFAULTS: headroom::server::config::Limits = headroom::server::config::Limits::DEFAULT;
