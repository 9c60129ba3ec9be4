//! The engine: threads that stay for its life, told what to do by channel and woken by their poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use mio::{Poll, Waker};

use super::endpoint::Place;
use super::limits::{ensure_files, ensure_ports};
use super::pool::{Pool, Shared, WAKE};
use super::script::Script;
use super::thread::{Answer, Command, Thread};
use super::{Config, Window};
use crate::interrupt::{Interrupt, POLL};

/// Longest window: keeps times in nanoseconds far from their end.
const WINDOW_LIMIT: Duration = Duration::from_hours(24);

/// A schedule of fewer or more requests per second means nothing within a window, or is beyond any host.
const LOWEST_RATE: f64 = 0.1;
const HIGHEST_RATE: f64 = 10_000_000.0;

/// How one window is driven.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// How long to send.
    pub duration: Duration,
    /// Requests per second of an open loop, at equal distances; `None` for a closed loop.
    pub rate: Option<f64>,
}

/// How far a window has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Live {
    /// Since its start.
    pub elapsed: Duration,
    /// Good replies so far.
    pub requests_ok: u64,
    /// Errors so far, of any kind.
    pub errors: u64,
}

/// Open connections and the threads that drive them.
#[derive(Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    connections: usize,
    threads: Vec<Handle>,
    answers: Receiver<Answer>,
    interrupted: Option<Window>,
}

