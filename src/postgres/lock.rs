//! Kernel locks on files of the state folder: released by the kernel however a process ends, so never stale.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::fcntl::OFlag;

use crate::interrupt::{Interrupt, POLL};

/// An exclusive lock on a file, for as long as the value lives.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock, or `None` where somebody holds it.
    pub(super) fn try_take(path: &Path) -> anyhow::Result<Option<Self>> {
        try_lock(path).map(|file| file.map(|file| Self { file }))
    }

    /// Waits for the lock, at most `limit`.
    pub(super) fn wait(path: &Path, limit: Duration, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(lock) = Self::try_take(path)? {
                return Ok(lock);
            }
            if Instant::now() >= deadline {
                bail!(
                    "another headroom has been starting or stopping the cluster for {} s (lock {}): \
                     wait for it or end it",
                    limit.as_secs(),
                    path.display()
                );
            }
            interrupt.sleep(POLL)?;
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Not by closing alone: a child that another thread has just forked holds a copy of the descriptor until it
        // runs its program, and the lock with it.
        let _ = self.file.unlock();
    }
}

/// The file, locked; `None` where somebody else holds the lock. Closing the last copy of the descriptor releases it.
pub(super) fn try_lock(path: &Path) -> anyhow::Result<Option<File>> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)
        .with_context(|| format!("failed to open the lock {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("failed to lock {}", path.display())),
    }
}

/// A share in the cluster: a file of its own, locked while its holder lives. Locked files are users, others are leftovers.
///
/// Taken and counted under the start lock only, so a count is exact.
#[derive(Debug)]
pub(super) struct Share {
    path: PathBuf,
    _lock: Lock,
}

impl Share {
    /// Takes a share in the cluster whose users are listed in `folder`.
    pub(super) fn take(folder: &Path) -> anyhow::Result<Self> {
        static TAKEN: AtomicU64 = AtomicU64::new(0);
        let number = TAKEN.fetch_add(1, Ordering::Relaxed);
        // The process id tells people who it is; a leftover of the same name is free and simply taken over.
        let path = folder.join(format!("{}-{number}", std::process::id()));
        let lock =
            Lock::try_take(&path)?.with_context(|| format!("the share {} is held by somebody else", path.display()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Process ids of the other users.
    pub(super) fn others(&self, folder: &Path) -> anyhow::Result<Vec<String>> {
        users(folder, Some(&self.path))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Process ids of everyone who holds a share, but for `mine`; sweeps what dead users left.
pub(super) fn users(folder: &Path, mine: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("failed to list {}", folder.display()))?.path();
        if mine == Some(path.as_path()) {
            continue;
        }
        if let Some(_leftover) = Lock::try_take(&path)? {
            let _ = fs::remove_file(&path);
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push(name.split('-').next().unwrap_or_default().to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_exclusive_until_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Lock::try_take(&path).unwrap().unwrap();
        assert!(Lock::try_take(&path).unwrap().is_none());
        let error = Lock::wait(&path, Duration::ZERO, &Interrupt::default()).unwrap_err();
        assert!(error.to_string().contains("another headroom"), "{error}");
        drop(held);
        assert!(Lock::try_take(&path).unwrap().is_some());
    }

    #[test]
    fn users_are_those_who_hold_their_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("1-0"), "").unwrap();
        let first = Share::take(folder.path()).unwrap();
        let second = Share::take(folder.path()).unwrap();
        assert_eq!(first.others(folder.path()).unwrap(), [std::process::id().to_string()]);
        assert!(!folder.path().join("1-0").exists(), "a leftover is swept");
        drop(second);
        assert!(first.others(folder.path()).unwrap().is_empty());
        drop(first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_lock_is_never_taken_through_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::os::unix::fs::symlink(&target, folder.path().join("lock")).unwrap();
        assert!(Lock::try_take(&folder.path().join("lock")).is_err());
        assert!(!target.exists());
    }
}
