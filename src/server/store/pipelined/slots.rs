//! Which connection carries the next query, and who waits when none has room.
//!
//! Reads are spread over the first few connections and then fill one after the other: the fewer connections carry them,
//! the more answers come back in one packet. Inserts go where the fewest queries are in flight, since the commits of
//! one connection run one after another.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Link;
use crate::server::store::StoreError;

/// What a query does to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Insert,
}

/// Bounds and policy of one worker's slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    /// Connections that share reads evenly before any further one is used.
    pub(super) spread: usize,
    /// Queries in flight on one connection.
    pub(super) depth: usize,
    /// Requests that may wait for a slot.
    pub(super) waiting: usize,
    /// How long each may wait.
    pub(super) wait_time: Duration,
}

/// One worker's connections with their queries in flight.
#[derive(Debug)]
pub(super) struct Slots {
    policy: Policy,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// `None` while that connection is down.
    links: Vec<Option<Arc<Link>>>,
    waiting: VecDeque<Waiter>,
    closed: bool,
}

/// A request in line for a slot.
#[derive(Debug)]
struct Waiter {
    kind: Kind,
    slot: oneshot::Sender<Slot>,
}

/// The right to have one query in flight. Dropped when Postgres has answered.
#[derive(Debug)]
pub(super) struct Slot {
    link: Arc<Link>,
    slots: Arc<Slots>,
}

impl Slot {
    pub(super) fn link(&self) -> &Link {
        &self.link
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.link.in_flight.sub();
        self.slots.hand_on();
    }
}

/// Queries in flight on one connection. Only its worker's thread counts; atomic because tasks must be `Send`.
#[derive(Debug, Default)]
pub(super) struct InFlight(AtomicUsize);

impl InFlight {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn sub(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Slots {
    /// Room for `connections`, all down.
    pub(super) fn new(connections: usize, policy: Policy) -> Self {
        let links = std::iter::repeat_with(|| None).take(connections).collect();
        Self { policy, state: Mutex::new(State { links, ..State::default() }) }
    }

    /// Takes a slot, waiting in line when all are taken.
    pub(super) async fn take(self: &Arc<Self>, kind: Kind) -> Result<Slot, StoreError> {
        let turn = {
            let mut state = self.lock();
            if let Some(slot) = self.try_take(kind, &state) {
                return Ok(slot);
            }
            self.queue(kind, &mut state)?
        };
        match tokio::time::timeout(self.policy.wait_time, turn).await {
            Ok(Ok(slot)) => Ok(slot),
            // The line was dissolved because the store closed, or the wait was as long as it may be.
            Ok(Err(_)) | Err(_) => Err(refusal(&self.lock())),
        }
    }

    fn queue(&self, kind: Kind, state: &mut State) -> Result<oneshot::Receiver<Slot>, StoreError> {
        if state.waiting.len() >= self.policy.waiting {
            // Those whose caller left or ran out of time do not count.
            state.waiting.retain(|waiter| !waiter.slot.is_closed());
        }
        if state.closed || state.waiting.len() >= self.policy.waiting {
            return Err(refusal(state));
        }
        let (slot, turn) = oneshot::channel();
        state.waiting.push_back(Waiter { kind, slot });
        Ok(turn)
    }

    fn try_take(self: &Arc<Self>, kind: Kind, state: &State) -> Option<Slot> {
        let loads = state.links.iter().map(|link| link.as_ref().map(|link| link.in_flight.get()));
        let place = choose(kind, &self.policy, loads)?;
        let link = Arc::clone(state.links[place].as_ref()?);
        link.in_flight.add();
        Some(Slot { link, slots: Arc::clone(self) })
    }

    /// Gives free slots to those who wait, first come first served.
    fn hand_on(self: &Arc<Self>) {
        loop {
            let (waiter, slot) = {
                let mut state = self.lock();
                let Some(waiter) = state.waiting.pop_front() else { return };
                if waiter.slot.is_closed() {
                    continue;
                }
                let Some(slot) = self.try_take(waiter.kind, &state) else {
                    state.waiting.push_front(waiter);
                    return;
                };
                (waiter, slot)
            };
            // Should the caller have left just now, the slot comes back, is dropped and handed on again.
            let _ = waiter.slot.send(slot);
        }
    }

    /// Puts a connection in its place and serves those who wait. `false` once the store is closed.
    pub(super) fn up(self: &Arc<Self>, place: usize, link: Arc<Link>) -> bool {
        {
            let mut state = self.lock();
            if state.closed {
                return false;
            }
            state.links[place] = Some(link);
        }
        self.hand_on();
        true
    }

    /// Takes a lost connection out. `false` once the store is closed.
    pub(super) fn down(&self, place: usize) -> bool {
        let mut state = self.lock();
        state.links[place] = None;
        !state.closed
    }

    /// Lets go of every connection; each ends when its last query is answered.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.links.iter_mut().for_each(|link| *link = None);
        state.waiting.clear();
    }

    /// Whether the store has let go of its connections.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it holds this lock")
    }
}

