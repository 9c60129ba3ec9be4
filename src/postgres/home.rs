//! The state folder: who may own it, what lies where in it, and how files are written there.
//!
//! ```text
//! start.lock          held while the cluster is started, seeded or stopped
//! running.lock        held by Postgres itself (as its standard input): free means that no process of it is left
//! users/PID-N         one file a user, locked while that user lives
//! owner.json          which postmaster runs, and how to reach it
//! postgres.log        what Postgres says, from its latest start on
//! bin-VERSION-MARK/   copied binaries
//! data-MAJOR-FORMAT/  pgdata/ and the password
//! ```
//! A name with `.new-` is unfinished work. Root's folder belongs to root, and only `pgdata` to the user Postgres runs as.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::unistd::geteuid;

use super::account::Account;
use super::lock::{Lock, try_lock};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Raised when the layout of a data folder or what is seeded in it changes: older folders are then built anew.
pub(super) const DATA_FORMAT: u32 = 1;

/// Somebody else may be copying binaries, running initdb and seeding: some ten seconds on a slow disk.
const START_LOCK_WAIT: Duration = Duration::from_mins(2);

/// What marks a file or folder that is being made.
const UNFINISHED: &str = ".new-";

/// State folder of this user: `HEADROOM_HOME`, else `/var/tmp/headroom-UID`.
///
/// `/var/tmp` because an unprivileged user can reach it where root runs headroom, and because it outlives a boot.
pub fn default_home() -> PathBuf {
    match std::env::var_os("HEADROOM_HOME") {
        Some(home) if !home.is_empty() => PathBuf::from(home),
        _ => PathBuf::from(format!("/var/tmp/headroom-{}", geteuid())),
    }
}

/// Makes the state folder where it is missing and checks that nobody else could have put anything into it: to be called
/// before anything in it is believed.
///
/// # Errors
/// Says whose folder it is, or why it cannot be made.
pub fn claim_home(path: &Path) -> anyhow::Result<()> {
    Home::open(path).map(drop)
}

/// A state folder that was checked, and the user Postgres runs as in it.
#[derive(Debug, Clone)]
pub(super) struct Home {
    path: PathBuf,
    pub(super) account: Account,
}

impl Home {
    /// Makes the folder where it is missing, and checks it.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path).with_context(|| format!("{} is no path", path.display()))?;
        let account = Account::current()?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("failed to make {}", parent.display()))?;
        }
        // Root's folder is entered by the user Postgres runs as, and read by root alone.
        let mode = if account.drops_root { 0o711 } else { 0o700 };
        make_folder(&path, mode)?;
        let metadata = check_folder(&path)?;
        make_folder(&path.join("users"), 0o700)?;
        if account.drops_root {
            if !account.may_enter(&metadata) {
                set_mode(&path, metadata.mode() & 0o7777 | 0o011)?;
            }
            account.check_can_reach(&path)?;
        }
        Ok(Self { path, account })
    }

    /// The folder where it is there already, for commands that start nothing.
    pub(super) fn existing(path: &Path) -> anyhow::Result<Option<Self>> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Self::open(path).map(Some),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn users(&self) -> PathBuf {
        self.path.join("users")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("postgres.log")
    }

    pub(super) fn owner(&self) -> PathBuf {
        self.path.join("owner.json")
    }

    pub(super) fn data(&self, major: u32) -> PathBuf {
        self.path.join(format!("data-{major}-{DATA_FORMAT}"))
    }

    /// A name for work in progress on `path`, swept by [`Home::sweep_unfinished`] when it is left behind.
    pub(super) fn unfinished(path: &Path) -> PathBuf {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.with_file_name(format!("{name}{UNFINISHED}{}", std::process::id()))
    }

    /// Whoever holds this lock alone starts, seeds and stops.
    pub(super) fn lock(&self, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Lock> {
        let path = self.path.join("start.lock");
        if let Some(lock) = Lock::try_take(&path)? {
            return Ok(lock);
        }
        progress.step("waiting for another headroom that starts or stops the cluster");
        Lock::wait(&path, START_LOCK_WAIT, interrupt)
    }

    /// The lock that Postgres holds as its standard input; `None` while any process of it lives.
    ///
    /// The kernel releases it with the last process that has the file open, so it tells the truth even where process
    /// ids do not: after a kill, after a reboot, and across containers that share the folder.
    pub(super) fn try_running_lock(&self) -> anyhow::Result<Option<fs::File>> {
        try_lock(&self.path.join("running.lock"))
    }

    /// Removes what an interrupted start left, and data of older formats. Only under the lock, with Postgres down.
    pub(super) fn sweep_unfinished(&self) -> anyhow::Result<()> {
        for entry in fs::read_dir(&self.path).with_context(|| format!("failed to list {}", self.path.display()))? {
            let path = entry.with_context(|| format!("failed to list {}", self.path.display()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if is_leftover(&name) {
                remove(&path)?;
            }
        }
        Ok(())
    }
}

/// Whether a name in the state folder is unfinished work or data of an older format.
fn is_leftover(name: &str) -> bool {
    let older = || {
        let format = name.strip_prefix("data-")?.split_once('-')?.1.parse::<u32>().ok()?;
        Some(format < DATA_FORMAT)
    };
    name.contains(UNFINISHED) || older().unwrap_or(false)
}

/// Removes a file or folder; one that is gone is fine.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    let outcome = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Makes a folder with exactly this mode, whatever the umask; whether it was missing.
pub(super) fn make_folder(path: &Path, mode: u32) -> anyhow::Result<bool> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            set_mode(path, mode)?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error).with_context(|| {
            format!("failed to make the folder {}: set HEADROOM_HOME to one that can be made", path.display())
        }),
    }
}

