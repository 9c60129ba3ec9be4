//! Makes the data folder: under another name first, so that one with the right name is whole.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use rand::RngExt;
use rand::distr::Alphanumeric;

use super::binaries::Binaries;
use super::child::{Group, log_tail};
use super::home::{Home, make_folder, remove, write_secret};
use super::owner::SUPERUSER;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// `initdb` takes half a second; a minute says that something is wrong with the disk.
const INITDB_WAIT: Duration = Duration::from_mins(1);

/// 190 bits, and nothing a URL would have to escape.
const PASSWORD_CHARACTERS: usize = 32;

/// A data folder that `initdb` finished.
#[derive(Debug, Clone)]
pub(super) struct Data {
    pub(super) folder: PathBuf,
    pub(super) password: String,
}

/// The data folder of this major version, made where it is missing or incomplete. `running` is the lock that says a process
/// of Postgres is at work.
pub(super) fn ensure(
    home: &Home,
    binaries: &Binaries,
    running: &File,
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<Data> {
    let place = home.data(binaries.major);
    if let Some(data) = existing(&place) {
        return Ok(data);
    }
    // Without its password, or emptied by hand: of no use to anyone.
    remove(&place)?;
    progress.step("creating the private database cluster");
    let fresh = Home::unfinished(&place);
    remove(&fresh)?;
    let made = make(home, binaries, running, &fresh, interrupt);
    if made.is_err() {
        let _ = remove(&fresh);
    }
    made?;
    fs::rename(&fresh, &place).with_context(|| format!("failed to move {} into place", fresh.display()))?;
    existing(&place).with_context(|| format!("{} is incomplete right after initdb", place.display()))
}

fn existing(place: &Path) -> Option<Data> {
    let folder = place.join("pgdata");
    let password = fs::read_to_string(place.join("password")).ok().filter(|password| !password.is_empty())?;
    folder.join("PG_VERSION").is_file().then_some(Data { folder, password })
}

fn make(home: &Home, binaries: &Binaries, running: &File, fresh: &Path, interrupt: &Interrupt) -> anyhow::Result<()> {
    let account = &home.account;
    if !account.has_entry {
        bail!(
            "{} has no entry in the passwd database and initdb needs one: add it (`useradd --uid {} headroom`) or use a \
             database of your own with --database-url",
            account.name,
            account.uid
        );
    }
    make_folder(fresh, if account.drops_root { 0o711 } else { 0o700 })?;
    let folder = fresh.join("pgdata");
    make_folder(&folder, 0o700)?;
    let password: String = rand::rng().sample_iter(Alphanumeric).take(PASSWORD_CHARACTERS).map(char::from).collect();
    write_secret(&fresh.join("password"), password.as_bytes())?;
    // A copy that initdb, as its user, may read; gone as soon as it has.
    let password_file = fresh.join("password-for-initdb");
    write_secret(&password_file, password.as_bytes())?;
    if account.drops_root {
        for path in [&folder, &password_file] {
            chown(path, Some(account.uid), Some(account.gid))
                .with_context(|| format!("failed to give {} to user {}", path.display(), account.name))?;
        }
    }
    let outcome = run(home, binaries, running, &folder, &password_file, interrupt);
    remove(&password_file)?;
    outcome
}

fn run(
    home: &Home,
    binaries: &Binaries,
    running: &File,
    folder: &Path,
    password_file: &Path,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let log = home.log();
    let out = open_log(&log)?;
    let mut command = home.account.command(&binaries.initdb());
    command.arg("-D").arg(folder).args(["-U", SUPERUSER, "--auth=scram-sha-256"]);
    command.arg(format!("--pwfile={}", password_file.display()));
    // Fixed, so that text sorts and messages read the same on every host. The kind of dynamic shared memory is left to
    // initdb, which takes the first one that works here. Durability begins with the first checkpoint.
    command.args(["--locale=C", "--encoding=UTF8", "--no-sync", "--no-instructions"]);
    command.stdin(running.try_clone().context("failed to copy the running lock")?);
    command.stdout(out.try_clone().context("failed to open the log")?).stderr(Stdio::from(out));
    let program = binaries.initdb();
    let child = command.spawn().with_context(|| format!("failed to run {}", program.display()))?;
    let status = Group::new(child).wait("initdb", INITDB_WAIT, interrupt)?;
    if !status.success() {
        bail!("initdb failed with {status}: {} (log {})", log_tail(&log), log.display());
    }
    Ok(())
}

/// The log, emptied: it holds one start and what followed it.
pub(super) fn open_log(path: &Path) -> anyhow::Result<File> {
    remove(path)?;
    let mut options = OpenOptions::new();
    options.append(true).create_new(true).mode(0o600);
    options.open(path).with_context(|| format!("failed to open the log {}", path.display()))
}
