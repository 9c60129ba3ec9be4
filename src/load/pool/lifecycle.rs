//! How connections come and go: opening before a window, loss and reconnect inside it, the drain after it.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Phase, Pool, pack};
use crate::load::ErrorKind;
use crate::load::connection::State;
use crate::load::errors::explain_connect;
use crate::load::http1::{Fault, Framer};
use crate::load::schedule::Schedule;
use crate::load::stream::Stream;
use crate::load::tally::Tally;

/// Handshakes of one thread at a time while opening: more would overrun a short backlog (128 is a common one), and the
/// kernel makes up for a dropped handshake only after a second.
const OPENING_AT_ONCE: usize = 32;
/// How long one handshake may take: three retransmissions of the kernel (1 + 2 + 4 s) would be 7 s.
const CONNECT_LIMIT_NS: u64 = 5_000_000_000;
/// How long a server may take to close what it announced to close. Servers do it with the reply.
const CLOSE_LIMIT_NS: u64 = 100_000_000;
/// With no connection up for this long, the window ends: several back-offs have been waited by then.
pub(in crate::load) const DEAD_LIMIT: Duration = Duration::from_secs(1);

/// A socket that is closed within this time of its opening, without a reply, was not closed for being idle.
pub(super) const FRESH_NS: u64 = 1_000_000_000;

/// Why fewer than all connections came up.
#[derive(Debug)]
pub(in crate::load) struct ConnectFailure {
    pub(in crate::load) failed: usize,
    /// What the first one said, with the remedy.
    pub(in crate::load) first: String,
}

impl Pool {
    /// Begins to open everything that is not open. What was closed while idle counts as a reconnect.
    pub(in crate::load) fn begin_opening(&mut self) {
        self.phase = Phase::Opening;
        self.open_failure = None;
        self.opening_since_ns = self.clock();
        for slot in 0..self.connections.len() {
            if let State::Closing { .. } = self.connections[slot].state {
                self.close(slot, State::Closed);
            }
            if !self.connections[slot].is_up() {
                // The first socket of a place has no earlier one to replace.
                self.tally.reconnects += u64::from(self.connections[slot].generation > 0);
                self.to_open.push(slot);
            }
        }
        self.open_more();
    }

    /// Starts further handshakes; true once none is left or under way.
    pub(in crate::load) fn open_more(&mut self) -> bool {
        while self.connecting < OPENING_AT_ONCE {
            let Some(slot) = self.to_open.pop() else { return self.connecting == 0 };
            if !self.connect(slot) {
                break;
            }
        }
        false
    }

    /// Ends opening: true where every connection is up, false where the server closed some meanwhile.
    ///
    /// # Errors
    /// Where a connection did not come up.
    pub(in crate::load) fn end_opening(&mut self) -> Result<bool, ConnectFailure> {
        self.phase = Phase::Quiet;
        match self.open_failure.take() {
            Some(failure) => Err(failure),
            None => Ok(self.not_up() == 0),
        }
    }

    /// The failure of connections that come up and go away again.
    pub(in crate::load) fn does_not_stay_open(&self) -> ConnectFailure {
        let why = self.tally.first_failure.as_ref().map_or("it closes them at once", |(_, failure)| &failure.detail);
        ConnectFailure { failed: self.not_up(), first: format!("{why}: look at the server's log") }
    }

    fn not_up(&self) -> usize {
        self.connections.iter().filter(|connection| !connection.is_up()).count()
    }

    /// Begins the window on all connections: a closed loop, or one that keeps to a schedule.
    pub(in crate::load) fn begin_sending(&mut self, start_ns: u64, end_ns: u64, schedule: Option<Schedule>) {
        (self.phase, self.start_ns, self.end_ns) = (Phase::Sending, start_ns, end_ns);
        self.begin_schedule(schedule);
        for connection in &mut self.connections {
            connection.served = false;
            connection.carried = connection.fresh_until_ns <= start_ns;
            connection.idle_since_ns = start_ns;
        }
        for slot in 0..self.connections.len() {
            self.clock();
            match self.connections[slot].state {
                State::Idle if self.is_sending() => self.begin(slot),
                // Closed while the connections of other threads were opened.
                State::Closed => {
                    self.tally.reconnects += 1;
                    self.connect(slot);
                }
                _ => {}
            }
        }
    }

    /// Ends the window, now or at its end, whichever was first.
    pub(in crate::load) fn end_sending(&mut self) {
        self.end_ns = self.end_ns.min(self.now_ns).max(self.start_ns);
        self.end_schedule();
        self.phase = Phase::Draining;
        self.tally.end.window_ns = self.end_ns - self.start_ns;
        (self.tally.end.bytes_read, self.tally.end.bytes_written) = (self.tally.bytes_read, self.tally.bytes_written);
        self.tally.end.connections_never_served = self.connections.iter().filter(|one| !one.served).count();
        for slot in 0..self.connections.len() {
            if self.connections[slot].state != State::InFlight {
                self.end_idle(slot, self.end_ns);
            }
        }
    }

