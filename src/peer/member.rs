//! Which processes belong to a server, and signals that reach no other.

use std::collections::HashSet;
use std::ffi::OsStr;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::{Process, all_processes};

use super::lease::TOKEN_VARIABLE;
use crate::host::{ProcessId, tree};

/// Live processes that belong to the server with this root: what descends from it, what is in its process group, and
/// what carries its token after its parents are gone. The root must not be reaped yet: the group's number is its own.
pub(super) fn members(root: i32, token: &str) -> Vec<ProcessId> {
    let mut pids: HashSet<i32> = tree(root).into_iter().collect();
    pids.extend(
        live()
            .into_iter()
            .filter(|(process, group)| *group == root || carries(process, token))
            .map(|(process, _)| process.pid),
    );
    alive(pids)
}

/// Live processes that carry this token in the environment they were started with.
pub(super) fn carriers(token: &str) -> Vec<ProcessId> {
    alive(live().into_iter().filter(|(process, _)| carries(process, token)).map(|(process, _)| process.pid))
}

/// Whether anything lives in a process group.
pub(super) fn any_live_in_group(group: i32) -> bool {
    live().into_iter().any(|(_, of)| of == group)
}

/// Sends a signal to the process meant, and to no later one with its number.
pub(super) fn signal(process: ProcessId, signal: Signal) {
    if process.is_alive() {
        // Gone in between or not ours: the caller looks again at what lives.
        let _ = kill(Pid::from_raw(process.pid), signal);
    }
}

fn alive(pids: impl IntoIterator<Item = i32>) -> Vec<ProcessId> {
    let this = ProcessId::this().pid;
    pids.into_iter().filter(|pid| *pid != this).filter_map(ProcessId::of).filter(|id| id.is_alive()).collect()
}

/// Every process that is no zombie, with its group.
fn live() -> Vec<(Process, i32)> {
    let of = |process: Process| {
        let stat = process.stat().ok()?;
        (!matches!(stat.state, 'Z' | 'X' | 'x')).then_some((process, stat.pgrp))
    };
    all_processes().into_iter().flatten().filter_map(|process| of(process.ok()?)).collect()
}

/// Environments of other users cannot be read: those processes are not ours.
fn carries(process: &Process, token: &str) -> bool {
    process.environ().is_ok_and(|environ| environ.get(OsStr::new(TOKEN_VARIABLE)).is_some_and(|value| value == token))
}
