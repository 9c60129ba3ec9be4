//! One line of `servers.jsonl`: one life of one server, from its start to its end.
//!
//! What can only be counted over a whole life (statements: Postgres backends publish their counters late) voids the
//! windows of that life afterwards. The rows in `windows.jsonl` stay as they were written; the reader applies it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Reason;

/// A server's life in a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// [`super::SCHEMA`] of the writer.
    pub schema: u32,
    /// Counts up over the record, from 1.
    pub life: u32,
    /// Name of the server.
    pub server: String,
    /// From 1.
    pub round: u32,
    /// When its process was started.
    pub started_at: Timestamp,
    /// From start to the first 200 of `GET /health`; `None` where it never came.
    pub ready_ns: Option<u64>,
    /// Memory of its process tree before the first request of the load.
    pub idle_rss_bytes: Option<u64>,
    /// Replies that count on routes that must execute a statement, warm-ups included.
    pub database_requests_ok: u64,
    /// Transactions committed in its database between start and exit, the harness's own few included.
    pub transactions: Option<u64>,
    /// Most client backends seen at once.
    pub postgres_connections: Option<u32>,
    /// What voids windows of this life.
    pub voids: Vec<Void>,
    /// It did not live to be stopped.
    pub failure: Option<Failure>,
}

/// A reason that was only known once the life was over, and the windows it voids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Void {
    /// Names of the routes.
    pub routes: Vec<String>,
    /// Why.
    #[serde(flatten)]
    pub reason: Reason,
}

/// How a life ended that should not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// When.
    pub stage: Stage,
    /// `exited with status 3: …`.
    pub why: String,
}

/// Where in its life a server failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Never answered.
    Start,
    /// Missed a core check, or the gate could not run.
    Gate,
    /// Died while it was measured.
    Load,
}
