//! Starts and stops the postmaster, and knows whether it answers.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::binaries::Binaries;
use super::child::{CHILD_POLL, log_tail, pid_of};
use super::home::{Home, remove};
use super::initdb::{Data, open_log};
use super::owner::{self, Address, Owner, is_postmaster, postmaster_of};
use super::session::Session;
use super::settings;
use super::target::Target;
use crate::interrupt::Interrupt;

/// A start takes a third of a second. After a kill it replays up to `max_wal_size` of log first.
const START_WAIT: Duration = Duration::from_mins(2);

/// How long one attempt to connect may take. The first ones are short: where another server took the port and says nothing,
/// our own has long ended and nobody looks. They double, for hosts on which even a password takes its time.
const FIRST_ATTEMPT_WAIT: Duration = Duration::from_millis(200);
const ATTEMPT_WAIT: Duration = Duration::from_secs(5);

/// A free port may be taken by somebody else before Postgres binds it: as often as this in a row, it is no accident.
const PORT_ATTEMPTS: usize = 10;

/// How the postmaster is asked to end, and how long each way may take: a fast shutdown writes out at most
/// `shared_buffers`; an immediate one only ends processes; the last one cannot be ignored.
const STOP_STAGES: [(Signal, Duration); 3] = [
    (Signal::SIGINT, Duration::from_secs(30)),
    (Signal::SIGQUIT, Duration::from_secs(10)),
    (Signal::SIGKILL, Duration::from_secs(10)),
];

/// Backends whose postmaster was killed notice within a second, unless they are deep in a statement.
const ORPHANS_WAIT: Duration = Duration::from_secs(20);

/// A running server has this long to answer someone who joins it.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// A postmaster and, in the process that started it, its handle.
#[derive(Debug)]
pub(super) struct Postmaster {
    pub(super) owner: Owner,
    child: Option<Child>,
    /// Not ready yet: stopped when the value is dropped.
    starting: bool,
}

impl Postmaster {
    /// The recorded one.
    pub(super) fn running(owner: Owner) -> Self {
        Self { owner, child: None, starting: false }
    }

    /// Starts one on a free port and waits until it answers. `running` becomes its standard input.
    pub(super) fn start(
        home: &Home,
        binaries: &Binaries,
        data: &Data,
        running: &File,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        Self::start_on(free_port, home, binaries, data, running, interrupt)
    }