    /// Whether the drain has something to wait for.
    pub(in crate::load) fn is_outstanding(&self) -> bool {
        self.in_flight + self.connecting > 0
    }

    /// Ends the drain: what has no reply by now is unfinished, and its connection useless. Gives the counts away.
    pub(in crate::load) fn finish(&mut self) -> Tally {
        let now_ns = self.clock();
        for slot in 0..self.connections.len() {
            let connection = &self.connections[slot];
            let is_lost = matches!(connection.state, State::Down { .. } | State::Connecting { .. });
            self.tally.end.connections_open += usize::from(!is_lost);
            if connection.state == State::InFlight {
                let sent_at_ns = connection.sent_at_ns;
                self.tally.end.unfinished += 1;
                let age_ns = now_ns - sent_at_ns;
                self.tally.end.unfinished_oldest_ns = self.tally.end.unfinished_oldest_ns.max(Some(age_ns));
                self.tally.failed_ns += self.end_ns.saturating_sub(sent_at_ns);
                self.close(slot, State::Closed);
            }
        }
        self.leave()
    }

    /// Drops what is outstanding and goes quiet; the counts so far are given away.
    pub(in crate::load) fn leave(&mut self) -> Tally {
        for slot in 0..self.connections.len() {
            if matches!(self.connections[slot].state, State::InFlight | State::Connecting { .. }) {
                self.close(slot, State::Closed);
            }
        }
        self.to_open.clear();
        self.unread.clear();
        self.free.clear();
        self.is_due_soon = false;
        self.phase = Phase::Quiet;
        self.schedule = None;
        (self.told_ok, self.told_errors) = (0, 0);
        let mut tally = std::mem::replace(&mut self.tally, Tally::new(self.shared.timeout));
        tally.end.connect_times = Some(self.connect_times.clone());
        tally
    }

    /// Looks at every connection for something that is due: cheaper than a timer for each request.
    pub(in crate::load) fn tick(&mut self) {
        let now_ns = self.clock();
        self.tell();
        let timeout_ns = u64::try_from(self.shared.timeout.as_nanos()).unwrap_or(u64::MAX);
        for slot in 0..self.connections.len() {
            let connection = &self.connections[slot];
            match connection.state {
                State::InFlight if now_ns.saturating_sub(connection.sent_at_ns) >= timeout_ns => {
                    let detail = format!("no whole reply within {:?}", self.shared.timeout);
                    self.fail(slot, ErrorKind::Timeout, &detail, 0);
                }
                State::Connecting { since_ns } if now_ns - since_ns >= CONNECT_LIMIT_NS => {
                    let error =
                        connection.stream.as_ref().map_or(io::ErrorKind::TimedOut.into(), Stream::took_too_long);
                    self.connect_failed(slot, &error);
                }
                State::Closing { since_ns } if now_ns - since_ns >= CLOSE_LIMIT_NS => self.closed_in_order(slot),
                State::Down { retry_at_ns } if self.is_sending() && now_ns >= retry_at_ns => {
                    self.connect(slot);
                }
                _ => {}
            }
        }
    }

    /// Whether no connection of any thread has been up since `dead_since_ns`, which is kept by the caller.
    pub(in crate::load) fn is_dead(&self, dead_since_ns: &mut Option<u64>) -> bool {
        if self.shared.connected.load(Ordering::Relaxed) > 0 {
            *dead_since_ns = None;
            return false;
        }
        let since_ns = *dead_since_ns.get_or_insert(self.now_ns);
        u128::from(self.now_ns - since_ns) >= DEAD_LIMIT.as_nanos()
    }

    /// Notes why the window ends before its time.
    pub(in crate::load) fn end_early(&mut self, why: String) {
        self.tally.end.ended_early = Some(why);
    }

    /// Brings the live counts up to date.
    fn tell(&mut self) {
        let (ok, errors) = (self.tally.requests_ok, self.tally.errors.iter().sum());
        self.shared.live_ok.fetch_add(ok - self.told_ok, Ordering::Relaxed);
        self.shared.live_errors.fetch_add(errors - self.told_errors, Ordering::Relaxed);
        (self.told_ok, self.told_errors) = (ok, errors);
    }

    /// Starts a handshake; `false` where the server has to accept others first.
    pub(super) fn connect(&mut self, slot: usize) -> bool {
        let now_ns = self.clock();
        let connection = &mut self.connections[slot];
        connection.generation = connection.generation.wrapping_add(1);
        connection.framer = Framer::default();
        connection.carried = false;
        let token = pack(slot, connection.generation);
        match Stream::connect(&self.shared.endpoint, &self.registry, token) {
            Ok(stream) => {
                self.connections[slot].stream = Some(stream);
                self.enter(slot, State::Connecting { since_ns: now_ns });
            }
            // A Unix socket says at once that its backlog is full, where TCP tries again by itself.
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock
                    && self.phase == Phase::Opening
                    && now_ns - self.opening_since_ns < CONNECT_LIMIT_NS =>
            {
                self.to_open.push(slot);
                return false;
            }
            Err(error) => self.connect_failed(slot, &error),
        }
        true
    }

