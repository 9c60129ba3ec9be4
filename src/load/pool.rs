//! One thread's connections, and the way of a request: an event, a read, a whole reply, the next write.
//!
//! Sockets are registered once, edge-triggered for both directions. A short read has emptied the socket, so the read
//! that would only say so is left out; a short write is continued when the kernel says that there is room. The time of
//! a reply is the time of the next request: one clock read for both. How connections come and go is in `lifecycle`, how
//! an open loop finds them for what is due in `open`, which replies count in `check`.

mod check;
mod lifecycle;
mod open;

use std::collections::VecDeque;
use std::io::{self, ErrorKind as IoErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::event::Event;
use mio::{Registry, Token};

use super::ErrorKind;
use super::connection::{Connection, State};
use super::endpoint::Endpoint;
use super::http1::{Framing, HeadCache, Reply, Wants};
use super::pacer::Pacer;
use super::schedule::Schedule;
use super::script::Script;
use super::tally::{Tally, connect_histogram};

use check::sample;
pub(super) use lifecycle::{ConnectFailure, DEAD_LIMIT};

/// Read at once: longer than any reply of the contract, small enough to stay in the cache.
const BUFFER_BYTES: usize = 64 * 1024;
/// Reads of one connection before the others have their turn: no endless reply may hold up the loop.
const READS_PER_TURN: u32 = 16;

/// What all threads of an engine share; constant but for the atomics, which no request touches.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    pub(super) script: Script,
    pub(super) timeout: Duration,
    pub(super) drain: Duration,
    pub(super) success_status: Option<u16>,
    pub(super) check_every: u32,
    /// Whether a connection carries more than one request.
    pub(super) keeps_alive: bool,
    /// Whether threads look for events without sleeping.
    pub(super) spins: bool,
    /// Zero of all times in nanoseconds.
    pub(super) epoch: Instant,
    /// Connections that are up, over all threads.
    pub(super) connected: AtomicUsize,
    /// Good replies and errors of the window so far, brought up to date every tick.
    pub(super) live_ok: AtomicU64,
    pub(super) live_errors: AtomicU64,
    /// The run is to be left at once.
    pub(super) abort: AtomicBool,
}

impl Shared {
    /// Nanoseconds since the epoch, of the monotonic clock.
    #[inline]
    pub(super) fn now_ns(&self) -> u64 {
        // 2^64 ns are 584 years.
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// What a pool is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Between windows: nothing is sent, nothing is opened.
    Quiet,
    /// Opening what is not open.
    Opening,
    /// Inside the window.
    Sending,
    /// After it, for what is still outstanding.
    Draining,
}

/// One thread's connections.
#[derive(Debug)]
pub(super) struct Pool {
    shared: Arc<Shared>,
    registry: Registry,
    connections: Vec<Connection>,
    heads: HeadCache,
    buffer: Box<[u8]>,
    tally: Tally,
    phase: Phase,
    /// Handshakes since the pool was made, in nanoseconds.
    connect_times: Histogram<u64>,
    /// Of an open loop; a closed one has none.
    schedule: Option<Schedule>,
    pacer: Pacer,
    /// Number of the next request of the schedule.
    next: u64,
    /// Connections without a request, the one that waits longest first, with their socket: it may have been closed.
    free: VecDeque<(usize, u32)>,
    /// The next request is due so soon that a timer would be late.
    is_due_soon: bool,
    /// What the live counts have been told.
    told_ok: u64,
    told_errors: u64,
    /// Start and end of the window.
    start_ns: u64,
    end_ns: u64,
    /// The last clock read, and whether there was one since the last turn.
    now_ns: u64,
    clock_was_read: bool,
    /// Replies until the next body is compared.
    until_check: u32,
    in_flight: usize,
    connecting: usize,
    /// Places that had more to read than one turn allows, with their socket and whether its other side has closed.
    unread: Vec<(usize, u32, bool)>,
    /// Places to open, while opening.
    to_open: Vec<usize>,
    opening_since_ns: u64,
    open_failure: Option<ConnectFailure>,
}

impl Pool {
    /// A pool of unopened connections that begin with these requests.
    ///
    /// # Errors
    /// Where the kernel refuses a timer.
    pub(super) fn new(shared: Arc<Shared>, registry: Registry, first_requests: &[usize]) -> io::Result<Self> {
        let requests = shared.script.len();
        Ok(Self {
            pacer: Pacer::new(&registry, PACE)?,
            schedule: None,
            next: 0,
            free: VecDeque::with_capacity(first_requests.len()),
            is_due_soon: false,
            told_ok: 0,
            told_errors: 0,
            connect_times: connect_histogram(),
            tally: Tally::new(shared.timeout),
            until_check: 1,
            registry,
            connections: first_requests.iter().map(|&first| Connection::new(first, requests)).collect(),
            heads: HeadCache::default(),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            phase: Phase::Quiet,
            start_ns: 0,
            end_ns: 0,
            now_ns: shared.now_ns(),
            clock_was_read: false,
            in_flight: 0,
            connecting: 0,
            unread: Vec::new(),
            to_open: Vec::new(),
            opening_since_ns: 0,
            open_failure: None,
            shared,
        })
    }

