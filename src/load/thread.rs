//! One driver thread: waits for commands between windows, turns its pool inside them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use mio::{Events, Poll};
use nix::time::{ClockId, clock_gettime};

use super::pool::{ConnectFailure, DEAD_LIMIT, Pool, Shared, WAKE};
use super::schedule::Schedule;
use super::tally::Tally;

/// Events taken from the kernel at once.
const EVENTS_AT_ONCE: usize = 1024;
/// How often all connections are looked at for timeouts and reconnects, and the flag to leave is read: a scan of ten
/// thousand connections in this time is about one part in a thousand of it.
const TICK_NS: u64 = 20_000_000;
/// Rounds of opening: a server that closes idle connections may close one while the others open, but not every time.
const OPENING_ROUNDS: usize = 3;

/// What the engine asks of a thread.
#[derive(Debug)]
pub(super) enum Command {
    /// Open what is not open; answered by [`Answer::Opened`].
    Open,
    /// Send from `start_ns` to `end_ns`, drain; answered by [`Answer::Done`].
    Run { start_ns: u64, end_ns: u64, rate: Option<f64> },
}

/// What a thread answers.
#[derive(Debug)]
pub(super) enum Answer {
    Opened(Result<(), ConnectFailure>),
    Done(Box<Tally>),
}

/// A thread's loop over its events.
pub(super) struct Thread {
    /// From 0, of so many.
    pub(super) index: usize,
    pub(super) threads: usize,
    pub(super) poll: Poll,
    pub(super) pool: Pool,
    pub(super) shared: Arc<Shared>,
}

impl Thread {
    /// Runs until the engine hangs up.
    ///
    /// # Errors
    /// Where the kernel refuses to poll; the engine then finds the thread gone.
    pub(super) fn main(mut self, commands: &Receiver<Command>, answers: &Sender<Answer>) -> std::io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_AT_ONCE);
        loop {
            // Every command and the hang-up come with a wake, so waiting without an end is safe here.
            let answer = match commands.try_recv() {
                Ok(Command::Open) => Answer::Opened(self.open(&mut events)?),
                Ok(Command::Run { start_ns, end_ns, rate }) => {
                    let schedule = rate.map(|rate| Schedule { rate, threads: self.threads, thread: self.index });
                    Answer::Done(Box::new(self.run(&mut events, start_ns, end_ns, schedule)?))
                }
                Err(TryRecvError::Empty) => {
                    self.turn(&mut events, None)?;
                    continue;
                }
                Err(TryRecvError::Disconnected) => return Ok(()),
            };
            if answers.send(answer).is_err() {
                return Ok(());
            }
        }
    }

    /// Waits for events until `until_ns`, at most a tick; handles them.
    fn turn(&mut self, events: &mut Events, until_ns: Option<u64>) -> std::io::Result<()> {
        let timeout = match until_ns {
            _ if !self.pool.may_wait() => Some(Duration::ZERO),
            Some(until_ns) => Some(Duration::from_nanos(until_ns.saturating_sub(self.pool.now_ns()))),
            None => None,
        };
        match self.poll.poll(events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => events.clear(),
            Err(error) => return Err(error),
        }
        self.pool.turn(events.iter().filter(|event| event.token() != WAKE));
        Ok(())
    }

    /// One turn of a loop that also has ticks.
    fn turn_with_ticks(&mut self, events: &mut Events, tick_ns: &mut u64, until_ns: u64) -> std::io::Result<()> {
        self.turn(events, Some(until_ns.min(*tick_ns)))?;
        if self.pool.now_ns() >= *tick_ns {
            self.pool.tick();
            *tick_ns = self.pool.now_ns() + TICK_NS;
        }
        Ok(())
    }

    fn is_aborted(&self) -> bool {
        self.shared.abort.load(Ordering::Relaxed)
    }

    /// Opens what is not open. The limit of one handshake bounds it.
    fn open(&mut self, events: &mut Events) -> std::io::Result<Result<(), ConnectFailure>> {
        // What was closed since the last turn must be known first.
        self.turn(events, Some(0))?;
        for _ in 0..OPENING_ROUNDS {
            self.pool.begin_opening();
            let mut tick_ns = self.pool.now_ns() + TICK_NS;
            while !self.pool.open_more() {
                if self.is_aborted() {
                    self.pool.leave();
                    return Ok(Ok(()));
                }
                self.turn_with_ticks(events, &mut tick_ns, u64::MAX)?;
            }
            match self.pool.end_opening() {
                Ok(true) => return Ok(Ok(())),
                Ok(false) => {}
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Err(self.pool.does_not_stay_open()))
    }

    /// One window and its drain.
    fn run(
        &mut self,
        events: &mut Events,
        start_ns: u64,
        end_ns: u64,
        schedule: Option<Schedule>,
    ) -> std::io::Result<Tally> {
        let cpu_start_ns = thread_cpu_ns();
        self.pool.begin_sending(start_ns, end_ns, schedule);
        let mut tick_ns = self.pool.now_ns() + TICK_NS;
        let mut dead_since_ns = None;
        while self.pool.now_ns() < end_ns {
            self.turn_with_ticks(events, &mut tick_ns, end_ns)?;
            if self.is_aborted() {
                self.pool.end_early("interrupted".to_owned());
                break;
            }
            if self.pool.is_dead(&mut dead_since_ns) {
                self.pool.end_early(format!("no connection was up for {DEAD_LIMIT:?}"));
                break;
            }
        }
        let cpu_ns = thread_cpu_ns() - cpu_start_ns;
        // A thread that never sleeps is always busy, which says nothing.
        let wall_ns = if self.shared.spins { 0 } else { self.pool.now_ns() - start_ns };
        self.pool.end_sending();
        self.drain(events, &mut tick_ns)?;
        let mut tally = self.pool.finish();
        (tally.end.cpu_ns, tally.end.wall_ns) = (cpu_ns, wall_ns);
        Ok(tally)
    }

    fn drain(&mut self, events: &mut Events, tick_ns: &mut u64) -> std::io::Result<()> {
        let limit = u64::try_from(self.shared.drain.as_nanos()).unwrap_or(u64::MAX / 2);
        let deadline_ns = self.pool.now_ns() + limit;
        while self.pool.is_outstanding() && self.pool.now_ns() < deadline_ns && !self.is_aborted() {
            self.turn_with_ticks(events, tick_ns, deadline_ns)?;
        }
        Ok(())
    }
}

/// CPU time of the calling thread.
fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every thread has a CPU clock");
    u64::try_from(Duration::from(time).as_nanos()).expect("centuries of CPU time fit")
}
