//! File descriptors: enough of them before the first connection, or a clear refusal.

use std::fs;

use anyhow::{Context as _, bail};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors a driver thread needs besides its connections: epoll, its copy and the waker.
const FILES_PER_THREAD: u64 = 3;
/// Left for the rest of the process: logs, pipes of child processes, name resolution.
const FILES_TO_SPARE: u64 = 64;

/// Raises the soft limit of open files where the connections need it.
///
/// # Errors
/// Where the hard limit does not allow that, with the figure that would.
pub(super) fn ensure_files(connections: usize, threads: usize) -> anyhow::Result<()> {
    // What is open already; where /proc is away, the spare ones have to do.
    let open = fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64);
    let needed = open + connections as u64 + threads as u64 * FILES_PER_THREAD + FILES_TO_SPARE;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).context("failed to read the limit of open files")?;
    if needed <= soft {
        return Ok(());
    }
    if needed > hard {
        bail!(
            "{connections} connections need {needed} open files, the hard limit is {hard}: \
             raise it (ulimit -Hn {needed}, or LimitNOFILE) or use fewer connections"
        );
    }
    setrlimit(Resource::RLIMIT_NOFILE, needed, hard)
        .with_context(|| format!("failed to raise the limit of open files from {soft} to {needed}"))
}