    fn start_on(
        mut next_port: impl FnMut() -> anyhow::Result<u16>,
        home: &Home,
        binaries: &Binaries,
        data: &Data,
        running: &File,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Self> {
        // The lock says that nothing of Postgres lives here: whatever process the file names is none of ours, and Postgres
        // itself would refuse to start on account of it.
        remove(&data.folder.join("postmaster.pid"))?;
        let mut last = None;
        for _ in 0..PORT_ATTEMPTS {
            interrupt.check()?;
            let mut postmaster = Self::spawn(next_port()?, home, binaries, data, running)?;
            match postmaster.wait_ready(&home.log(), interrupt)? {
                Readiness::Ready => {
                    postmaster.starting = false;
                    return Ok(postmaster);
                }
                Readiness::PortTaken(said) => last = Some(said),
            }
        }
        bail!(
            "postgres found none of {PORT_ATTEMPTS} ports free that were free a moment before: {}",
            last.unwrap_or_default()
        )
    }

    fn spawn(port: u16, home: &Home, binaries: &Binaries, data: &Data, running: &File) -> anyhow::Result<Self> {
        let out = open_log(&home.log())?;
        let program = binaries.postgres();
        let mut command = home.account.command(&program);
        command.arg("-D").arg(&data.folder).args(["-p", &port.to_string()]).args(settings::arguments());
        command.stdin(running.try_clone().context("failed to copy the running lock")?);
        // Its own log, not the caller's streams: `headroom postgres start | cat` ends when headroom does.
        command.stdout(out.try_clone().context("failed to open the log")?).stderr(Stdio::from(out));
        let mut child = command.spawn().with_context(|| format!("failed to run {}", program.display()))?;
        let address = Address { uid: home.account.uid, port, password: data.password.clone() };
        let pid = pid_of(&child).as_raw();
        let owner = Owner::new(pid, address, data.folder.clone(), binaries.folder.clone(), binaries.version.clone());
        let recorded = owner.context("failed to read the start of postgres").and_then(|owner| {
            owner.write(home)?;
            Ok(owner)
        });
        match recorded {
            Ok(owner) => Ok(Self { owner, child: Some(child), starting: true }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    fn wait_ready(&mut self, log: &Path, interrupt: &Interrupt) -> anyhow::Result<Readiness> {
        let target = Target::parse(&self.owner.url("postgres"))?;
        let deadline = Instant::now() + START_WAIT;
        let mut last = String::new();
        let mut attempt = FIRST_ATTEMPT_WAIT;
        while Instant::now() < deadline {
            interrupt.check()?;
            // Looked at first: a connection to a port that another server took meanwhile proves nothing.
            if let Some(status) = self.exited()? {
                return early_exit(status, log);
            }
            // The password is known to this cluster alone, so whoever accepts it is ours.
            match Session::open(&target, attempt) {
                Ok(_) => return Ok(Readiness::Ready),
                Err(error) => last = error.to_string(),
            }
            attempt = (attempt * 2).min(ATTEMPT_WAIT);
            std::thread::sleep(CHILD_POLL);
        }
        bail!("postgres did not answer within {} s of its start: {last}; {}", START_WAIT.as_secs(), log_tail(log))
    }

    fn exited(&mut self) -> anyhow::Result<Option<ExitStatus>> {
        let child = self.child.as_mut().expect("a starting postmaster is our child");
        child.try_wait().context("failed to wait for postgres")
    }

    /// Whether it lets a session in, tried for some seconds: it may be recovering from a crash of a backend.
    pub(super) fn answers(&self, interrupt: &Interrupt) -> anyhow::Result<bool> {
        let target = Target::parse(&self.owner.url("postgres"))?;
        let deadline = Instant::now() + ANSWER_WAIT;
        loop {
            if Session::open(&target, ATTEMPT_WAIT).is_ok() {
                return Ok(true);
            }
            if Instant::now() >= deadline || !self.owner.is_alive() {
                return Ok(false);
            }
            interrupt.sleep(CHILD_POLL)?;
        }
    }

    /// Ends it: a fast shutdown, which does not wait for sessions; sterner ones if that takes too long.
    pub(super) fn stop(&mut self) -> anyhow::Result<()> {
        let (owner, child) = (&self.owner, &mut self.child);
        let reap = || {
            // So that no zombie is left in the process that started it.
            if let Some(child) = child {
                let _ = child.try_wait();
            }
        };
        let ended = stop_process(owner.postmaster_pid, owner.postmaster_start_ticks, || owner.is_alive(), reap);
        self.starting = false;
        ended
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        // An interrupt, error or panic between its start and its first answer.
        if self.starting {
            let _ = self.stop();
        }
    }
}

enum Readiness {
    Ready,
    /// It ended because somebody else has the port; what it said.
    PortTaken(String),
}

fn early_exit(status: ExitStatus, log: &Path) -> anyhow::Result<Readiness> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let said = log_tail(log);
    if text.contains("could not bind") {
        return Ok(Readiness::PortTaken(said));
    }
    bail!("postgres ended with {status} while starting: {said} (log {})", log.display())
}

/// A port that is free now. Postgres cannot be given port 0.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("failed to find a free port on 127.0.0.1")?;
    Ok(listener.local_addr().context("failed to find a free port on 127.0.0.1")?.port())
}

/// Goes through the stages until the process that started at `start_ticks` is gone. `is_ours` is asked before each signal;
/// it says no a moment early, as an ending process loses its command line before it ends.
fn stop_process(pid: i32, start_ticks: u64, is_ours: impl Fn() -> bool, mut reap: impl FnMut()) -> anyhow::Result<()> {
    for (signal, limit) in STOP_STAGES {
        let deadline = Instant::now() + limit;
        if is_ours() {
            let _ = kill(Pid::from_raw(pid), signal);
        }
        while Instant::now() < deadline {
            reap();
            if owner::start_ticks(pid) != Some(start_ticks) {
                return Ok(());
            }
            std::thread::sleep(CHILD_POLL);
        }
    }
    bail!("the postmaster (process {pid}) did not end even when killed")
}

/// Sees to it that no process of Postgres is left in this folder, and returns the lock that proves it.
///
/// A postmaster that no record names (its starter was killed before it wrote one) is stopped when it is provably ours; what
/// has lost its postmaster ends by itself. A process that merely has a number from an old file is never touched.
pub(super) fn sweep(home: &Home, interrupt: &Interrupt) -> anyhow::Result<File> {
    let deadline = Instant::now() + ORPHANS_WAIT;
    loop {
        if let Some(lock) = home.try_running_lock()? {
            return Ok(lock);
        }
        for data in data_folders(home)? {
            let uid = home.account.uid;
            let found = postmaster_of(&data, uid).and_then(|pid| Some((pid, owner::start_ticks(pid)?)));
            if let Some((pid, start_ticks)) = found {
                stop_process(pid, start_ticks, || is_postmaster(pid, &data, uid), || ())?;
            }
        }
        if Instant::now() >= deadline {
            bail!(
                "processes of postgres still work in {} but cannot be identified from here (another container?): \
                 end them or set HEADROOM_HOME to another folder",
                home.path().display()
            );
        }
        interrupt.sleep(CHILD_POLL)?;
    }
}

fn data_folders(home: &Home) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let entries =
        std::fs::read_dir(home.path()).with_context(|| format!("failed to list {}", home.path().display()))?;
    Ok(entries.flatten().map(|entry| entry.path().join("pgdata")).filter(|folder| folder.is_dir()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::{ClusterOptions, binaries, initdb};
    use crate::progress::Silent;

    #[test]
    fn a_port_that_was_taken_meanwhile_is_exchanged_for_another() {
        let folder = tempfile::Builder::new().prefix("headroom-port-").tempdir_in("/var/tmp").unwrap();
        let calm = Interrupt::default();
        let home = Home::open(folder.path()).unwrap();
        let options = ClusterOptions { home: folder.path().to_owned(), binaries: None, pinned: None, keep: false };
        // The system's, where there is one: which binaries are taken is tested elsewhere.
        let Ok(binaries) = binaries::choose(&options, &home, &calm) else { return };
        let running = sweep(&home, &calm).unwrap();
        let data = initdb::ensure(&home, &binaries, &running, &Silent, &calm).unwrap();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let taken = taken.local_addr().map(|address| (taken, address.port())).unwrap();

        let mut tried = Vec::new();
        let ports = || {
            let port = if tried.is_empty() { taken.1 } else { free_port()? };
            tried.push(port);
            Ok(port)
        };
        let mut started = Postmaster::start_on(ports, &home, &binaries, &data, &running, &calm).unwrap();
        assert!(tried.len() >= 2 && started.owner.port != taken.1);
        started.stop().unwrap();
        assert!(!started.owner.is_alive());

        let never = Postmaster::start_on(|| Ok(taken.1), &home, &binaries, &data, &running, &calm);
        let error = never.unwrap_err().to_string();
        assert!(error.contains("none of 10 ports free"), "{error}");
    }
}
