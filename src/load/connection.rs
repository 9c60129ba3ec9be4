//! One connection: where it stands between the server and the next request.

use std::ops::Range;

use super::http1::Framer;
use super::stream::Stream;

/// Wait before the first reconnect after a failure; doubled with every further one.
const BACKOFF_FIRST_NS: u64 = 10_000_000;
/// Longest wait: a server that is restarted is found within half a second, one that stays dead costs nothing.
const BACKOFF_LIMIT_NS: u64 = 500_000_000;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Closed in order, or not opened yet; opened before the next window.
    Closed,
    /// Lost; opened again at this time while a window lasts.
    Down { retry_at_ns: u64 },
    /// The handshake is under way.
    Connecting { since_ns: u64 },
    /// Open, nothing outstanding.
    Idle,
    /// A request is outstanding, perhaps not wholly written.
    InFlight,
    /// A reply announced the close: the server's end of it is awaited, so that the waiting socket (`TIME_WAIT`) is the
    /// server's and not one of our ports.
    Closing { since_ns: u64 },
}

/// One connection of a pool.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Option<Stream>,
    pub(super) state: State,
    /// Counts the sockets of this place, so that an event of an earlier one is recognised.
    pub(super) generation: u32,
    pub(super) framer: Framer,
    /// Start of the outstanding request; in a closed loop also the end of the one before.
    pub(super) sent_at_ns: u64,
    /// When it was due; in a closed loop that is when it was sent.
    pub(super) due_at_ns: u64,
    /// Since when nothing is outstanding, while nothing is.
    pub(super) idle_since_ns: u64,
    /// Index of the last request sent.
    pub(super) request: usize,
    /// Bytes of that request that are not written yet.
    pub(super) pending: Range<u32>,
    /// Open since before the window and without a reply in it: the server may have closed it as idle.
    pub(super) carried: bool,
    /// Had a reply in this window.
    pub(super) served: bool,
    /// Until then, and until its first reply, the socket has no reason to be closed as idle.
    pub(super) fresh_until_ns: u64,
    backoff_ns: u64,
}

impl Connection {
    /// `first_request` is the index of the request to begin with, of `requests`.
    pub(super) fn new(first_request: usize, requests: usize) -> Self {
        Self {
            stream: None,
            state: State::Closed,
            generation: 0,
            framer: Framer::default(),
            sent_at_ns: 0,
            due_at_ns: 0,
            idle_since_ns: 0,
            request: (first_request + requests - 1) % requests,
            pending: 0..0,
            carried: false,
            served: false,
            fresh_until_ns: 0,
            backoff_ns: BACKOFF_FIRST_NS,
        }
    }

    /// The index of the next request, of `requests`.
    #[inline]
    pub(super) fn advance(&mut self, requests: usize) -> usize {
        self.request += 1;
        if self.request == requests {
            self.request = 0;
        }
        self.request
    }

    /// When to try again after a failure now.
    pub(super) fn back_off(&mut self, now_ns: u64) -> State {
        let retry_at_ns = now_ns + self.backoff_ns;
        self.backoff_ns = (self.backoff_ns * 2).min(BACKOFF_LIMIT_NS);
        State::Down { retry_at_ns }
    }

    /// A reply came: the next failure is a first one again.
    #[inline]
    pub(super) fn recovered(&mut self) {
        self.backoff_ns = BACKOFF_FIRST_NS;
        self.fresh_until_ns = 0;
    }

    /// Bytes wait for room in the socket.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        !self.pending.is_empty() || self.stream.as_ref().is_some_and(Stream::has_unsent)
    }

    /// The handshake is done and the socket is there.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.state, State::Idle | State::InFlight | State::Closing { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_round_from_the_first() {
        let mut connection = Connection::new(2, 3);
        let order: Vec<usize> = (0..5).map(|_| connection.advance(3)).collect();
        assert_eq!(order, [2, 0, 1, 2, 0]);
        assert_eq!(Connection::new(0, 1).advance(1), 0);
    }

    #[test]
    fn waits_between_reconnects_double_up_to_a_limit() {
        let mut connection = Connection::new(0, 1);
        let mut waits = || (0..8).map(|_| connection.back_off(0)).collect::<Vec<_>>();
        let down = |ms: u64| State::Down { retry_at_ns: ms * 1_000_000 };
        assert_eq!(waits(), [10, 20, 40, 80, 160, 320, 500, 500].map(down));
        connection.recovered();
        assert_eq!(connection.back_off(5), State::Down { retry_at_ns: 10_000_005 });
    }
}
