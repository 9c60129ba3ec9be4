//! A running server: started, watched, stopped with everything it started.

use std::io::PipeWriter;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use super::catalogue::Spec;
use super::guard::Guard;
use super::lease::{Lease, TOKEN_VARIABLE};
use super::log::Log;
use super::member::{members, signal};
use super::placeholder::{fill, tools};
use super::ready::{Owner, Seen, addresses_of, free_port, owner, probe};
use crate::host::ProcessId;
use crate::interrupt::Interrupt;

/// Connections to Postgres that a server may hold.
const POOL: u32 = 10;
/// Pause between two probes: well below what a start takes.
const PROBE_PAUSE: Duration = Duration::from_millis(10);
/// How long a server may finish its requests after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(5);
/// How long killed processes may take to be gone; longer only where the kernel holds them.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// A free port can be taken before the server has it: then another one is tried.
const PORT_ATTEMPTS: usize = 3;
/// What a server sees of the environment of this process.
const INHERITED: [&str; 4] = ["PATH", "HOME", "TMPDIR", "LANG"];

/// How a server is started.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    /// The `bench` folder.
    pub bench: &'a Path,
    /// The state folder: what is running is recorded there, for [`super::sweep`].
    pub state: &'a Path,
    /// Passed as `DATABASE_URL`.
    pub database_url: &'a str,
    /// Passed as `JWT_SECRET`.
    pub jwt_secret: &'a str,
    /// stdout and stderr go here, drained and bounded.
    pub log: PathBuf,
    /// How long until it must answer.
    pub ready_timeout: Duration,
}

/// A running server and everything it started. Stopped on drop.
#[derive(Debug)]
pub struct Running {
    name: String,
    address: SocketAddr,
    /// Not reaped before everything else is gone: until then its number, and that of its group, are nobody else's.
    child: Child,
    root: ProcessId,
    guard: Guard,
    lease: Lease,
    log: Log,
    ended: bool,
}

