//! The private cluster, seeding, reset, marker, activity counts. Blocking: the harness is synchronous.

use std::path::PathBuf;

use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Where the cluster lives and which binaries run it.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// State folder: `HEADROOM_HOME`, else `/var/tmp/headroom-UID`.
    pub home: PathBuf,
    /// `--postgres-bin`: a folder with `postgres` and `initdb`.
    pub binaries: Option<PathBuf>,
    /// The folder of the pinned binaries, where they are installed.
    pub pinned: Option<PathBuf>,
    /// `postgres start`: stays up when this process ends.
    pub keep: bool,
}

/// A share in the private cluster. The last share dropped stops it, unless it was asked to stay up.
#[derive(Debug)]
pub struct Cluster {}

/// A setting that differs from Postgres's default, or that the measurement depends on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting {
    /// As in `pg_settings`.
    pub name: String,
    /// As Postgres prints it, with its unit.
    pub value: String,
}

impl Cluster {
    /// Starts the cluster or joins the running one; creates, seeds and checks the database where needed.
    pub fn acquire(options: &ClusterOptions, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let _ = (options, progress, interrupt);
        todo!()
    }
    /// URL of the main database (`postgres://…@127.0.0.1:PORT/headroom?sslmode=disable`), password included.
    pub fn url(&self) -> &str {
        todo!()
    }
    /// `17.10`.
    pub fn version(&self) -> &str {
        todo!()
    }
    /// A fresh seeded and marked database of that name (copied from the seed), for tests; its URL.
    pub fn create_database(&self, name: &str) -> anyhow::Result<String> {
        let _ = name;
        todo!()
    }
    /// Drops a database made by `create_database`, ending its sessions.
    pub fn drop_database(&self, name: &str) -> anyhow::Result<()> {
        let _ = name;
        todo!()
    }
}

/// Makes an external database the contract's, or refuses it.
pub fn prepare(url: &str, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    let _ = (url, progress, interrupt);
    todo!()
}

/// A marked database, for administration and counts.
#[derive(Debug)]
pub struct Database {}

/// An order as stored, read back as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredOrder {
    /// Primary key.
    pub id: i32,
    /// Owner.
    pub user_id: i32,
    /// `19.99`.
    pub amount: String,
    /// `USD`.
    pub currency: String,
    /// Microseconds after the Unix epoch.
    pub created_at_us: i64,
}

impl Database {
    /// Connects; refuses, before any statement that changes something, a database without the marker.
    pub fn connect(url: &str) -> anyhow::Result<Self> {
        let _ = url;
        todo!()
    }
    /// Orders above the seed deleted, sequence set back, `VACUUM (FULL, ANALYZE) orders`.
    pub fn reset_orders(&mut self) -> anyhow::Result<()> {
        todo!()
    }
    /// `CHECKPOINT`.
    pub fn checkpoint(&mut self) -> anyhow::Result<()> {
        todo!()
    }
    /// Checkpoints finished since the cluster started (timed + requested): a change inside a window voids it.
    pub fn checkpoints(&mut self) -> anyhow::Result<u64> {
        todo!()
    }
    /// Client backends on this database, without this connection.
    pub fn client_backends(&mut self) -> anyhow::Result<u32> {
        todo!()
    }
    /// Waits (bounded) until no other session is left on this database, then `xact_commit` from `pg_stat_database`.
    pub fn transactions(&mut self) -> anyhow::Result<u64> {
        todo!()
    }
    /// Reads an order back.
    pub fn order(&mut self, id: i32) -> anyhow::Result<Option<StoredOrder>> {
        let _ = id;
        todo!()
    }
    /// Rows in `orders`.
    pub fn order_count(&mut self) -> anyhow::Result<u64> {
        todo!()
    }
    /// Process id of the postmaster when the server runs on this host and can be seen in `/proc`, for its CPU time.
    pub fn postmaster_pid(&mut self) -> anyhow::Result<Option<i32>> {
        todo!()
    }
    /// Every setting that differs from the default.
    pub fn settings(&mut self) -> anyhow::Result<Vec<Setting>> {
        todo!()
    }
    /// Server version, `17.10`.
    pub fn version(&mut self) -> anyhow::Result<String> {
        todo!()
    }
}
