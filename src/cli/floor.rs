//! `headroom floor`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Subcommand;
use headroom::contract::Route;

use super::duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Floor {
    /// A bare epoll responder: serves canned bytes until it is stopped, for a driver to load
    Http {
        /// Address to listen on; port 0 takes any free one
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:3000")]
        listen: SocketAddr,
        /// The route whose example reply it answers, whatever is asked
        #[arg(long, value_name = "NAME", default_value = "health")]
        route: Route,
    },
    /// A route's statement, pipelined over ten connections without HTTP: rate, and CPU on both sides
    Postgres {
        /// user, list or order
        #[arg(long, value_name = "NAME", default_value = "user")]
        route: Route,
        /// Connections in all
        #[arg(long, value_name = "N", default_value_t = 10)]
        connections: usize,
        /// Statements in flight in all
        #[arg(short = 'c', long, value_name = "N", default_value_t = 100)]
        in_flight: usize,
        /// How long to measure
        #[arg(short, long, value_name = "TIME", default_value = "4s", value_parser = duration)]
        duration: Duration,
        /// A database prepared by headroom [default: the private cluster, started when it does not run]
        #[arg(long, value_name = "URL")]
        database_url: Option<String>,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// The chained hashes of the cpu route, in a tight loop
    Hash {
        /// Threads that hash, each on its own
        #[arg(short, long, value_name = "N", default_value_t = 1)]
        threads: usize,
        /// How long to measure
        #[arg(short, long, value_name = "TIME", default_value = "4s", value_parser = duration)]
        duration: Duration,
        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}
