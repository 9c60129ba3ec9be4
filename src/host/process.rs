//! A process that cannot be mistaken for a later one with the same number.

use procfs::process::{Process, Stat};
use serde::{Deserialize, Serialize};

/// A process id with the time it started: ids are used again, the pair is not until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// As in `/proc`.
    pub pid: i32,
    /// Clock ticks between boot and start, field 22 of `/proc/PID/stat`.
    pub start_ticks: u64,
}

impl ProcessId {
    /// The process that has this number now. `None` where there is none; a zombie still has its number.
    pub fn of(pid: i32) -> Option<Self> {
        let stat = stat(pid)?;
        Some(Self { pid, start_ticks: stat.starttime })
    }

    /// This process itself.
    ///
    /// # Panics
    /// Where `/proc` is not mounted.
    pub fn this() -> Self {
        let pid = i32::try_from(std::process::id()).expect("process ids fit i32");
        Self::of(pid).expect("/proc shows the process that reads it")
    }

    /// Whether it still runs. A zombie is dead: it answers signals and does nothing else.
    pub fn is_alive(self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.starttime == self.start_ticks && is_live(&stat))
    }
}

/// `None` where the process is gone. Parsed from the last parenthesis on, so that names may hold anything.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    Process::new(pid).and_then(|process| process.stat()).ok()
}

/// Neither a zombie nor on its way out.
pub(super) fn is_live(stat: &Stat) -> bool {
    !matches!(stat.state, 'Z' | 'X' | 'x')
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_number() {
        let this = ProcessId::this();
        assert!(this.is_alive());
        assert!(!ProcessId { start_ticks: this.start_ticks + 1, ..this }.is_alive());
    }

    #[test]
    fn a_zombie_has_its_number_and_is_dead() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let id = ProcessId::of(i32::try_from(child.id()).unwrap()).unwrap();
        assert!(id.is_alive());
        child.kill().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while id.is_alive() {
            assert!(std::time::Instant::now() < deadline, "a killed process stays alive");
            std::thread::yield_now();
        }
        assert_eq!(ProcessId::of(id.pid), Some(id), "not reaped yet");
        child.wait().unwrap();
        assert_eq!(ProcessId::of(id.pid), None);
    }
}
