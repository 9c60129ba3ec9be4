//! Waiting for child processes of ours that end by themselves, with a bound, and what they left in a log.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::interrupt::Interrupt;

/// How often a child is looked at: starts and stops take tens of milliseconds.
pub(super) const CHILD_POLL: Duration = Duration::from_millis(5);

/// How much of a log is looked at for an error message.
const TAIL_BYTES: u64 = 4096;

/// A child in a process group of its own; the group is killed when the value is dropped before the child ended.
pub(super) struct Group(Option<Child>);

impl Group {
    pub(super) fn new(child: Child) -> Self {
        Self(Some(child))
    }

    /// Waits until the child ends, at most `limit`. `what` names it in the error.
    pub(super) fn wait(mut self, what: &str, limit: Duration, interrupt: &Interrupt) -> anyhow::Result<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            let child = self.0.as_mut().expect("present until it ended");
            if let Some(status) = child.try_wait().with_context(|| format!("failed to wait for {what}"))? {
                self.0 = None;
                return Ok(status);
            }
            if Instant::now() >= deadline {
                bail!("{what} did not end within {} s", limit.as_secs());
            }
            interrupt.check()?;
            std::thread::sleep(CHILD_POLL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // Not waited for yet, so the id is still this child's.
            let _ = killpg(pid_of(child), Signal::SIGKILL);
            let _ = child.wait();
        }
    }
}

/// The id of a child, as the calls that signal take it.
pub(super) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(i32::try_from(child.id()).expect("process ids are small"))
}

/// The last lines of a log that say what went wrong, as one line.
pub(super) fn log_tail(path: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map_or_else(|error| format!("its log cannot be read: {error}"), |text| telling_lines(&text))
}

/// The last three lines that tell of an error, else the last three at all; without Postgres's time stamps.
fn telling_lines(text: &str) -> String {
    const LINES: usize = 3;
    const LEVELS: [&str; 4] = ["FATAL:", "PANIC:", "HINT:", "error:"];
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let telling: Vec<&str> = lines
        .iter()
        .filter_map(|line| LEVELS.iter().find_map(|level| line.find(level)).map(|at| &line[at..]))
        .collect();
    let chosen = if telling.is_empty() { &lines } else { &telling };
    if chosen.is_empty() {
        return "it said nothing".to_owned();
    }
    chosen[chosen.len().saturating_sub(LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_in_one_line() {
        assert_eq!(telling_lines(""), "it said nothing");
        assert_eq!(telling_lines("one\n\n two \nthree\nfour"), "two; three; four");
        let log = "2026-01-01 00:00:00 UTC [1] LOG:  starting\n\
                   2026-01-01 00:00:00 UTC [1] FATAL:  lock file \"postmaster.pid\" is empty\n\
                   2026-01-01 00:00:00 UTC [1] HINT:  Another server is starting\n\
                   2026-01-01 00:00:00 UTC [1] LOG:  database system is shut down\n";
        assert_eq!(
            telling_lines(log),
            "FATAL:  lock file \"postmaster.pid\" is empty; HINT:  Another server is starting"
        );
    }

    #[test]
    fn a_child_that_hangs_is_ended_with_its_children() {
        use std::os::unix::process::CommandExt;
        use std::process::Stdio;
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "sleep 600 <&- >&- 2>&- & echo started; wait"]).process_group(0).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // The shell says so once it has a child of its own.
        child.stdout.take().unwrap().read_exact(&mut [0; 7]).unwrap();
        let group = pid_of(&child);
        let error = Group::new(child).wait("sh", Duration::ZERO, &Interrupt::default()).unwrap_err();
        assert_eq!(error.to_string(), "sh did not end within 0 s");
        let deadline = Instant::now() + Duration::from_secs(10);
        while killpg(group, None).is_ok() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(killpg(group, None).is_err() || only_zombies(group), "the whole group ended");
    }

    /// Where nobody reaps orphans, the killed grandchild stays as a zombie.
    fn only_zombies(group: Pid) -> bool {
        procfs::process::all_processes()
            .unwrap()
            .flatten()
            .filter_map(|process| process.stat().ok())
            .all(|stat| stat.pgrp != group.as_raw() || stat.state == 'Z')
    }
}
