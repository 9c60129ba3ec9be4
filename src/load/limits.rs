//! File descriptors and local ports: enough of them before the first connection, or a clear refusal.

use std::fs;
use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors a driver thread needs besides its connections: epoll, its copy, the waker and the timer.
const FILES_PER_THREAD: u64 = 4;
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

/// Refuses connections for which the kernel has no local ports: every one to the same address takes another, and one
/// that this side closed first keeps it for a minute.
///
/// # Errors
/// With the range, what is taken of it and the remedy.
pub(super) fn ensure_ports(address: SocketAddr, connections: usize) -> anyhow::Result<()> {
    // Where /proc is away the kernel says so itself, at the connection that finds none.
    let Ok(range) = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range") else { return Ok(()) };
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<usize>().ok());
    let (Some(low), Some(high)) = (ends.next(), ends.next()) else { return Ok(()) };
    let size = (high + 1).saturating_sub(low);
    // Only a run that needs most of them looks at what is taken: the list may be long.
    if connections * 2 <= size {
        return Ok(());
    }
    let (taken, waiting) = taken_ports(address);
    ensure!(
        connections + taken <= size,
        "{connections} connections to {address} need as many local ports: net.ipv4.ip_local_port_range has {size}, \
         {taken} of them taken ({waiting} in TIME_WAIT for up to a minute): use fewer connections, wait, or widen the range"
    );
    Ok(())
}

/// Connections to this address, and how many of them only wait.
fn taken_ports(address: SocketAddr) -> (usize, usize) {
    let all = if address.is_ipv4() { procfs::net::tcp() } else { procfs::net::tcp6() };
    let to_here = all.into_iter().flatten().filter(|entry| entry.remote_address == address);
    to_here.fold((0, 0), |(taken, waiting), entry| {
        (taken + 1, waiting + usize::from(entry.state == procfs::net::TcpState::TimeWait))
    })
}
