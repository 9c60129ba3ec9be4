//! `bench/peers.toml`: install, version, start, ready, stop. Ours are entries like any other.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Every server the harness knows.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// In the order of the file.
    pub servers: Vec<Spec>,
}

/// One `[[peer]]` entry.
#[derive(Debug, Clone)]
pub struct Spec {
    /// `express-node`.
    pub name: String,
    /// For people.
    pub label: String,
    /// What kind of code it is.
    pub class: Class,
    /// Ours.
    pub native: bool,
    /// `node`.
    pub runtime: String,
    /// `express`.
    pub framework: String,
    /// `postgres.js`.
    pub driver: String,
    /// Statements are prepared.
    pub prepared: bool,
    /// Several queries in flight on a connection.
    pub pipelined: bool,
    /// How many cores it is made to use.
    pub cores: Cores,
    /// Processes it runs.
    pub processes: u32,
}

/// What kind of code a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Ours, tuned: what the others are compared with.
    Reference,
    /// As the documentation of its framework shows.
    Idiomatic,
    /// As an expert would who knows the bench.
    Tuned,
    /// No framework: the runtime's own HTTP server.
    Engine,
}

/// How many cores a server is made to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    /// One thread runs its code.
    One,
    /// As many as it may.
    All,
}

/// Versions of what a server is made of.
pub fn versions(spec: &Spec, bench: &Path) -> anyhow::Result<std::collections::BTreeMap<String, String>> {
    let _ = (spec, bench);
    todo!()
}

/// Ends servers that a killed run left behind.
pub fn sweep(state: &Path) -> Vec<String> {
    let _ = state;
    todo!()
}

/// Runs the entry's `build`, where it has one.
pub fn build(
    spec: &Spec,
    bench: &Path,
    log: &Path,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let _ = (spec, bench, log, progress, interrupt);
    todo!()
}

impl Catalogue {
    /// Reads and checks `bench/peers.toml`.
    pub fn load(bench: &Path) -> anyhow::Result<Self> {
        let _ = bench;
        todo!()
    }
    /// By name; the error lists the names there are.
    pub fn find(&self, name: &str) -> anyhow::Result<&Spec> {
        let _ = name;
        todo!()
    }
}

/// `npm ci` in `bench/peers` unless what is installed already matches the lockfile.
pub fn install(bench: &Path, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    let _ = (bench, progress, interrupt);
    todo!()
}

/// Folder of the pinned Postgres (with `bin/`), where it is installed.
pub fn pinned_postgres(bench: &Path) -> Option<PathBuf> {
    let _ = bench;
    todo!()
}

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// The `bench` folder.
    pub bench: &'a Path,
    /// The state folder: what is running is recorded there.
    pub state: &'a Path,
    /// Passed as `DATABASE_URL`.
    pub database_url: &'a str,
    /// Passed as `JWT_SECRET`.
    pub jwt_secret: &'a str,
    /// stdout and stderr go here, drained and bounded.
    pub log: PathBuf,
    /// How long until it must answer.
    pub ready_timeout: Duration,
}

/// A running server and everything it started.
#[derive(Debug)]
pub struct Running {}

impl Running {
    /// Starts the server on a free port and waits until `GET /health` answers 200.
    pub fn start(spec: &Spec, launch: &Launch<'_>, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let _ = (spec, launch, interrupt);
        todo!()
    }
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        todo!()
    }
    /// Root of its process tree.
    pub fn pid(&self) -> i32 {
        todo!()
    }
    /// `Some(why)` once it is gone: `exited with status 3: last lines of its log`.
    pub fn death(&mut self) -> Option<String> {
        todo!()
    }
    /// Whether the server, and nobody else, listens on its port.
    pub fn check_port(&self) -> anyhow::Result<()> {
        todo!()
    }
    /// SIGTERM, a bounded wait, SIGKILL for what is left of the tree. Also on drop.
    pub fn stop(self) -> anyhow::Result<()> {
        todo!()
    }
}
