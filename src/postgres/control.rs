//! What `headroom postgres` does to the private cluster: stop, url, reset. (`start` is [`Cluster::acquire`] with `keep`.)

use std::path::Path;

use anyhow::{Context, bail};

use super::ClusterOptions;
use super::cluster::{Cluster, Main};
use super::databases::MAIN;
use super::home::Home;
use super::lock;
use super::owner::Owner;
use super::postmaster::{Postmaster, sweep};
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Silent};

/// What `stop` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopOutcome {
    /// It ran and was stopped.
    Stopped,
    /// Nothing ran.
    NotRunning,
    /// Others use it: it is no longer kept, and stops when they end.
    InUse {
        /// Process ids of its users.
        users: Vec<String>,
    },
}

/// Stops the cluster, or lets it end with its last user.
pub fn stop(home: &Path, interrupt: &Interrupt) -> anyhow::Result<StopOutcome> {
    let Some(home) = Home::existing(home)? else { return Ok(StopOutcome::NotRunning) };
    let _start_lock = home.lock(&Silent, interrupt)?;
    let users = lock::users(&home.users(), None)?;
    let record = Owner::read(&home)?.filter(Owner::is_alive);
    let Some(mut owner) = record else {
        if !users.is_empty() {
            bail!(
                "the postgres in {} is gone while {} others use it (process {}): end them first",
                home.path().display(),
                users.len(),
                users.join(", ")
            );
        }
        // Also what no record names: a start that was killed.
        sweep(&home, interrupt)?;
        Owner::remove(&home)?;
        return Ok(StopOutcome::NotRunning);
    };
    if !users.is_empty() {
        owner.keep = false;
        owner.write(&home)?;
        return Ok(StopOutcome::InUse { users });
    }
    Postmaster::running(owner).stop()?;
    Owner::remove(&home)?;
    Ok(StopOutcome::Stopped)
}

/// URL of the main database of the running cluster, password included.
pub fn url(home: &Path) -> anyhow::Result<String> {
    let owner = match Home::existing(home)? {
        Some(home) => Owner::read(&home)?.filter(Owner::is_alive),
        None => None,
    };
    let owner = owner
        .with_context(|| format!("no postgres runs in {}: start it with `headroom postgres start`", home.display()))?;
    Ok(owner.url(MAIN))
}

/// Makes the main database anew from the seed; starts the cluster for it where none runs.
pub fn reset(options: &ClusterOptions, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    Cluster::acquire_with(options, Main::Recreated, progress, interrupt)?.leave()
}
