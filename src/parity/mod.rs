//! The parity gate.

use std::net::SocketAddr;
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::postgres::Database;

/// What to check and how far to go.
#[derive(Debug)]
pub struct Options<'a> {
    /// The server's literal address.
    pub address: SocketAddr,
    /// Value of the `host` header.
    pub host: String,
    /// Signs the tokens; the server under test must use the same.
    pub jwt_secret: String,
    /// The database behind the server, when it is known: orders are read back and counted.
    pub database: Option<&'a mut Database>,
    /// Orders may be posted without proof by reads that the data is the contract's.
    pub allow_writes: bool,
    /// For one reply.
    pub timeout: Duration,
}

/// Core gates, strict is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// A server that misses one is not measured.
    Core,
    /// Reported, never a gate.
    Strict,
}

/// One check's outcome.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Outcome {
    /// `user-int4-overflow`.
    pub id: String,
    /// Core or strict.
    pub level: Level,
    /// What it proves, one sentence.
    pub proves: String,
    /// `None` = passed; else what differed, one line.
    pub failure: Option<String>,
}

/// All outcomes, in order.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// One each check.
    pub outcomes: Vec<Outcome>,
}

impl Verdict {
    /// Every core check passed.
    pub fn passed(&self) -> bool {
        todo!()
    }
}

/// Runs every check; an `Err` means the gate could not run at all (no connection, writes not allowed).
pub fn run(options: Options<'_>, interrupt: &Interrupt) -> anyhow::Result<Verdict> {
    let _ = (options, interrupt);
    todo!()
}
