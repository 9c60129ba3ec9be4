//! The load driver.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::contract;
use crate::interrupt::Interrupt;

/// What to send, to whom, over how many connections.
#[derive(Debug, Clone)]
pub struct Config {
    /// The one literal address everything connects to.
    pub address: SocketAddr,
    /// Value of the `host` header.
    pub host: String,
    /// Connections held open, spread exactly over the threads.
    pub connections: usize,
    /// Driver threads, each with one epoll loop.
    pub threads: usize,
    /// A reply slower than this ends its connection and counts as `timeout`.
    pub timeout: Duration,
    /// Sent in order, from a different start on every connection.
    pub requests: Vec<Request>,
    /// `Some(201)`: only this status counts. `None`: any 2xx.
    pub success_status: Option<u16>,
    /// One reply in this many has its whole body compared with the expected one; 0 = none.
    pub check_every: u32,
}

/// One request, rendered by the engine once with the `host` header.
#[derive(Debug, Clone)]
pub struct Request {
    /// Any method.
    pub method: String,
    /// Sent verbatim.
    pub target: String,
    /// In order; `host` here overrides [`Config::host`].
    pub headers: Vec<(String, String)>,
    /// `content-length` is added where it is not empty or the method is POST, PUT or PATCH.
    pub body: Vec<u8>,
    /// What the body must be, when it is known.
    pub expected: Option<contract::Expected>,
}

/// Open connections and the threads that drive them.
#[derive(Debug)]
pub struct Engine {}

/// What one window saw.
#[derive(Debug, Clone)]
pub struct Window {
    /// From the common start of all threads to the end of sending.
    pub window: Duration,
    /// Good replies inside the window.
    pub requests_ok: u64,
    /// [`Window::requests_ok`] ÷ [`Window::window`].
    pub requests_per_s: f64,
    /// Good replies by second of the window.
    pub ok_per_second: Vec<u64>,
    /// Good replies that came after the end: in the latencies, not in the rate.
    pub drained: u64,
    /// Its figures.
    pub latency_ns: LatencySummary,
    /// Everything that went wrong, by kind.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The statuses that did not count.
    pub statuses: BTreeMap<u16, u64>,
    /// The first thing that went wrong.
    pub first_failure: Option<Failure>,
    /// As configured.
    pub connections_asked: usize,
    /// Open when the window was over.
    pub connections_open: usize,
    /// Connections without one reply inside the window.
    pub connections_never_served: usize,
    /// Requests without a reply when the drain was over.
    pub unfinished: u64,
    /// Age of the oldest of them.
    pub unfinished_oldest_ns: Option<u64>,
    /// Connections made anew because they were closed while idle.
    pub reconnects: u64,
    /// Bodies compared with the expected one.
    pub bodies_checked: u64,
    /// What driving cost.
    pub driver: Driver,
}

/// Latencies of good replies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LatencySummary {
    /// Shortest.
    pub min: Option<u64>,
    /// Arithmetic mean.
    pub mean: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
    /// Longest one seen.
    pub max: Option<u64>,
}

/// CPU time of the driver's threads inside the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Driver {
    /// Of all threads.
    pub cpu_ns: u64,
    /// Per good reply; `None` without one.
    pub cpu_ns_per_request: Option<u64>,
    /// CPU time ÷ wall time of the busiest thread.
    pub busy_share: Option<f64>,
}

/// A failure as it looked on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What exactly, in one line.
    pub detail: String,
}

/// Why something did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// Any, until the driver is here.
    Read,
}

impl ErrorKind {
    /// `read`.
    pub fn name(self) -> &'static str {
        "read"
    }
}

/// Why a window does not count.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {}

impl Reason {
    /// Stable, snake case.
    pub fn name(&self) -> &'static str {
        "todo"
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("todo")
    }
}

/// What speaks against a window, by the driver's own rules.
pub fn judge(window: &Window, host_idle_share: Option<f64>) -> Vec<Reason> {
    let _ = (window, host_idle_share);
    todo!()
}

/// A request of the contract as the driver takes it.
pub fn render(request: contract::Request) -> Request {
    let _ = request;
    todo!()
}

impl Engine {
    /// Connects everything; fails where fewer than all connections come up.
    pub fn start(config: Config) -> anyhow::Result<Self> {
        let _ = config;
        todo!()
    }

    /// Reconnects what was closed meanwhile, sends for `duration`, drains what is in flight, returns idle.
    /// Called for the warm-up (result dropped) and the window; between calls nothing is sent.
    pub fn run(&mut self, duration: Duration, interrupt: &Interrupt) -> anyhow::Result<Window> {
        let _ = (duration, interrupt);
        todo!()
    }
}