/// Why a server did not become ready.
enum NotReady {
    /// Its port is somebody else's: worth another try with another port.
    PortTaken(anyhow::Error),
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for NotReady {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Running {
    /// Starts the server on a free port of 127.0.0.1 and waits until `GET /health` answers 200.
    ///
    /// # Errors
    /// Within a second where it exits at once, with its status and last lines; after the launch's timeout where it is
    /// not ready, with what was seen last; [`crate::interrupt::Interrupted`] after a signal. Nothing is left running.
    pub fn start(spec: &Spec, launch: &Launch<'_>, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let mut attempt = 1;
        loop {
            match attempt_on(spec, launch, free_port().context("no free port")?, interrupt) {
                Ok(running) => return Ok(running),
                Err(NotReady::PortTaken(_)) if attempt < PORT_ATTEMPTS => attempt += 1,
                Err(NotReady::PortTaken(error) | NotReady::Failed(error)) => return Err(error),
            }
        }
    }

    /// Starts the server on this port, as [`Running::start`] does on a free one.
    ///
    /// # Errors
    /// As [`Running::start`], and where the port is taken.
    pub fn start_on(spec: &Spec, launch: &Launch<'_>, port: u16, interrupt: &Interrupt) -> anyhow::Result<Self> {
        attempt_on(spec, launch, port, interrupt).map_err(|error| match error {
            NotReady::PortTaken(error) | NotReady::Failed(error) => error,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Root of its process tree.
    pub fn pid(&self) -> i32 {
        self.root.pid
    }

    /// `Some(why)` once it is gone: `exited with status 3: last lines of its log`.
    pub fn death(&mut self) -> Option<String> {
        Some(format!("{}: {}", self.exit()?, self.log.last_lines()))
    }

    /// Whether the server, and nobody else, listens on its port.
    ///
    /// # Errors
    /// Says who does.
    pub fn check_port(&self) -> anyhow::Result<()> {
        let port = self.address.port();
        match owner(self.address, &self.processes()) {
            Owner::Ours => Ok(()),
            Owner::Other => bail!("port {port} is held by another process than {}", self.name),
            Owner::Nobody => bail!("{} does not listen on port {port} any more", self.name),
        }
    }

    /// SIGTERM, a bounded wait, SIGKILL for what is left of the tree. Also on drop.
    ///
    /// # Errors
    /// Where a process outlives SIGKILL, which only the kernel can cause.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    /// The root's exit, without reaping it.
    fn exit(&self) -> Option<String> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::Pid(Pid::from_raw(self.root.pid)), flags) {
            Ok(WaitStatus::Exited(_, status)) => Some(format!("exited with status {status}")),
            Ok(WaitStatus::Signaled(_, signal, core)) => {
                Some(format!("was killed by {signal}{}", if core { ", core dumped" } else { "" }))
            }
            Ok(_) => None,
            Err(error) => Some(format!("cannot be waited for: {error}")),
        }
    }

    fn processes(&self) -> Vec<ProcessId> {
        members(self.root.pid, self.lease.token())
    }

    fn wait_ready(&self, timeout: Duration, interrupt: &Interrupt) -> Result<(), NotReady> {
        let deadline = Instant::now() + timeout;
        loop {
            interrupt.check()?;
            if let Some(exit) = self.exit() {
                return Err(self.exited_early(&exit));
            }
            let seen = probe(self.address, deadline, interrupt)?;
            if matches!(seen, Seen::Status(200)) {
                break;
            }
            if Instant::now() >= deadline {
                return Err(self.not_ready(&seen, timeout));
            }
            std::thread::sleep(PROBE_PAUSE);
        }
        let port = self.address.port();
        match (owner(self.address, &self.processes()), self.exit()) {
            (Owner::Ours, None) => Ok(()),
            (_, Some(exit)) => Err(self.exited_early(&exit)),
            _ => Err(NotReady::PortTaken(anyhow::anyhow!(
                "{} is not ready on the asked port: port {port} is held by another process, which answers",
                self.name
            ))),
        }
    }

    fn exited_early(&self, exit: &str) -> NotReady {
        let (name, last, port) = (&self.name, self.log.last_lines(), self.address.port());
        if owner(self.address, &self.processes()) == Owner::Other {
            return NotReady::PortTaken(anyhow::anyhow!(
                "port {port} is held by another process: {name} {exit}: {last}"
            ));
        }
        NotReady::Failed(anyhow::anyhow!("{name} {exit} before it was ready: {last}"))
    }

    fn not_ready(&self, seen: &Seen, timeout: Duration) -> NotReady {
        let processes = self.processes();
        let elsewhere: Vec<String> = addresses_of(&processes)
            .into_iter()
            .filter(|address| address.port() != self.address.port())
            .map(|address| address.to_string())
            .collect();
        let instead = if elsewhere.is_empty() {
            String::new()
        } else {
            format!(", it listens on {} instead", elsewhere.join(" and "))
        };
        let text = format!(
            "{} is not ready on the asked port {} after {:.1} s: {seen}{instead}: {}",
            self.name,
            self.address.port(),
            timeout.as_secs_f64(),
            self.log.last_lines()
        );
        match owner(self.address, &processes) {
            Owner::Other => NotReady::PortTaken(anyhow::anyhow!("{text}; the port is held by another process")),
            _ => NotReady::Failed(anyhow::anyhow!(text)),
        }
    }

    /// Ends everything that belongs to the server. Does nothing the second time.
    fn end(&mut self) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let group = Pid::from_raw(self.root.pid);
        let _ = killpg(group, Signal::SIGTERM);
        for process in self.processes() {
            if nix::unistd::getpgid(Some(Pid::from_raw(process.pid))) != Ok(group) {
                signal(process, Signal::SIGTERM);
            }
        }
        // The root first, since one look at it is cheap; then the rest.
        let deadline = Instant::now() + STOP_GRACE;
        while Instant::now() < deadline && (self.exit().is_none() || !self.processes().is_empty()) {
            std::thread::sleep(PROBE_PAUSE);
        }
        let deadline = Instant::now() + KILL_TIMEOUT;
        loop {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            if Instant::now() >= deadline {
                let pids: Vec<String> = left.iter().map(|process| process.pid.to_string()).collect();
                bail!("cannot end {}: SIGKILL did not end process {}", self.name, pids.join(", "));
            }
            for process in left {
                signal(process, Signal::SIGKILL);
            }
            std::thread::sleep(PROBE_PAUSE);
        }
        self.guard.release();
        self.child.wait().with_context(|| format!("cannot wait for {}", self.name))?;
        self.lease.release();
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What cannot be ended now is ended by the next sweep: its lease stays.
        let _ = self.end();
    }
}

fn attempt_on(spec: &Spec, launch: &Launch<'_>, port: u16, interrupt: &Interrupt) -> Result<Running, NotReady> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    // Asked before as well: a server that shares its port would start beside the other one.
    if owner(address, &[]) != Owner::Nobody {
        return Err(NotReady::PortTaken(anyhow::anyhow!("port {port} is held by another process")));
    }
    let running = spawn(spec, launch, address).with_context(|| format!("cannot start {}", spec.name))?;
    running.wait_ready(launch.ready_timeout, interrupt)?;
    Ok(running)
}

fn spawn(spec: &Spec, launch: &Launch<'_>, address: SocketAddr) -> anyhow::Result<Running> {
    let (log, writer) = Log::create(&launch.log).with_context(|| format!("cannot write {}", launch.log.display()))?;
    let mut lease = Lease::take(launch.state, &spec.name)?;
    let mut command = command(spec, launch, address, lease.token(), writer)?;
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child =
        command.spawn().with_context(|| format!("{program} cannot be run")).inspect_err(|_| lease.release())?;
    // The command holds our ends of the pipe: its output must end when the server does.
    drop(command);
    let pid = i32::try_from(child.id()).expect("process ids fit i32");
    match record(pid, &mut lease) {
        Ok((root, guard)) => {
            Ok(Running { name: spec.name.clone(), address, child, root, guard, lease, log, ended: false })
        }
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            lease.release();
            Err(error)
        }
    }
}

/// Makes sure that the server is ended whatever happens to this process.
fn record(pid: i32, lease: &mut Lease) -> anyhow::Result<(ProcessId, Guard)> {
    let guard = Guard::over(pid).context("cannot start /bin/sh to guard it")?;
    let root = ProcessId::of(pid).context("/proc does not show the process that was started")?;
    lease.started(root)?;
    Ok((root, guard))
}

fn command(
    spec: &Spec,
    launch: &Launch<'_>,
    address: SocketAddr,
    token: &str,
    output: PipeWriter,
) -> anyhow::Result<Command> {
    let mut values = tools(launch.bench)?;
    values.insert("host", address.ip().to_string());
    values.insert("port", address.port().to_string());
    values.insert("pool", POOL.to_string());
    let words: Vec<String> = spec.command.iter().map(|text| fill(text, &values)).collect();
    let [program, arguments @ ..] = words.as_slice() else { bail!("its command is empty") };
    values.insert("database_url", launch.database_url.to_owned());
    values.insert("jwt_secret", launch.jwt_secret.to_owned());
    let bench = std::path::absolute(launch.bench).with_context(|| format!("no folder {}", launch.bench.display()))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(spec.cwd.as_ref().map_or(bench.clone(), |cwd| bench.join(cwd)))
        .env_clear()
        .envs(INHERITED.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .env("NODE_ENV", "production")
        .env("HOST", address.ip().to_string())
        .env("PORT", address.port().to_string())
        .env("DATABASE_URL", launch.database_url)
        .env("DATABASE_POOL", POOL.to_string())
        .env("JWT_SECRET", launch.jwt_secret)
        .env(TOKEN_VARIABLE, token)
        .envs(spec.env.iter().map(|(name, text)| (name, fill(text, &values))))
        .stdin(Stdio::null())
        .stdout(output.try_clone().context("cannot share a pipe")?)
        .stderr(output)
        .process_group(0);
    Ok(command)
}
