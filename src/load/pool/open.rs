//! The open loop: what is due is sent on the connection that has waited longest, and what finds none is sent late, by
//! the first connection that has its reply. Latency counts from when a request was due, so nothing is left out of it.

use std::time::Duration;

use super::lifecycle::FRESH_NS;
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
        if schedule.is_some() {
            // What was due first may be sent last.
            let longest = self.shared.timeout + Duration::from_nanos(self.end_ns - self.start_ns);
            self.tally.lasts(longest);
            self.tally.open = Some(OpenTally::new(longest));
        }
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

    /// A connection has its reply: what is overdue is sent at once, by the one that has waited longest.
    pub(super) fn free_for_next(&mut self, slot: usize) {
        self.put_free(slot);
        if let Some(due_ns) = self.next_due_ns()
            && due_ns <= self.now_ns
            && let Some(slot) = self.take_free()
        {
            self.send_next(slot, self.now_ns, due_ns);
        }
    }

    pub(super) fn put_free(&mut self, slot: usize) {
        self.free.push_back((slot, self.connections[slot].generation));
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
        while let Some((slot, generation)) = self.free.pop_front() {
            let connection = &self.connections[slot];
            if connection.generation == generation && connection.state == State::Idle {
                return Some(slot);
            }
        }
        None
    }

    fn send_next(&mut self, slot: usize, now_ns: u64, due_ns: u64) {
        self.next += 1;
        self.end_idle(slot, now_ns.min(self.end_ns));
        let idle_ns = now_ns - self.connections[slot].idle_since_ns.min(now_ns);
        // Its server may be closing it for that right now.
        self.connections[slot].carried |= idle_ns >= FRESH_NS;
        if let Some(open) = &mut self.tally.open {
            // Waiting for a connection is the server's time, everything after that the driver's; a reply that lies
            // unread in its socket looks like a server that has not answered.
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