    /// The time of the last clock read: at most one turn old.
    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Whether the next turn may wait for events.
    pub(super) fn may_wait(&self) -> bool {
        let spins = self.shared.spins && matches!(self.phase, Phase::Sending | Phase::Draining);
        self.unread.is_empty() && !self.is_due_soon && !spins
    }

    /// Handles the events of one turn, and what an earlier turn left.
    pub(super) fn turn<'a>(&mut self, events: impl Iterator<Item = &'a Event>) {
        self.clock_was_read = false;
        for (slot, generation, ended) in std::mem::take(&mut self.unread) {
            if self.connections[slot].generation == generation {
                self.read(slot, ended);
            }
        }
        for event in events {
            self.on_event(event);
        }
        if !self.clock_was_read {
            self.clock();
        }
        if self.schedule.is_some() {
            self.send_due();
        }
    }

    #[inline]
    fn clock(&mut self) -> u64 {
        self.now_ns = self.shared.now_ns();
        self.clock_was_read = true;
        self.now_ns
    }

    fn on_event(&mut self, event: &Event) {
        let Some((slot, generation)) = unpack(event.token()) else { return };
        let connection = &self.connections[slot];
        if connection.generation != generation {
            return;
        }
        let ended = event.is_read_closed() || event.is_error();
        if matches!(connection.state, State::Connecting { .. }) {
            self.finish_connect(slot);
            if !self.connections[slot].is_up() {
                return;
            }
            // What came with the handshake must be read before anything is sent: it is a reply to nothing.
            if event.is_readable() || ended {
                self.read(slot, ended);
            }
            if self.connections[slot].state == State::Idle && self.is_sending() {
                let now_ns = self.clock();
                // Until now there was no connection, which is not a delay of the driver.
                self.end_idle(slot, now_ns);
                self.connections[slot].idle_since_ns = now_ns;
                self.begin(slot);
            }
            return;
        }
        if event.is_writable() && connection.has_unsent() {
            self.write(slot);
            if self.connections[slot].generation != generation {
                return;
            }
        }
        if event.is_readable() || ended {
            self.read(slot, ended);
        }
    }

    fn is_sending(&self) -> bool {
        self.phase == Phase::Sending && self.now_ns < self.end_ns
    }

    /// Puts a connection to work that has become idle inside the window.
    fn begin(&mut self, slot: usize) {
        if self.schedule.is_some() {
            return self.put_free(slot);
        }
        let now_ns = self.clock();
        self.end_idle(slot, now_ns);
        self.send(slot, now_ns, now_ns);
    }

    /// Reads what there is. `ended`: the other side has closed, so a short read is not the last.
    #[inline]
    fn read(&mut self, slot: usize, ended: bool) {
        let generation = self.connections[slot].generation;
        for _ in 0..READS_PER_TURN {
            let connection = &mut self.connections[slot];
            // The last reply may have ended one socket and opened another.
            if connection.generation != generation {
                return;
            }
            let Some(stream) = &mut connection.stream else { return };
            match stream.read(&mut self.buffer) {
                Ok(0) => return self.end_of_stream(slot),
                Ok(length) => {
                    self.tally.bytes_read += length as u64;
                    match connection.framer.feed(&self.buffer[..length], &mut self.heads) {
                        Ok(None) => {}
                        Ok(Some(reply)) => self.complete(slot, reply, length, ended),
                        Err(fault) => {
                            return self.fail(slot, ErrorKind::of_fault(&fault), &fault.to_string(), length);
                        }
                    }
                    if length < self.buffer.len() && !ended {
                        return;
                    }
                }
                Err(error) if error.kind() == IoErrorKind::WouldBlock => return,
                Err(error) if error.kind() == IoErrorKind::Interrupted => {}
                Err(error) => return self.fail(slot, ErrorKind::Read, &error.to_string(), 0),
            }
        }
        self.unread.push((slot, generation, ended));
    }

