//! A share in the private cluster: the first one starts it, the last one stops it.
//!
//! Whoever starts, joins, seeds or stops holds the start lock, so each of these sees a settled state. Nothing is believed
//! because a file says so: users are locked files, Postgres is a held lock and a verified process.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};

use super::ClusterOptions;
use super::binaries::{self, Binaries};
use super::databases::{self, MAIN};
use super::home::Home;
use super::lock::{Lock, Share};
use super::owner::Owner;
use super::postmaster::{Postmaster, sweep};
use super::{copy, initdb};
use crate::interrupt::Interrupt;
use crate::progress::{Progress, Silent};

/// A share in the private cluster. The last share dropped stops it, unless it was asked to stay up.
pub struct Cluster {
    home: Home,
    url: String,
    version: String,
    /// Taken out when the share is given back.
    held: Mutex<Option<Held>>,
}

struct Held {
    share: Share,
    postmaster: Postmaster,
    /// While the cluster is being acquired; afterwards taken again to leave.
    start_lock: Option<Lock>,
}

/// What is wanted of the main database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Main {
    /// As it is, if its seeded rows are right.
    Checked,
    /// Made anew from the seed.
    Recreated,
}

impl Cluster {
    /// Starts the cluster or joins the running one; creates, seeds and checks the database where needed.
    pub fn acquire(options: &ClusterOptions, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Self> {
        Self::acquire_with(options, Main::Checked, progress, interrupt)
    }

    pub(super) fn acquire_with(
        options: &ClusterOptions,
        main: Main,
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        let home = Home::open(&options.home)?;
        let start_lock = home.lock(progress, interrupt)?;
        let share = Share::take(&home.users())?;
        let others = share.others(&home.users())?;
        let binaries = binaries::choose(options, &home, interrupt)?;
        let joined = join(&home, &binaries, &others, progress, interrupt)?;
        let fresh = joined.is_none();
        let postmaster = match joined {
            Some(postmaster) => postmaster,
            None => start(&home, &binaries, progress, interrupt)?,
        };
        let cluster = Self {
            url: postmaster.owner.url(MAIN),
            version: postmaster.owner.version.clone(),
            held: Mutex::new(Some(Held { share, postmaster, start_lock: Some(start_lock) })),
            home,
        };
        // From here on dropping the cluster leaves it, and stops it where nobody else is in.
        cluster.settle(options, main, fresh, &others, progress, interrupt)?;
        Ok(cluster)
    }

    /// Makes the databases ready, records who keeps the cluster, and lets others in.
    fn settle(
        &self,
        options: &ClusterOptions,
        main: Main,
        fresh: bool,
        others: &[String],
        progress: &dyn Progress,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_mut().context("the cluster was left")?;
        let owner = &mut held.postmaster.owner;
        databases::ensure(owner, main, others, progress, interrupt)?;
        if options.keep && !owner.keep {
            owner.keep = true;
            owner.write(&self.home)?;
        }
        if fresh {
            progress.note(&format!(
                "postgres {} in {} on port {}, as user {}",
                owner.version,
                self.home.path().display(),
                owner.port,
                self.home.account.name
            ));
        }
        held.start_lock = None;
        Ok(())
    }

    /// URL of the main database (`postgres://…@127.0.0.1:PORT/headroom?sslmode=disable`), password included.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `17.10`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// A fresh seeded and marked database of that name (copied from the seed), for tests; its URL.
    ///
    /// It is dropped by [`Cluster::drop_database`], or when the next user finds the cluster without users. Dropping runs a checkpoint.
    pub fn create_database(&self, name: &str) -> anyhow::Result<String> {
        self.with_owner(|owner| databases::create_temporary(owner, name))
    }

    /// Drops a database made by `create_database`, ending its sessions. Postgres runs a checkpoint with it.
    pub fn drop_database(&self, name: &str) -> anyhow::Result<()> {
        self.with_owner(|owner| databases::drop_temporary(owner, name))
    }

    fn with_owner<T>(&self, work: impl FnOnce(&Owner) -> anyhow::Result<T>) -> anyhow::Result<T> {
        // Copied out of the lock: tests create their databases side by side.
        let owner = {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.as_ref().context("the cluster was left")?.postmaster.owner.clone()
        };
        work(&owner)
    }

    /// Gives the share back as dropping it does, and tells what went wrong.
    pub fn leave(self) -> anyhow::Result<()> {
        self.give_back()
    }

    fn give_back(&self) -> anyhow::Result<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Held { share, mut postmaster, start_lock }) = held else { return Ok(()) };
        // A signal has done its work by bringing us here: the way out is bounded by the lock's own limit.
        let calm = Interrupt::default();
        let _start_lock = match start_lock {
            Some(lock) => lock,
            None => self.home.lock(&Silent, &calm)?,
        };
        // Dropped before the lock: whoever takes that next must not count a user that is leaving.
        let share = share;
        let others = share.others(&self.home.users())?;
        // Somebody may have asked to keep it, or started another one, since this share was taken.
        let record = Owner::read(&self.home)?;
        let ours = record.as_ref().is_some_and(|record| {
            record.postmaster_pid == postmaster.owner.postmaster_pid
                && record.postmaster_start_ticks == postmaster.owner.postmaster_start_ticks
        });
        if ours && others.is_empty() && !record.is_some_and(|record| record.keep) {
            postmaster.stop()?;
            Owner::remove(&self.home)?;
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.give_back();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cluster({}, {})", self.home.path().display(), self.version)
    }
}

/// The running postmaster, if it is one we can use. One that we cannot use is stopped where nobody else uses it.
fn join(
    home: &Home,
    binaries: &Binaries,
    others: &[String],
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Postmaster>> {
    let users = || format!("{} others use it (process {})", others.len(), others.join(", "));
    let place = home.path().display();
    let Some(owner) = Owner::read(home)?.filter(Owner::is_alive) else {
        if others.is_empty() {
            return Ok(None);
        }
        bail!("the postgres in {place} is gone while {}: end them first", users());
    };
    let mut postmaster = Postmaster::running(owner);
    let owner = &postmaster.owner;
    if owner.binaries != binaries.folder {
        if !others.is_empty() {
            bail!(
                "the cluster in {place} runs postgres {} from {}, not {} from {}, and {}: wait for them or set \
                 HEADROOM_HOME to another folder",
                owner.version,
                owner.binaries.display(),
                binaries.version,
                binaries.folder.display(),
                users()
            );
        }
        progress.step(&format!("stopping postgres {} to run {} instead", owner.version, binaries.version));
        postmaster.stop()?;
        return Ok(None);
    }
    if postmaster.answers(interrupt)? {
        return Ok(Some(postmaster));
    }
    if !others.is_empty() {
        bail!("the postgres in {place} does not answer while {}: end them first", users());
    }
    progress.step("stopping a postgres that does not answer");
    postmaster.stop()?;
    Ok(None)
}

/// Starts a postmaster where none of ours runs.
fn start(
    home: &Home,
    binaries: &Binaries,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<Postmaster> {
    let running = sweep(home, interrupt)?;
    Owner::remove(home)?;
    home.sweep_unfinished()?;
    copy::sweep_others(home, &binaries.folder)?;
    let data = initdb::ensure(home, binaries, &running, progress, interrupt)?;
    progress.step(&format!("starting postgres {}", binaries.version));
    let started = Postmaster::start(home, binaries, &data, &running, interrupt);
    if started.is_err() {
        // The failed postmaster has been stopped; its record must not outlive it.
        let _ = Owner::remove(home);
    }
    started
}
