//! What can be typed. Only declares; what is typed becomes plain configuration in `commands`.

mod parity;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use headroom::contract::Route;
use headroom::load::Condition;

pub(crate) use parity::Parity;

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
    /// Set up what is missing, gate every server, measure in rotated rounds, report: the main job
    Compare(Compare),
    /// Run the reference server
    Serve(Serve),
    /// Put a server under load and say what came back
    Load(Load),
    /// Check a running server against the contract of the seven routes
    Parity(Parity),
    /// Tables from a stored record; measures nothing
    Report(Report),
    /// The least this host needs for a server's work, each part alone
    #[command(subcommand)]
    Floor(Floor),
    /// The private Postgres, for people who want to look at it
    #[command(subcommand)]
    Postgres(Postgres),
    /// What is here, what is missing, and the command that brings it
    Doctor,
}

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

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a person types")]
#[command(after_long_help = LOAD_EXAMPLES, after_help = LOAD_EXAMPLES)]
pub(crate) struct Load {
    /// `http://host:port/path` or https; the path is sent verbatim but for places such as {id:1..50000}
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Connections held open, each with at most one request in flight
    #[arg(short, long, value_name = "N", default_value_t = 100)]
    pub(crate) connections: usize,
    /// Driver threads, each with one event loop
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// How long to measure: 500ms, 10s, 2m, 1h; a plain number is seconds [default: 10s, 1s with --capacity]
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// How long to send before that without measuring
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = duration)]
    pub(crate) warmup: Duration,
    /// Method of the request [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Header of the request, `name: value`; can be given again, `host` replaces the URL's
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// Body of the request
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) body: Option<String>,
    /// Body of the request, from a file
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub(crate) body_file: Option<PathBuf>,
    /// Several requests, one a line: `[WEIGHT] METHOD TARGET [BODY]`; -H goes with all of them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "body_file", "route"])]
    pub(crate) targets: Option<PathBuf>,
    /// Open loop: so many requests a second at equal distances, whatever the server does; latency counts from when each
    /// was due
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Search the rate that keeps an objective such as 'p99<10ms' in half of the windows, each -d long; under two minutes
    #[arg(long, value_name = "OBJECTIVE", value_parser = Condition::objective, conflicts_with_all = ["rate", "fail_if", "hdr_log", "percentiles"])]
    pub(crate) capacity: Option<Condition>,
    /// Exit with 1 where this is true of the window, or cannot be told: p50, p90, p99, p99.9, mean or max with a time
    /// ('p99>20ms'), rate or errors with a number ('rate<1000'); can be given again
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<Condition>,
    /// A new connection for every request
    #[arg(long)]
    pub(crate) no_keepalive: bool,
    /// Connect to this Unix socket; the URL's host is then only the `host` header
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Authorities that an https server's certificate may come from, in PEM [default: those of this system]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) cacert: Option<PathBuf>,
    /// Take any certificate of an https server
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// Look for replies without sleeping: takes wake-ups out of the latencies, and a whole CPU for each thread
    #[arg(long)]
    pub(crate) spin: bool,
    /// Keep the driver to these CPUs, such as 1 or 0,2-3
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    pub(crate) cpus: Option<Cpus>,
    /// A reply slower than this is an error and ends its connection; a handshake has 5 s of its own
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Send the varied requests of one of the seven routes and check its replies (status and id of each, the whole body of
    /// one in 64): health, echo, me, user, list, order, cpu
    #[arg(long, value_name = "NAME", conflicts_with_all = ["method", "body", "body_file"])]
    pub(crate) route: Option<Route>,
    /// With --route: only the contract's example, again and again
    #[arg(long, requires = "route")]
    pub(crate) fixed: bool,
    /// Seed of what is drawn: the order and the ids of a route's requests, targets and the places of templates
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the whole distribution of latencies as well
    #[arg(long, conflicts_with = "json")]
    pub(crate) percentiles: bool,
    /// Write the latencies as an `HdrHistogram` log; an open loop adds service time and lag under tags
    #[arg(long, value_name = "FILE")]
    pub(crate) hdr_log: Option<PathBuf>,
    /// What wrk needs to be told: percentiles are always printed
    #[arg(long, hide = true)]
    pub(crate) latency: bool,
}

const LOAD_EXAMPLES: &str = "\
Places in braces in the URL, in -b and in lines of --targets are drawn for every request: {id:1..50000} from a range,
{kind:a,b,c} from a list. Other braces are sent as they are.

A window is VALID, or INVALID with its reasons: a reply that is not 2xx, a lost connection, a rate that was not kept, a
driver that was late or the limit. After its end up to 5 s are waited for replies that are still owed. Exit codes: 0 valid;
1 invalid, or a --fail-if was true; 2 the command, or nobody to connect to; 130 and 143 after Ctrl-C and SIGTERM.