    /// A reply is whole: count it and send the next request. `seen` bytes of it stand in the buffer.
    #[inline]
    fn complete(&mut self, slot: usize, reply: Reply, seen: usize, ended: bool) {
        let now_ns = self.clock();
        let is_good = self.is_good(slot, reply, seen);
        let (start_ns, end_ns) = (self.start_ns, self.end_ns);
        let connection = &mut self.connections[slot];
        let (sent_at_ns, due_at_ns) = (connection.sent_at_ns, connection.due_at_ns);
        connection.carried = false;
        connection.recovered();
        let is_inside = now_ns < end_ns;
        connection.served |= is_inside;
        if is_good {
            if reply.framing == Framing::EndOfStream {
                self.tally.framed_by_close += 1;
            }
            if is_inside {
                self.tally.completed(now_ns - start_ns, now_ns - due_at_ns);
            } else {
                self.tally.completed_late(now_ns - due_at_ns, now_ns - end_ns.max(sent_at_ns));
            }
            if let Some(open) = &mut self.tally.open {
                open.served(now_ns - sent_at_ns);
            }
        } else {
            self.tally.failed_ns += now_ns.min(end_ns).saturating_sub(sent_at_ns);
        }
        if !self.shared.keeps_alive && !reply.close && !ended {
            // Asked to close, the server did not: the port that waits is ours then.
            self.connections[slot].idle_since_ns = now_ns;
            self.closed_in_order(slot);
        } else if reply.close || ended {
            self.tally.closed_by_server += 1;
            self.connections[slot].idle_since_ns = now_ns;
            self.enter(slot, State::Closing { since_ns: now_ns });
        } else if is_inside && self.phase == Phase::Sending && self.schedule.is_none() {
            self.send(slot, now_ns, now_ns);
        } else {
            self.connections[slot].idle_since_ns = now_ns;
            self.enter(slot, State::Idle);
            if self.schedule.is_some() && self.is_sending() {
                self.free_for_next(slot);
            }
        }
    }

    /// Sends the next request of a connection that has none outstanding, as of now.
    #[inline]
    fn send(&mut self, slot: usize, now_ns: u64, due_at_ns: u64) {
        let connection = &mut self.connections[slot];
        let request = self.shared.script.slot(connection.advance(self.shared.script.len()));
        (connection.sent_at_ns, connection.due_at_ns) = (now_ns, due_at_ns);
        connection.pending = request.start..request.end;
        self.enter(slot, State::InFlight);
        self.write(slot);
    }

    /// Writes what is pending, as far as there is room.
    #[inline]
    fn write(&mut self, slot: usize) {
        loop {
            let connection = &mut self.connections[slot];
            let Some(stream) = &mut connection.stream else { return };
            if connection.pending.is_empty() {
                // The last bytes of a request that TLS has taken already.
                match stream.send_rest() {
                    Ok(()) => return,
                    Err(error) => return self.fail(slot, ErrorKind::Write, &error.to_string(), 0),
                }
            }
            let bytes = self.shared.script.bytes(connection.pending.start, connection.pending.end);
            match stream.write(bytes) {
                Ok(0) => return self.fail(slot, ErrorKind::Write, "no byte was taken", 0),
                Ok(length) => {
                    self.tally.bytes_written += length as u64;
                    if length < bytes.len() {
                        // Shorter than a request, and those have 32 bits.
                        connection.pending.start += u32::try_from(length).expect("a part of a request");
                        continue;
                    }
                    connection.pending = 0..0;
                    let request = self.shared.script.slot(connection.request);
                    let whole = request.has_expected && sample(&mut self.until_check, self.shared.check_every);
                    let wants = Wants { whole, start: request.known_start > 0 };
                    return connection.framer.expect(request.is_head, wants);
                }
                Err(error) if error.kind() == IoErrorKind::WouldBlock => return,
                Err(error) if error.kind() == IoErrorKind::Interrupted => {}
                Err(error) => return self.fail(slot, ErrorKind::Write, &error.to_string(), 0),
            }
        }
    }

    /// Changes the state and the counts that hang on it.
    #[inline]
    fn enter(&mut self, slot: usize, state: State) {
        let old = std::mem::replace(&mut self.connections[slot].state, state);
        let in_flight = |state| usize::from(matches!(state, State::InFlight));
        let connecting = |state| usize::from(matches!(state, State::Connecting { .. }));
        self.in_flight = self.in_flight + in_flight(state) - in_flight(old);
        self.connecting = self.connecting + connecting(state) - connecting(old);
    }
}

/// The tokens of the waker and of the timer: no place has them.
pub(super) const WAKE: Token = Token(usize::MAX);
const PACE: Token = Token(usize::MAX - 1);
const GENERATION_SHIFT: u32 = usize::BITS / 2;

fn pack(slot: usize, generation: u32) -> Token {
    // On 64 bits the generation fits whole; elsewhere its low half does.
    Token(slot | (generation as usize) << GENERATION_SHIFT)
}

fn unpack(token: Token) -> Option<(usize, u32)> {
    let slot = token.0 & ((1 << GENERATION_SHIFT) - 1);
    (token != WAKE && token != PACE)
        .then(|| (slot, u32::try_from(token.0 >> GENERATION_SHIFT).expect("half of a word")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_holds_place_and_generation() {
        assert_eq!(unpack(pack(7, 3)), Some((7, 3)));
        assert_eq!((unpack(WAKE), unpack(PACE)), (None, None));
    }
}
