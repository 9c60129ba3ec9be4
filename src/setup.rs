//! Brings what a measurement needs: the bench folder, the state folder, the peers, the database, and the right to measure.
//!
//! Everything here may take minutes on a fresh checkout and nothing on the next run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use nix::fcntl::OFlag;

use crate::interrupt::Interrupt;
use crate::peer;
use crate::postgres::{self, Cluster, ClusterOptions};
use crate::progress::Progress;

/// What was said on the command line about the surroundings; empty is the usual case.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder with `peers.toml`.
    pub bench: Option<PathBuf>,
    /// A database of one's own instead of the private cluster.
    pub database_url: Option<String>,
    /// Binaries for the private cluster instead of the pinned ones.
    pub postgres_bin: Option<PathBuf>,
}

/// What is there now.
#[derive(Debug)]
pub struct Environment {
    /// The folder with `peers.toml`.
    pub bench: PathBuf,
    /// The state folder.
    pub home: PathBuf,
    /// This process's share in the private cluster; `None` with a database of one's own.
    pub cluster: Option<Cluster>,
    /// Password included: for servers and connections, never for people.
    pub database_url: String,
}

/// Installs the peers and brings the database up.
pub fn prepare(options: &Options, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Environment> {
    let bench = bench_folder(options.bench.as_deref())?;
    let home = postgres::default_home();
    peer::install(&bench, progress, interrupt)?;
    interrupt.check()?;
    if let Some(url) = &options.database_url {
        postgres::prepare(url, progress, interrupt)?;
        return Ok(Environment { bench, home, cluster: None, database_url: url.clone() });
    }
    let cluster = private_cluster(options, &bench, false);
    let cluster = Cluster::acquire(&cluster, progress, interrupt)?;
    let database_url = cluster.url().to_owned();
    Ok(Environment { bench, home, cluster: Some(cluster), database_url })
}

/// How the private cluster is to be started by a command that measures nothing: without npm, the system's Postgres will do.
pub fn cluster_options(
    options: &Options,
    keep: bool,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<ClusterOptions> {
    let bench = bench_folder(options.bench.as_deref())?;
    if options.postgres_bin.is_none()
        && let Err(error) = peer::install(&bench, progress, interrupt)
    {
        interrupt.check()?;
        progress.note(&format!("the pinned Postgres is not here, looking for another: {error:#}"));
    }
    Ok(private_cluster(options, &bench, keep))
}

fn private_cluster(options: &Options, bench: &Path, keep: bool) -> ClusterOptions {
    ClusterOptions {
        home: postgres::default_home(),
        binaries: options.postgres_bin.clone(),
        pinned: peer::pinned_postgres(bench),
        keep,
    }
}

/// The folder with `peers.toml`: the one asked for, else the nearest from the current folder upwards.
pub fn bench_folder(asked: Option<&Path>) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("the current folder cannot be read")?;
    find_bench(asked, &here)
}

const CATALOGUE: &str = "peers.toml";

fn find_bench(asked: Option<&Path>, here: &Path) -> anyhow::Result<PathBuf> {
    if let Some(asked) = asked {
        if asked.join(CATALOGUE).is_file() {
            return fs::canonicalize(asked).with_context(|| format!("{} cannot be entered", asked.display()));
        }
        bail!("{} has no {CATALOGUE}: name the bench folder of a checkout", asked.display());
    }
    let mut above = here.ancestors().map(|folder| folder.join("bench"));
    let found = above.find(|bench| bench.join(CATALOGUE).is_file());
    found.with_context(|| {
        format!(
            "no bench/{CATALOGUE} in {} or above it: go into a checkout, or name its bench folder with --bench",
            here.display()
        )
    })
}

/// The right to measure on this host, for this user: two runs at once would measure each other.
#[derive(Debug)]
pub struct MeasureLock {
    file: File,
}

impl MeasureLock {
    /// Takes it, or says who has it.
    pub fn take(home: &Path) -> anyhow::Result<Self> {
        // Also the run files of servers lie there, by which a later run ends what a killed one left.
        postgres::claim_home(home)?;
        let path = home.join("measure.lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(&path)
            .with_context(|| format!("failed to open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = holder(&mut file);
                bail!(
                    "another measuring run is going on ({holder}): wait for it or end it, two at once measure each other"
                );
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("failed to lock {}", path.display()));
            }
        }
        let pid = std::process::id().to_string();
        let written = file.set_len(0).and_then(|()| file.write_all(pid.as_bytes()));
        written.with_context(|| format!("failed to write {}", path.display()))?;
        Ok(Self { file })
    }
}

impl Drop for MeasureLock {
    fn drop(&mut self) {
        // Not by closing alone: a child forked at this moment holds a copy until it runs its own program.
        let _ = self.file.unlock();
    }
}

/// Whoever holds the lock has written its process id, or is about to.
fn holder(file: &mut File) -> String {
    /// A process id has at most ten digits.
    const LONGEST: u64 = 10;
    let mut text = String::new();
    match file.take(LONGEST).read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("pid {}", text.trim()),
        _ => "pid unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_bench(folder: &Path) -> PathBuf {
        let bench = folder.join("bench");
        fs::create_dir_all(&bench).unwrap();
        fs::write(bench.join(CATALOGUE), "").unwrap();
        bench
    }

    #[test]
    fn the_bench_folder_is_the_one_asked_for_or_the_nearest_above() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (outer, asked) = (root.join("outer"), root.join("asked"));
        let deep = outer.join("a/b");
        fs::create_dir_all(&deep).unwrap();
        let (outer_bench, asked_bench) = (with_bench(&outer), with_bench(&asked));
        assert_eq!(find_bench(Some(&asked_bench), &deep).unwrap(), asked_bench);
        assert_eq!(find_bench(None, &deep).unwrap(), outer_bench);
        let error = find_bench(None, &root).unwrap_err().to_string();
        assert!(error.contains("--bench") && !error.contains('\n'), "{error}");
        let error = find_bench(Some(&deep), &deep).unwrap_err().to_string();
        assert!(error.contains("has no peers.toml"), "{error}");
    }

    #[test]
    fn a_second_measuring_run_is_refused_with_the_pid_of_the_first() {
        let home = tempfile::tempdir().unwrap();
        let first = MeasureLock::take(home.path()).unwrap();
        let error = MeasureLock::take(home.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("pid {}", std::process::id())), "{error}");
        drop(first);
        MeasureLock::take(home.path()).unwrap();
    }

    #[test]
    fn a_pid_longer_than_the_next_one_leaves_no_digits_behind() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("measure.lock"), "4294967295").unwrap();
        let _held = MeasureLock::take(home.path()).unwrap();
        assert_eq!(fs::read_to_string(home.path().join("measure.lock")).unwrap(), std::process::id().to_string());
    }
}
