//! The open loop: what is due is sent on the connection that has waited longest, and what finds none is sent late, by
//! the first connection that has its reply. Latency counts from when a request was due, so nothing is left out of it.

use std::time::Duration;

use super::{Phase, Pool};
use crate::load::connection::State;
use crate::load::schedule::Schedule;
use crate::load::tally::OpenTally;

/// A request due within this time is waited for without a timer: arming one and being woken takes about as long.
const SOON_NS: u64 = 10_000;

impl Pool {
    pub(super) fn begin_schedule(&mut self, schedule: Option<Schedule>) {
        (self.schedule, self.next, self.is_due_soon) = (schedule, 0, false);
        self.free.clear();
        self.tally.open = schedule.map(|_| OpenTally::new(self.shared.timeout));
    }

    /// Sends what is due, as far as there are connections, and sets the timer for the next.
    pub(super) fn send_due(&mut self) {
        self.is_due_soon = false;
        if self.phase != Phase::Sending {
            return;
        }
        loop {
            let Some(due_ns) = self.next_due_ns() else { return };
            let now_ns = self.clock();
            if due_ns > now_ns {
                return self.wait_until(due_ns, now_ns);
            }
            // Without a free connection the next reply sends it.
            let Some(slot) = self.take_free() else { return };
            self.send_next(slot, now_ns, due_ns);
        }
    }

    /// A connection has its reply: it sends what is overdue at once, else it waits for its turn.
    pub(super) fn free_for_next(&mut self, slot: usize) {
        match self.next_due_ns() {
            Some(due_ns) if due_ns <= self.now_ns => self.send_next(slot, self.now_ns, due_ns),
            _ => self.free.push_back(slot),
        }
    }

    /// What was due and not sent when the window ended; the last ones are sent if they can be.
    pub(super) fn end_schedule(&mut self) {
        let Some(schedule) = self.schedule else { return };
        while let Some(due_ns) = self.next_due_ns()
            && let Some(slot) = self.take_free()
        {
            let now_ns = self.clock();
            self.send_next(slot, now_ns, due_ns);
        }
        self.is_due_soon = false;
        if let Some(open) = &mut self.tally.open {
            open.scheduled = schedule.count(self.end_ns - self.start_ns);
            open.unsent += open.scheduled.saturating_sub(self.next);
            open.oldest_unsent_ns =
                (open.scheduled > self.next).then(|| self.end_ns - self.start_ns - schedule.due_ns(self.next));
        }
    }

    fn next_due_ns(&self) -> Option<u64> {
        let due_ns = self.start_ns + self.schedule?.due_ns(self.next);
        (due_ns < self.end_ns).then_some(due_ns)
    }

    fn take_free(&mut self) -> Option<usize> {
        while let Some(slot) = self.free.pop_front() {
            if self.connections[slot].state == State::Idle {
                return Some(slot);
            }
        }
        None
    }

    fn send_next(&mut self, slot: usize, now_ns: u64, due_ns: u64) {
        self.next += 1;
        self.end_idle(slot, now_ns.min(self.end_ns));
        if let Some(open) = &mut self.tally.open {
            // Waiting for a connection is the server's time, everything after that the driver's.
            open.sent(now_ns, now_ns - due_ns.max(self.connections[slot].idle_since_ns).min(now_ns));
        }
        self.send(slot, now_ns, due_ns);
    }

    fn wait_until(&mut self, due_ns: u64, now_ns: u64) {
        let wait_ns = due_ns - now_ns;
        // A timer that cannot be set is replaced by turning without a wait.
        self.is_due_soon =
            self.shared.spins || wait_ns < SOON_NS || self.pacer.wake_after(Duration::from_nanos(wait_ns)).is_err();
    }
}