Examples:
  headroom load http://127.0.0.1:3000/users/{id:1..50000} -c 100 -d 10s
  headroom load http://127.0.0.1:3000/echo -H 'content-type: application/json' -b '{\"n\":{n:1..9}}'
  headroom load http://127.0.0.1:3000 --targets mix.txt --rate 5000 --fail-if 'p99>20ms'
  headroom load http://127.0.0.1:3000/health --capacity 'p99<10ms'
  headroom load http://127.0.0.1:3000 --route order --json
  headroom load http://localhost/health --unix-socket /run/api.sock
  headroom load https://localhost:8443/health --cacert ca.pem";

fn rate(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "not a rate: write requests per second, such as 5000".to_owned())
}

/// A list of CPUs, as one value.
#[derive(Debug, Clone)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    headroom::host::parse_cpus(text).map(Cpus)
}

/// `500ms`, `10s`, `2m`, `1h`, or seconds.
fn duration(text: &str) -> Result<Duration, String> {
    /// A day: longer is a slip of the finger.
    const LONGEST_S: f64 = 86_400.0;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        unit => return Err(format!("{unit:?} is no unit of time: use ms, s, m or h")),
    };
    let count: f64 = digits.parse().map_err(|_| "not a time: write it like 10s".to_owned())?;
    let total = count * seconds;
    if (0.0..=LONGEST_S).contains(&total) {
        Ok(Duration::from_secs_f64(total))
    } else {
        Err("out of range: use a time up to 24h".to_owned())
    }
}

/// `name: value`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written `name: value`")?;
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!("{name:?} is no header name"));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

/// How long a comparison measures.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Profile {
    /// One round of 2 s + 4 s at 100 connections: a first answer in about six minutes
    Quick,
    /// Ten rounds of short windows: enough for verdicts
    Standard,
    /// 10, 100 and 500 connections, three rounds of 5 s + 30 s, as write-ups publish
    Paper,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// How long to measure [default: quick, or the suite's]
    #[arg(long, value_enum)]
    pub(crate) profile: Option<Profile>,
    /// Servers, routes and conditions by name, from bench/suites: default, steps, express-to-elysia, bun-or-node, …
    #[arg(long, value_name = "NAME")]
    pub(crate) suite: Option<String>,
    /// Servers by their names in bench/peers.toml, separated by commas; ratios need `native` among them
    #[arg(long = "peer", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// Routes, separated by commas: health, echo, me, user, list, order, cpu
    #[arg(long = "route", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) routes: Vec<Route>,
    /// Numbers of connections, separated by commas
    #[arg(short, long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) connections: Vec<u32>,
    /// Every cell is measured once a round
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u32>,
    /// Warm-up before every window
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) warmup: Option<Duration>,
    /// Length of a window
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) window: Option<Duration>,
    /// Windows a cell may have until one is valid; all are kept
    #[arg(long, value_name = "N")]
    pub(crate) max_attempts: Option<u32>,
    /// Share of the host that other processes may use in a window [default: 0.05]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_foreign_cpu: Option<f64>,
    /// Share of the host that the hypervisor may take in a window [default: 0.02]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_steal: Option<f64>,
    /// Send only the contract's examples, as write-ups did
    #[arg(long)]
    pub(crate) fixed: bool,
    /// Folder for the record [default: results/TIME-PROFILE]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Continue an interrupted record; its settings hold
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "profile", "suite", "servers", "routes", "connections", "rounds", "warmup", "window", "max_attempts",
        "max_foreign_cpu", "max_steal", "fixed", "out",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// A database of your own, empty or prepared by headroom before, instead of the private cluster
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Folder with postgres and initdb for the private cluster [default: the pinned ones]
    #[arg(long, value_name = "DIR", conflicts_with = "database_url")]
    pub(crate) postgres_bin: Option<PathBuf>,
    /// The bench folder of a checkout [default: found from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) bench: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The record's folder
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print the Markdown report instead of writing it beside the record
    #[arg(long)]
    pub(crate) markdown: bool,
}

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

/// Where the private cluster's binaries come from.
#[derive(Debug, Args)]
pub(crate) struct PostgresBinaries {
    /// Folder with postgres and initdb [default: the pinned ones, then the system's newest]
    #[arg(long, value_name = "DIR")]
    pub(crate) postgres_bin: Option<PathBuf>,
    /// The bench folder of a checkout [default: found from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) bench: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Postgres {
    /// Start it, seeded, and leave it running; prints its URL
    Start(PostgresBinaries),
    /// Print the URL of the running one, password included
    Url,
    /// Make its database anew from the seed
    Reset(PostgresBinaries),
    /// Stop it, or have the last command that uses it stop it
    Stop,
}