/// Why there is no slot.
fn refusal(state: &State) -> StoreError {
    if state.links.iter().all(Option::is_none) { StoreError::Away } else { StoreError::Full }
}

/// The place of the connection for the next query, given the queries in flight on each (`None`: down).
fn choose(kind: Kind, policy: &Policy, loads: impl Iterator<Item = Option<usize>>) -> Option<usize> {
    let up = loads.enumerate().filter_map(|(place, load)| Some((place, load?)));
    match kind {
        Kind::Insert => up.min_by_key(|&(_, load)| load).filter(|&(_, load)| load < policy.depth),
        Kind::Read => {
            let mut least: Option<(usize, usize)> = None;
            for (order, (place, load)) in up.enumerate() {
                if order >= policy.spread && least.is_some() {
                    break;
                }
                if load < policy.depth && least.is_none_or(|(_, l)| load < l) {
                    least = Some((place, load));
                }
            }
            least
        }
    }
    .map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(kind: Kind, spread: usize, loads: &[Option<usize>]) -> Option<usize> {
        let policy = Policy { spread, depth: 4, waiting: 0, wait_time: Duration::ZERO };
        choose(kind, &policy, loads.iter().copied())
    }

    #[test]
    fn reads_fill_one_connection_before_the_next() {
        let read = |loads: &[usize]| chosen(Kind::Read, 1, &loads.iter().map(|&l| Some(l)).collect::<Vec<_>>());
        assert_eq!(read(&[0, 0, 0]), Some(0));
        assert_eq!(read(&[3, 0, 0]), Some(0));
        assert_eq!(read(&[4, 0, 0]), Some(1));
        assert_eq!(read(&[4, 4, 2]), Some(2));
        assert_eq!(read(&[4, 4, 4]), None);
    }

    #[test]
    fn reads_are_spread_first_and_then_fill() {
        let read = |loads: &[usize]| chosen(Kind::Read, 2, &loads.iter().map(|&l| Some(l)).collect::<Vec<_>>());
        assert_eq!(read(&[1, 0, 0]), Some(1));
        assert_eq!(read(&[2, 2, 0]), Some(0));
        assert_eq!(read(&[4, 3, 0]), Some(1));
        assert_eq!(read(&[4, 4, 0]), Some(2));
    }

    #[test]
    fn inserts_go_where_the_least_is_in_flight() {
        let insert = |loads: &[usize]| chosen(Kind::Insert, 1, &loads.iter().map(|&l| Some(l)).collect::<Vec<_>>());
        assert_eq!(insert(&[1, 0, 0]), Some(1));
        assert_eq!(insert(&[1, 1, 1]), Some(0));
        assert_eq!(insert(&[4, 4, 4]), None);
    }

    #[test]
    fn connections_that_are_down_are_passed_over() {
        assert_eq!(chosen(Kind::Read, 1, &[None, Some(3), Some(0)]), Some(1));
        assert_eq!(chosen(Kind::Read, 2, &[None, Some(3), Some(0)]), Some(2));
        assert_eq!(chosen(Kind::Insert, 1, &[None, Some(3), Some(0)]), Some(2));
        assert_eq!(chosen(Kind::Read, 1, &[None, None]), None);
    }
}
