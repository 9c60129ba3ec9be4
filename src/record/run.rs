//! `run.json`: under which conditions was measured.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The whole of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`super::SCHEMA`] of the writer.
    pub schema: u32,
    /// When the run began.
    pub started_at: Timestamp,
    /// When it was taken up again, each time.
    #[serde(default)]
    pub resumed_at: Vec<Timestamp>,
    /// `0.1.0`.
    pub headroom_version: String,
    /// Commit of the checkout, `+changes` after it where the work tree differs. `None` where there is no git.
    pub git_commit: Option<String>,
    /// The program, and with it the native rows, was built without optimisation: no ceiling.
    pub debug_build: bool,
    /// How long, how often, over which limits.
    pub settings: Settings,
    /// In the order asked for, which is the order of every table.
    pub servers: Vec<Server>,
    /// What the host is, as `host::Facts` wrote it. Kept as JSON: a report prints what is there, whatever version wrote it.
    pub host: Value,
    /// The database behind the servers.
    pub postgres: Postgres,
    /// By server; absent until its gate has run.
    #[serde(default)]
    pub gates: BTreeMap<String, Gate>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// `quick`, `standard` or `paper`: how long.
    pub profile: String,
    /// The suite the servers, routes and conditions come from.
    pub suite: Option<String>,
    /// Names, in table order.
    pub routes: Vec<String>,
    /// Connections of the driver.
    pub connections: Vec<u32>,
    /// Every cell once a round.
    pub rounds: u32,
    /// Before every window.
    pub warmup_s: f64,
    /// Before the first window of each process.
    pub first_warmup_s: f64,
    /// Asked for; a row's own `window_s` is what it took.
    pub window_s: f64,
    /// Between the warm-up's last reply and the window's first request.
    pub pause_s: f64,
    /// An invalid window is measured again until the cell has this many.
    pub max_attempts: u32,
    /// Threads of the driver.
    pub driver_threads: u32,
    /// Requests vary from this seed; `None`: the contract's examples only.
    pub seed: Option<u64>,
    /// One reply in this many has its body compared.
    pub check_every: u32,
    /// What voids a window.
    pub limits: Limits,
    /// Of the suite, in reading order; those that follow each other are multiplied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
}

/// Two servers that a suite wants compared, so that a difference between far ones is split into its parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Before.
    pub from: String,
    /// After.
    pub to: String,
    /// What the second one does otherwise, in a few words.
    pub changes: String,
}

/// What voids a window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// CPU of everyone but server, Postgres and this process, as a share of the host.
    pub max_foreign_cpu_share: f64,
    /// CPU the hypervisor took, as a share of the host.
    pub max_steal_share: f64,
    /// Postgres connections of a server, however many processes it runs.
    pub max_postgres_connections: u32,
}

/// How many CPUs a server's processes may keep busy. Ratios never mix the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    /// One process or worker.
    One,
    /// As many as the host has.
    All,
}

impl Cores {
    /// As reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::All => "all",
        }
    }
}

/// A server and the facts that decide what its row may be compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    /// `express-node`.
    pub name: String,
    /// `Express 5 on Node, postgres.js`.
    pub label: String,
    /// `reference`, `idiomatic`, `tuned` or `engine`.
    pub class: String,
    /// One of ours: a base of ratios, never a peer.
    pub native: bool,
    /// `Node`, `Bun`, `Rust`.
    pub runtime: String,
    /// `Express`, `Elysia`, `axum`.
    pub framework: String,
    /// How SQL reaches Postgres: `Bun SQL`, `Drizzle on postgres.js`.
    pub driver: String,
    /// Statements are prepared once and executed by name.
    pub prepared: bool,
    /// Several queries in flight on one connection.
    pub pipelined: bool,
    /// What its row may be compared with.
    pub cores: Cores,
    /// Processes that answer requests.
    pub processes: u32,
    /// Of the runtime, the framework, the driver.
    pub versions: BTreeMap<String, String>,
}

/// The database behind the servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postgres {
    /// `17.10`.
    pub version: String,
    /// Every setting that differs from Postgres's default.
    pub settings: BTreeMap<String, String>,
    /// Its processes can be seen, so that their CPU is known.
    pub visible: bool,
}

/// What the parity gate found on a server's first start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Every core check passed; without it nothing of the server is measured.
    pub passed: bool,
    /// Checks that ran.
    pub checks: usize,
    /// What gates.
    pub core_failures: Vec<Difference>,
    /// What is reported only.
    pub strict_differences: Vec<Difference>,
    /// The gate could not run at all, and why.
    pub error: Option<String>,
}

/// A check that a server did not meet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// `user-int4-overflow`.
    pub id: String,
    /// What the check proves.
    pub proves: String,
    /// What differed.
    pub difference: String,
}
