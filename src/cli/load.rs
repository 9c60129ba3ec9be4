//! `headroom load`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use headroom::contract::Route;
use headroom::load::Condition;

use super::duration;

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

/// `name: value`.
fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written `name: value`")?;
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!("{name:?} is no header name"));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}