fn set_mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("failed to set the mode of {}", path.display()))
}

/// Refuses a folder that anyone else could have made or could change: the default lies in the world-writable `/var/tmp`.
fn check_folder(path: &Path) -> anyhow::Result<fs::Metadata> {
    let metadata = path.symlink_metadata().with_context(|| format!("failed to look at {}", path.display()))?;
    let shown = path.display();
    let remedy = "remove it or set HEADROOM_HOME to another folder";
    if metadata.is_symlink() {
        bail!("the state folder {shown} is a symbolic link, which somebody else could turn: {remedy}");
    }
    if !metadata.is_dir() {
        bail!("the state folder {shown} is no folder: {remedy}");
    }
    if metadata.uid() != geteuid().as_raw() {
        bail!("the state folder {shown} belongs to user {}, not to user {}: {remedy}", metadata.uid(), geteuid());
    }
    if metadata.mode() & 0o022 != 0 {
        bail!(
            "the state folder {shown} may be written by others (mode {:o}): run `chmod go-w {shown}`",
            metadata.mode() & 0o7777
        );
    }
    Ok(metadata)
}

/// Writes a file that only its owner may read, whole or not at all.
pub(super) fn write_secret(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let fresh = Home::unfinished(path);
    remove(&fresh)?;
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(content)?;
        fs::rename(&fresh, path)
    };
    write().with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_work_and_older_formats_are_leftovers() {
        assert!(is_leftover("data-17-1.new-4711"));
        assert!(is_leftover("owner.json.new-1"));
        assert!(is_leftover("data-17-0"));
        for kept in ["data-17-1", "data-15-1", "owner.json", "bin-17.10-0011aabb", "users", "data-x", "data-17"] {
            assert!(!is_leftover(kept), "{kept}");
        }
    }

    #[test]
    fn a_secret_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        write_secret(&path, b"one").unwrap();
        write_secret(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_others_could_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/tmp", &link).unwrap();
        assert!(check_folder(&link).unwrap_err().to_string().contains("symbolic link"));

        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(check_folder(&file).unwrap_err().to_string().contains("is no folder"));

        let open = folder.path().join("open");
        make_folder(&open, 0o777).unwrap();
        assert!(check_folder(&open).unwrap_err().to_string().contains("chmod go-w"));
        make_folder(&folder.path().join("closed"), 0o711).unwrap();
        check_folder(&folder.path().join("closed")).unwrap();
    }
}
