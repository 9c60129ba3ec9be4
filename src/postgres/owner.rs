//! The owner record: which postmaster runs here and how to reach it, and whether a process is that postmaster.
//!
//! A process is only ever signalled after [`Owner::is_alive`] said yes: its id alone proves nothing.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use procfs::process::{ProcState, Process};
use serde::{Deserialize, Serialize};

use super::home::{Home, remove, write_secret};

/// Version of the record; a record of any other is not read.
const RECORD_FORMAT: u32 = 1;

/// What is known of the running postmaster. Holds the password: readable by the owner of the state folder alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    format: u32,
    pub(super) postmaster_pid: i32,
    /// From `/proc/PID/stat`, in clock ticks since the host started: with the id it names one process for good.
    pub(super) postmaster_start_ticks: u64,
    /// The user its processes run as.
    pub(super) uid: u32,
    pub(super) port: u16,
    pub(super) password: String,
    /// The data folder, exactly as the postmaster was told.
    pub(super) data: PathBuf,
    /// The folder of the binaries it runs.
    pub(super) binaries: PathBuf,
    pub(super) version: String,
    /// Stays up when its last user leaves.
    pub(super) keep: bool,
}

impl Owner {
    /// Describes a postmaster that was just started.
    pub(super) fn new(
        pid: i32,
        address: Address,
        data: PathBuf,
        binaries: PathBuf,
        version: String,
    ) -> io::Result<Self> {
        Ok(Self {
            format: RECORD_FORMAT,
            postmaster_pid: pid,
            postmaster_start_ticks: start_ticks(pid).ok_or(io::ErrorKind::NotFound)?,
            uid: address.uid,
            port: address.port,
            password: address.password,
            data,
            binaries,
            version,
            keep: false,
        })
    }

    /// The record, where there is one that can be read. An unreadable one is no record: it is written whole or not at all.
    pub(super) fn read(home: &Home) -> anyhow::Result<Option<Self>> {
        let text = match fs::read(home.owner()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("failed to read {}", home.owner().display())),
        };
        let record: Option<Self> = serde_json::from_slice(&text).ok();
        Ok(record.filter(|record| record.format == RECORD_FORMAT))
    }

    pub(super) fn write(&self, home: &Home) -> anyhow::Result<()> {
        let text = serde_json::to_vec_pretty(self).context("failed to render the owner record")?;
        write_secret(&home.owner(), &text)
    }

    pub(super) fn remove(home: &Home) -> anyhow::Result<()> {
        remove(&home.owner())
    }

    /// Whether the recorded postmaster lives: same id, same start, our user, our data folder; not a zombie.
    pub(super) fn is_alive(&self) -> bool {
        start_ticks(self.postmaster_pid) == Some(self.postmaster_start_ticks)
            && is_postmaster(self.postmaster_pid, &self.data, self.uid)
    }

    /// URL of a database of this cluster, password included.
    pub(super) fn url(&self, database: &str) -> String {
        // The password is letters and digits by construction, the name is checked where databases are made.
        format!("postgres://{SUPERUSER}:{}@127.0.0.1:{}/{database}?sslmode=disable", self.password, self.port)
    }
}

/// How a new postmaster is reached, and as whom it runs.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) uid: u32,
    pub(super) port: u16,
    pub(super) password: String,
}

/// The one role of the private cluster.
pub(super) const SUPERUSER: &str = "headroom";

/// When a process started, in clock ticks since the host did; `None` when it is gone or a zombie.
pub(super) fn start_ticks(pid: i32) -> Option<u64> {
    let stat = Process::new(pid).ok()?.stat().ok()?;
    match stat.state() {
        // A zombie has ended; its parent may never ask for it (a container's first process often does not).
        Ok(ProcState::Zombie | ProcState::Dead) | Err(_) => None,
        Ok(_) => Some(stat.starttime),
    }
}

/// Whether a live process is the postmaster of this data folder, by its command line and user.
///
/// Both are world-readable. Its working folder and executable are not: root without ptrace rights (any container's root)
/// may not read those of a process that runs as another user.
pub(super) fn is_postmaster(pid: i32, data: &Path, uid: u32) -> bool {
    let Ok(process) = Process::new(pid) else { return false };
    let (Ok(owner), Ok(arguments)) = (process.uid(), process.cmdline()) else { return false };
    let named_postgres = arguments
        .first()
        .and_then(|program| Path::new(program).file_name())
        .is_some_and(|name| name.to_string_lossy().contains("postgres"));
    let on_our_data = arguments.windows(2).any(|pair| pair[0] == "-D" && Path::new(&pair[1]) == data);
    owner == uid && named_postgres && on_our_data && start_ticks(pid).is_some()
}

/// The id of a live postmaster of this data folder, by the pid file Postgres keeps in it. An empty file, a dead process
/// or somebody else's process: none.
pub(super) fn postmaster_of(data: &Path, uid: u32) -> Option<i32> {
    let text = read_untrusted(&data.join("postmaster.pid"))?;
    let pid = text.lines().next()?.trim().parse().ok().filter(|pid| *pid > 1)?;
    is_postmaster(pid, data, uid).then_some(pid)
}

/// Reads the start of a file that lies in another user's folder: no link is followed, no pipe waited for.
fn read_untrusted(path: &Path) -> Option<String> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;

    use nix::fcntl::OFlag;
    /// A pid file has eight short lines.
    const LIMIT: u64 = 4096;

    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut text = String::new();
    file.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid_file(content: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("postmaster.pid"), content).unwrap();
        folder
    }

    #[test]
    fn a_pid_file_proves_nothing_by_itself() {
        let uid = nix::unistd::geteuid().as_raw();
        let me = std::process::id();
        for content in [String::new(), "\n".into(), "x".into(), "0".into(), "-1".into(), "1".into(), me.to_string()] {
            assert_eq!(postmaster_of(pid_file(&content).path(), uid), None, "{content:?}");
        }
        assert_eq!(postmaster_of(Path::new("/nonexistent"), uid), None);
    }

    #[test]
    fn a_process_has_one_start() {
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(start_ticks(me).is_some());
        assert_eq!(start_ticks(me), start_ticks(me));
    }

    #[test]
    fn a_zombie_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while start_ticks(pid).is_some() {
            assert!(std::time::Instant::now() < deadline, "`true` never ended");
            std::thread::yield_now();
        }
        assert!(Path::new(&format!("/proc/{pid}")).exists(), "still there, as a zombie");
        child.wait().unwrap();
    }
}
