//! Programs that run to their end: `npm ci`, builds, `--version`. Bounded, interruptible, in a process group of their own
//! that goes with them.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::interrupt::{Interrupt, POLL};

/// Output of a version command beyond this is not looked at.
const OUTPUT_BYTES: u64 = 4096;
/// How long a tool that was asked to stop may clean up.
const GRACE: Duration = Duration::from_secs(3);

/// How a tool ended.
pub(super) enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It ran for longer than its timeout and was ended.
    TimedOut,
}

/// Runs `command` with its output in `log`.
pub(super) fn run(command: &mut Command, log: &Path, timeout: Duration, interrupt: &Interrupt) -> anyhow::Result<End> {
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let errors = file.try_clone().with_context(|| format!("cannot write {}", log.display()))?;
    command.stdout(file).stderr(errors).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    Group { child, reaped: false }.wait(timeout, interrupt)
}

/// What `command` prints on stdout, when it succeeds.
pub(super) fn output(command: &[String], cwd: &Path, timeout: Duration) -> anyhow::Result<String> {
    let [program, arguments @ ..] = command else { bail!("the command is empty") };
    let shown = command.join(" ");
    let mut tool = Command::new(program);
    tool.args(arguments).current_dir(cwd).stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::piped());
    let mut child = tool.process_group(0).spawn().with_context(|| format!("cannot start {shown}"))?;
    let printed = drain(child.stdout.take().expect("stdout is piped"));
    match (Group { child, reaped: false }).wait(timeout, &Interrupt::default())? {
        End::TimedOut => bail!("{shown} did not end within {} s", timeout.as_secs()),
        End::Exited(status) if !status.success() => bail!("{shown} failed: {status}"),
        End::Exited(_) => {}
    }
    // What it left running may hold the pipe open: what was printed is asked for, its end is not waited for without bound.
    printed.recv_timeout(GRACE).with_context(|| format!("{shown} ended and its output did not"))
}

fn drain(stdout: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if stdout.take(OUTPUT_BYTES).read_to_end(&mut bytes).is_ok() {
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        }
    });
    receiver
}

/// The last lines of a log that say something, on one line.
pub(super) fn tail_of(log: &Path) -> String {
    super::log::last_lines(&fs::read(log).unwrap_or_default())
}

/// A tool and everything it started, ended together.
struct Group {
    child: Child,
    reaped: bool,
}

impl Group {
    fn wait(mut self, timeout: Duration, interrupt: &Interrupt) -> anyhow::Result<End> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait().context("cannot wait for a program")? {
                self.reaped = true;
                return Ok(End::Exited(status));
            }
            interrupt.check()?;
            if Instant::now() >= deadline {
                return Ok(End::TimedOut);
            }
            // Short at first: most version commands are done within milliseconds.
            std::thread::sleep(POLL / 5);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // Not reaped yet, so the number of the group is still its own.
        let group = Pid::from_raw(i32::try_from(self.child.id()).expect("process ids fit i32"));
        let _ = killpg(group, Signal::SIGTERM);
        let deadline = Instant::now() + GRACE;
        while Instant::now() < deadline && super::member::any_live_in_group(group.as_raw()) {
            std::thread::sleep(POLL / 5);
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
    }
}