    /// An event on a handshake: done, failed, or not yet decided.
    pub(super) fn finish_connect(&mut self, slot: usize) {
        let Some(stream) = &mut self.connections[slot].stream else { return };
        match stream.finish_connect() {
            Ok(false) => {}
            Ok(true) => {
                let now_ns = self.clock();
                if let State::Connecting { since_ns } = self.connections[slot].state {
                    self.connect_times.saturating_record(now_ns - since_ns);
                }
                self.connections[slot].fresh_until_ns = now_ns + FRESH_NS;
                self.enter(slot, State::Idle);
                self.shared.connected.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => self.connect_failed(slot, &error),
        }
    }

    fn connect_failed(&mut self, slot: usize, error: &io::Error) {
        let next = match self.phase {
            Phase::Opening | Phase::Quiet => {
                let failure = self
                    .open_failure
                    .get_or_insert_with(|| ConnectFailure { failed: 0, first: explain_connect(error) });
                failure.failed += 1;
                State::Closed
            }
            Phase::Sending | Phase::Draining => {
                self.count_error(slot, ErrorKind::of_connect(error), &explain_connect(error), 0);
                self.connections[slot].back_off(self.now_ns)
            }
        };
        self.close(slot, next);
    }

    /// Ends the time without a request at `until_ns`.
    pub(super) fn end_idle(&mut self, slot: usize, until_ns: u64) {
        self.tally.idle_ns += until_ns.saturating_sub(self.connections[slot].idle_since_ns);
    }

    /// The other side has closed.
    pub(super) fn end_of_stream(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        match connection.state {
            State::InFlight => match connection.framer.end() {
                Ok(Some(reply)) => {
                    self.complete(slot, reply, 0, true);
                    self.closed_in_order(slot);
                }
                // Nothing was owed yet: the request was not wholly written.
                Ok(None) => self.fail(slot, ErrorKind::Closed, &Fault::ClosedBeforeReply.to_string(), 0),
                Err(fault) => self.fail(slot, ErrorKind::of_fault(&fault), &fault.to_string(), 0),
            },
            State::Idle => self.fail(slot, ErrorKind::Closed, "closed before a request was sent", 0),
            State::Closing { .. } => self.closed_in_order(slot),
            State::Closed | State::Down { .. } | State::Connecting { .. } => {}
        }
    }

    /// Closed after a whole reply: opened again at once while a window or its drain lasts, else before the next one.
    pub(super) fn closed_in_order(&mut self, slot: usize) {
        self.close(slot, State::Closed);
        if matches!(self.phase, Phase::Sending | Phase::Draining) {
            self.connect(slot);
        }
    }

    /// The connection is of no use any more. The last `seen` bytes of it stand in the buffer.
    #[cold]
    pub(super) fn fail(&mut self, slot: usize, kind: ErrorKind, detail: &str, seen: usize) {
        let now_ns = self.clock();
        let connection = &mut self.connections[slot];
        let is_loss = matches!(kind, ErrorKind::Closed | ErrorKind::Read | ErrorKind::Write);
        match connection.state {
            // A reset in place of the announced close.
            State::Closing { .. } if is_loss => return self.closed_in_order(slot),
            // How keep-alive ends. Inside a window no connection is idle but a new one, which has no reason to end.
            State::Idle if is_loss && self.phase != Phase::Sending => return self.close(slot, State::Closed),
            // The same in an open loop, where connections wait for requests inside a window too.
            State::Idle if is_loss && self.schedule.is_some() && now_ns >= connection.fresh_until_ns => {
                self.tally.reconnects += 1;
                return self.closed_in_order(slot);
            }
            // The server closed a connection that had been idle since before the window, and its first request met
            // the close. Nothing is sent twice, the next request follows; the time counts as idle.
            State::InFlight if is_loss && connection.carried && !connection.framer.begun() => {
                connection.idle_since_ns = connection.sent_at_ns;
                self.tally.reconnects += 1;
                if let Some(open) = &mut self.tally.open {
                    open.unsent += 1;
                }
                return self.closed_in_order(slot);
            }
            State::InFlight => {
                self.tally.failed_ns += now_ns.min(self.end_ns).saturating_sub(connection.sent_at_ns);
                connection.idle_since_ns = now_ns;
            }
            _ => {}
        }
        self.count_error(slot, kind, detail, seen);
        self.tally.connections_lost += 1;
        let down = self.connections[slot].back_off(now_ns);
        self.close(slot, down);
    }

    fn close(&mut self, slot: usize, next: State) {
        let connection = &mut self.connections[slot];
        if connection.is_up() {
            self.shared.connected.fetch_sub(1, Ordering::Relaxed);
        }
        // Dropping the socket takes it out of epoll.
        connection.stream = None;
        connection.pending = 0..0;
        self.enter(slot, next);
    }
}
