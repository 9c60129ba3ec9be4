//! The load driver.

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

/// What one window saw. (fields: see the brief)
#[derive(Debug, Clone)]
pub struct Window {}

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
