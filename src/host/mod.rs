//! CPU, kernel and cgroup facts; `/proc` sampling.

use std::io;
use std::time::Duration;

/// What this host is, as stored in every record.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Facts {}

impl Facts {
    /// Reads `/proc` and `/sys`; what cannot be read is `None`, never a guess.
    pub fn read() -> Self {
        todo!()
    }
}

/// What a process and all its descendants have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeUsage {
    /// User plus system time, dead (reaped) children included.
    pub cpu: Duration,
    /// Sum of VmRSS.
    pub rss_bytes: u64,
    /// Sum of VmHWM since the last [`reset_peak`].
    pub peak_rss_bytes: u64,
    /// Live processes.
    pub processes: usize,
}

/// Sums a process tree. A zombie is dead. `NotFound` where the root is gone.
pub fn tree_usage(root: i32) -> io::Result<TreeUsage> {
    let _ = root;
    todo!()
}

/// Resets the high-water mark of every process of the tree (`clear_refs`).
pub fn reset_peak(root: i32) -> io::Result<()> {
    let _ = root;
    todo!()
}

/// Process ids of a tree, root first.
pub fn tree(root: i32) -> Vec<i32> {
    let _ = root;
    todo!()
}

/// CPU time of the whole host since boot, over the CPUs this process may use or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCpu {
    /// Everything but idle, iowait and steal.
    pub busy: Duration,
    /// Idle and iowait.
    pub idle: Duration,
    /// Taken by the hypervisor.
    pub steal: Duration,
}

impl HostCpu {
    /// From `/proc/stat`.
    pub fn sample() -> io::Result<Self> {
        todo!()
    }
}
