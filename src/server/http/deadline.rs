//! A connection's deadline, which moves with every request and almost never passes.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use tokio::task::coop::unconstrained;
use tokio::time::{Sleep, sleep};

/// Moving the deadline writes one number; the timer behind it is touched only when it fires, and then set anew for what
/// is left. Setting a timer at every request, as hyper does, costs some five hundred instructions.
#[derive(Debug)]
pub(super) struct Deadline {
    /// When it passes, on the coarse clock.
    at: Duration,
    /// When the timer fires: never after `at`.
    fires_at: Duration,
    /// `None` until the first wait.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    pub(super) fn new(limit: Duration) -> Self {
        let at = coarse_now() + limit;
        Self { at, fires_at: at, timer: None }
    }

    /// Passes `limit` from now.
    pub(super) fn set(&mut self, limit: Duration) {
        self.at = coarse_now() + limit;
        if self.at < self.fires_at {
            self.timer = None;
        }
    }

    /// Ready once it has passed. Must be polled by the same task every time: the timer keeps the first task's waker.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.timer {
                Some(timer) if !timer.is_elapsed() => return Poll::Pending,
                // Late by the coarse clock's tick at most, never early.
                Some(_) if coarse_now() >= self.at => return Poll::Ready(()),
                _ => {}
            }
            let left = self.at.saturating_sub(coarse_now()).max(Duration::from_millis(1));
            self.fires_at = self.at;
            let mut timer = Box::pin(sleep(left));
            // Polled this once only, so it must be registered now: a task that has used up its turn would not do it.
            if pin!(unconstrained(timer.as_mut())).poll(context).is_pending() {
                self.timer = Some(timer);
                return Poll::Pending;
            }
        }
    }
}

/// The kernel's tick, a few milliseconds old, and cheaper than reading the clock.
fn coarse_now() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC_COARSE).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::task::coop;

    use super::*;

    #[test]
    fn it_passes_although_its_task_had_used_up_its_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let mut deadline = Deadline::new(Duration::from_millis(20));
            let passing = poll_fn(|context| {
                // As many reads would do.
                while let Poll::Ready(turn) = coop::poll_proceed(context) {
                    turn.made_progress();
                }
                deadline.poll(context)
            });
            tokio::time::timeout(Duration::from_secs(5), passing).await.expect("it passes");
        });
    }
}
