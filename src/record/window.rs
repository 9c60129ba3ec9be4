//! One line of `windows.jsonl`: what one window of one cell saw.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A measured window, valid or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// [`super::SCHEMA`] of the writer.
    pub schema: u32,
    /// When its first request was sent.
    pub started_at: Timestamp,
    /// Name of the server.
    pub server: String,
    /// Name of the route.
    pub route: String,
    /// Connections asked for.
    pub connections: u32,
    /// From 1.
    pub round: u32,
    /// From 1; higher where earlier windows of the cell were invalid.
    pub attempt: u32,
    /// The server's life it belongs to, see [`super::Life`].
    pub life: u32,
    /// No reason speaks against it.
    pub valid: bool,
    /// All of them.
    pub invalid_reasons: Vec<Reason>,
    /// From the first request to the end of sending.
    pub window_s: Option<f64>,
    /// Replies that count.
    pub requests_ok: u64,
    /// `None` where the window had no length.
    pub requests_per_s: Option<f64>,
    /// By second of the window, the last one may be a part of one: drift shows here.
    pub ok_per_second: Vec<u64>,
    /// Replies that count and came after the end of the window: in the latencies and in the CPU of server and Postgres
    /// per request, not in the rate.
    pub drained: u64,
    /// Closed loop: mostly connections ÷ rate.
    pub latency_ns: Latency,
    /// By part.
    pub cpu_ns_per_request: CpuPerRequest,
    /// Of the server's process tree at the end.
    pub rss_bytes: Option<u64>,
    /// High-water mark within the window, each process's own, summed.
    pub peak_rss_bytes: Option<u64>,
    /// By kind.
    pub errors: BTreeMap<String, u64>,
    /// Replies that did not count, by status.
    pub statuses: BTreeMap<String, u64>,
    /// The first of them, one line.
    pub first_failure: Option<String>,
    /// Replies whose body was compared.
    pub bodies_checked: u64,
    /// Heads included, within the window.
    pub bytes_read: u64,
    /// Heads included, within the window.
    pub bytes_written: u64,
    /// Sent and never answered, although the driver waited after the window.
    pub unfinished: u64,
    /// Age of the oldest of them.
    pub unfinished_oldest_ns: Option<u64>,
    /// Established.
    pub connections_open: u32,
    /// Closed by an error.
    pub connections_lost: u64,
    /// Without a single reply in the whole window.
    pub connections_never_served: u32,
    /// Made again because they were closed while idle.
    pub reconnects: u64,
    /// Connections that the server closed after a whole reply.
    pub closed_by_server: u64,
    /// Share of the window the driver's busiest thread ran.
    pub driver_busy_share: Option<f64>,
    /// CPU of everyone but server, Postgres and this process. Slightly negative values come from the kernel's ticks.
    pub foreign_cpu_share: Option<f64>,
    /// CPU the hypervisor took.
    pub steal_share: Option<f64>,
    /// CPU nobody used.
    pub host_idle_share: Option<f64>,
    /// Most client backends of the server seen at once in the window.
    pub postgres_connections: Option<u32>,
}

/// Why a window does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    /// Stable: `foreign_cpu`.
    pub name: String,
    /// With values: `7.2 % of the host went to other processes, at most 5 % may`.
    pub text: String,
}

impl Reason {
    /// A reason of that name.
    pub fn new(name: &str, text: impl Into<String>) -> Self {
        Self { name: name.to_owned(), text: text.into() }
    }
}

/// Time from sending a request to its whole reply. `None` where there were too few samples to say, or where the figure
/// lies among requests that were never answered: these took longer than all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Smallest.
    pub min: Option<u64>,
    /// Average.
    pub mean: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90 of 100 were faster.
    pub p90: Option<u64>,
    /// 99 of 100 were faster.
    pub p99: Option<u64>,
    /// 999 of 1,000 were faster.
    pub p99_9: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
}

/// CPU time divided by the replies that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuPerRequest {
    /// The server's process tree.
    pub server: Option<u64>,
    /// The postmaster's process tree; `None` where it cannot be seen.
    pub postgres: Option<u64>,
    /// The driver's threads.
    pub driver: Option<u64>,
}

impl CpuPerRequest {
    /// What CPU headroom compares: server plus Postgres.
    pub fn server_and_postgres(&self) -> Option<u64> {
        Some(self.server? + self.postgres?)
    }
}

impl Window {
    /// Adds a reason found after the row was written.
    pub fn invalidate(&mut self, reason: &Reason) {
        self.valid = false;
        if !self.invalid_reasons.contains(reason) {
            self.invalid_reasons.push(reason.clone());
        }
    }
}
