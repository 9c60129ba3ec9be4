//! The load driver: keeps a number of connections busy and says what came back.
//!
//! Closed loop: every connection sends its next request when the reply to the last one is whole. Open loop: requests are
//! due at fixed times, whatever the server does. One epoll loop a thread, no allocation and no atomic on the way of a
//! request. [`Engine`] connects and drives, [`Window`] is what it saw, [`judge`] says whether that is valid, [`Report`]
//! and [`text`] are how it is written down. [`mix`] and [`template`] write requests out that differ, [`Condition`] is what
//! is asked of a window, [`capacity`] searches the highest rate that keeps one. Nothing here knows what a server runs or
//! what a route means.

pub mod capacity;
mod condition;
mod connection;
mod endpoint;
mod engine;
mod errors;
mod http1;
mod limits;
pub mod mix;
mod pacer;
mod pool;
mod report;
mod schedule;
mod script;
mod staircase;
mod stream;
mod tally;
mod target;
pub mod template;
pub mod text;
mod thread;
mod verdict;
mod window;

use std::time::Duration;

use crate::contract;

pub use condition::Condition;
pub use endpoint::{Endpoint, Trust};
pub use engine::{Engine, Live, Load};
pub use errors::ErrorKind;
pub use report::{OpenReport, ReasonReport, Report};
pub use target::{locate, resolve};
pub use verdict::{Reason, judge};
pub use window::{Driver, Failure, LatencySummary, Open, Window};

/// What to send, to whom, over how many connections.
#[derive(Debug, Clone)]
pub struct Config {
    /// The one literal address, or Unix socket, everything connects to.
    pub endpoint: Endpoint,
    /// Value of the `host` header.
    pub host: String,
    /// Connections held open, spread exactly over the threads.
    pub connections: usize,
    /// Driver threads, each with one epoll loop.
    pub threads: usize,
    /// A reply slower than this ends its connection and counts as `timeout`.
    pub timeout: Duration,
    /// Longest wait after a window for replies to what was sent inside it.
    pub drain: Duration,
    /// Sent in order, from a different start on every connection.
    pub requests: Vec<Request>,
    /// `Some(201)`: only this status counts. `None`: any 2xx.
    pub success_status: Option<u16>,
    /// One reply in this many has its whole body compared with the expected one; 0 = none.
    pub check_every: u32,
    /// `false`: a new connection for every request. The requests should say `connection: close`.
    pub keeps_alive: bool,
    /// Threads look for replies without sleeping: no wake-up is in the latencies, and each takes a whole CPU.
    pub spins: bool,
}

/// One request, rendered by the engine once with the `host` header.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Any method but CONNECT.
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

/// A request of the contract as the driver takes it.
pub fn render(request: contract::Request) -> Request {
    Request {
        method: request.method.to_owned(),
        target: request.target,
        headers: request.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        body: request.body,
        expected: Some(request.expected),
    }
}