#[derive(Debug)]
struct Handle {
    /// `None` once the thread was told to end.
    commands: Option<Sender<Command>>,
    waker: Waker,
    /// `None` once joined.
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Engine {
    /// Connects everything. Nothing is sent yet.
    ///
    /// # Errors
    /// Where a request cannot be sent as given, where open files do not suffice, and where fewer than all connections
    /// come up: with their number, the error of the system and the remedy.
    pub fn start(config: Config, interrupt: &Interrupt) -> anyhow::Result<Self> {
        let Config { connections, threads, .. } = config;
        ensure!(threads > 0, "0 threads drive nothing: use at least 1");
        ensure!(
            connections >= threads,
            "{connections} connections cannot be spread over {threads} threads: use at least one a thread"
        );
        ensure!(!config.timeout.is_zero(), "a timeout of 0 ends every request: use a longer one");
        let script = Script::render(config.requests, &config.host)?;
        ensure_files(connections, threads)?;
        if let Place::Tcp(address) = config.endpoint.place {
            ensure_ports(address, connections)?;
        }
        let first_requests = spread(connections, threads, script.len());
        let shared = Arc::new(Shared {
            endpoint: config.endpoint,
            script,
            timeout: config.timeout,
            drain: config.drain,
            success_status: config.success_status,
            check_every: config.check_every,
            keeps_alive: config.keeps_alive,
            spins: config.spins,
            live_ok: AtomicU64::new(0),
            live_errors: AtomicU64::new(0),
            epoch: Instant::now(),
            connected: AtomicUsize::new(0),
            abort: AtomicBool::new(false),
        });
        let (answer, answers) = channel();
        let mut engine = Self { shared, connections, threads: Vec::new(), answers, interrupted: None };
        for (index, first_requests) in first_requests.iter().enumerate() {
            engine.threads.push(spawn((index, threads), first_requests, &engine.shared, answer.clone())?);
        }
        engine.open(interrupt)?;
        Ok(engine)
    }

    /// A closed loop for `duration`, see [`Engine::run_as`].
    ///
    /// # Errors
    /// Those of [`Engine::run_as`].
    pub fn run(&mut self, duration: Duration, interrupt: &Interrupt) -> anyhow::Result<Window> {
        self.run_as(Load { duration, rate: None }, interrupt, &mut |_| {})
    }

    /// Reconnects what was closed meanwhile, sends as `load` says, drains what is in flight, returns idle.
    /// Called for the warm-up (result dropped) and the window; between calls nothing is sent. `watch` is told several
    /// times a second how far the window has come.
    ///
    /// # Errors
    /// [`crate::interrupt::Interrupted`] once a signal has asked to stop; an error where a connection that was closed
    /// meanwhile does not come up again. What goes wrong inside the window is counted in it.
    pub fn run_as(&mut self, load: Load, interrupt: &Interrupt, watch: &mut dyn FnMut(Live)) -> anyhow::Result<Window> {
        let Load { duration, rate } = load;
        ensure!(duration <= WINDOW_LIMIT, "a window of {duration:?} is too long: use at most {WINDOW_LIMIT:?}");
        ensure!(
            rate.is_none_or(|rate| (LOWEST_RATE..=HIGHEST_RATE).contains(&rate)),
            "a rate of {} requests/s cannot be kept: use {LOWEST_RATE} to {HIGHEST_RATE}",
            rate.unwrap_or_default()
        );
        self.open(interrupt)?;
        self.shared.live_ok.store(0, Ordering::Relaxed);
        self.shared.live_errors.store(0, Ordering::Relaxed);
        let start_ns = self.shared.now_ns();
        let end_ns = start_ns + u64::try_from(duration.as_nanos()).context("the window is too long")?;
        let mut tallies = Vec::with_capacity(self.threads.len());
        for answer in self.ask(|| Command::Run { start_ns, end_ns, rate }, interrupt, watch)? {
            let Answer::Done(tally) = answer else { bail!("a driver thread answered out of turn") };
            tallies.push(*tally);
        }
        let window = Window::merge(self.connections, rate, tallies);
        if let Err(interrupted) = interrupt.check() {
            self.interrupted = Some(window);
            return Err(interrupted.into());
        }
        Ok(window)
    }

    /// What the window saw that an interrupt has ended.
    pub fn take_interrupted(&mut self) -> Option<Window> {
        self.interrupted.take()
    }

    fn open(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        let (mut failed, mut first) = (0, None);
        for answer in self.ask(|| Command::Open, interrupt, &mut |_| {})? {
            let Answer::Opened(outcome) = answer else { bail!("a driver thread answered out of turn") };
            if let Err(failure) = outcome {
                failed += failure.failed;
                first = first.or(Some(failure.first));
            }
        }
        interrupt.check()?;
        let Some(first) = first else { return Ok(()) };
        bail!(
            "only {} of {} connections to {} came up: {first}",
            self.connections - failed,
            self.connections,
            self.shared.endpoint
        )
    }

    /// Gives every thread a command and collects their answers. Interrupted, it has the threads leave the run first.
    fn ask(
        &mut self,
        command: impl Fn() -> Command,
        interrupt: &Interrupt,
        watch: &mut dyn FnMut(Live),
    ) -> anyhow::Result<Vec<Answer>> {
        let start = Instant::now();
        interrupt.check()?;
        self.shared.abort.store(false, Ordering::Relaxed);
        for thread in &self.threads {
            let sent = thread.commands.as_ref().is_some_and(|commands| commands.send(command()).is_ok());
            ensure!(sent, "a driver thread has ended: start a new engine");
            thread.waker.wake().context("failed to wake a driver thread")?;
        }
        let mut answers = Vec::with_capacity(self.threads.len());
        while answers.len() < self.threads.len() {
            match self.answers.recv_timeout(POLL) {
                Ok(answer) => answers.push(answer),
                Err(RecvTimeoutError::Timeout) => {
                    self.check_threads()?;
                    watch(Live {
                        elapsed: start.elapsed(),
                        requests_ok: self.shared.live_ok.load(Ordering::Relaxed),
                        errors: self.shared.live_errors.load(Ordering::Relaxed),
                    });
                }
                Err(RecvTimeoutError::Disconnected) => bail!("all driver threads have ended: start a new engine"),
            }
            if interrupt.requested().is_some() && !self.shared.abort.swap(true, Ordering::Relaxed) {
                self.wake_all();
            }
        }
        Ok(answers)
    }

    /// A thread that ended by itself never answers.
    fn check_threads(&mut self) -> anyhow::Result<()> {
        for handle in &mut self.threads {
            let Some(thread) = handle.thread.take_if(|thread| thread.is_finished()) else { continue };
            match thread.join() {
                Ok(outcome) => outcome.context("a driver thread failed to wait for events")?,
                Err(_) => bail!("a driver thread panicked: this is a fault of the driver"),
            }
            bail!("a driver thread has ended: start a new engine");
        }
        Ok(())
    }

    fn wake_all(&self) {
        for thread in &self.threads {
            // A thread that cannot be woken looks at the flag by itself, within a tick.
            let _ = thread.waker.wake();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.abort.store(true, Ordering::Relaxed);
        self.threads.iter_mut().for_each(|handle| handle.commands = None);
        self.wake_all();
        for thread in self.threads.iter_mut().filter_map(|handle| handle.thread.take()) {
            // Its panic has been reported, or nobody waits for an answer any more.
            let _ = thread.join();
        }
    }
}

fn spawn(
    (index, threads): (usize, usize),
    first_requests: &[usize],
    shared: &Arc<Shared>,
    answers: Sender<Answer>,
) -> anyhow::Result<Handle> {
    let poll = Poll::new().context("failed to make an epoll instance")?;
    let waker = Waker::new(poll.registry(), WAKE).context("failed to make a waker")?;
    let registry = poll.registry().try_clone().context("failed to make an epoll instance")?;
    let shared = Arc::clone(shared);
    let connections = Pool::new(Arc::clone(&shared), registry, first_requests).context("failed to make a timer")?;
    let thread = Thread { index, threads, pool: connections, poll, shared };
    let (commands, receiver) = channel();
    let thread = std::thread::Builder::new()
        .name(format!("load-{index}"))
        .spawn(move || thread.main(&receiver, &answers))
        .context("failed to start a driver thread")?;
    Ok(Handle { commands: Some(commands), waker, thread: Some(thread) })
}

/// For every thread, the first request of each of its connections: the remainder of the connections goes to the first
/// threads, and the starts are spread evenly over the requests.
fn spread(connections: usize, threads: usize, requests: usize) -> Vec<Vec<usize>> {
    let start_of = |connection: usize| {
        let start = connection as u128 * requests as u128 / connections as u128;
        usize::try_from(start).expect("less than the number of requests")
    };
    let of_thread = |thread| (thread..connections).step_by(threads).map(start_of).collect();
    (0..threads).map(of_thread).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread_exactly_with_different_starts() {
        let sizes = |spread: &[Vec<usize>]| spread.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(&spread(15, 8, 1)), [2, 2, 2, 2, 2, 2, 2, 1]);
        let spread = spread(10, 3, 1000);
        assert_eq!(sizes(&spread), [4, 3, 3]);
        let mut starts = spread.concat();
        starts.sort_unstable();
        assert_eq!(starts, [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
    }
}
