//! The private cluster, seeding, reset, marker, activity counts. Blocking: the harness is synchronous.
//!
//! - [`Cluster`] is a share in a Postgres of headroom's own: started by the first user, stopped by the last.
//! - [`Database`] is a connection to a database that carries the marker; any other is refused before anything in it changes.
//! - [`prepare`] makes an empty database of somebody's own ready.
//! - [`stop`], [`url`] and [`reset`] are what a person does to the cluster by hand.
//!
//! What does not live here: the server's own access to the database, and any judgement of what was counted.

mod account;
mod binaries;
mod child;
mod cluster;
mod control;
mod copy;
mod database;
mod databases;
mod home;
mod initdb;
mod lock;
mod owner;
mod postmaster;
mod seed;
mod session;
mod settings;
mod target;

use std::path::PathBuf;

pub use cluster::Cluster;
pub use control::{StopOutcome, reset, stop, url};
pub use database::Database;
pub use home::{claim_home, default_home};
pub use seed::prepare;

/// Where the cluster lives and which binaries run it.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// State folder: `HEADROOM_HOME`, else `/var/tmp/headroom-UID` ([`default_home`]).
    pub home: PathBuf,
    /// `--postgres-bin`: a folder with `postgres` and `initdb`.
    pub binaries: Option<PathBuf>,
    /// The folder of the pinned binaries, where they are installed.
    pub pinned: Option<PathBuf>,
    /// `postgres start`: stays up when this process ends.
    pub keep: bool,
}

/// A setting that differs from Postgres's default, or that the measurement depends on.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Setting {
    /// As in `pg_settings`.
    pub name: String,
    /// As Postgres prints it, with its unit.
    pub value: String,
}

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
