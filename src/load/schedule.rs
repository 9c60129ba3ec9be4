//! When the requests of an open loop are due: fixed before the window, whatever the server does.

const NS_PER_SECOND: f64 = 1e9;

/// The share of one thread: all threads together send at equal distances, each from its own phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Schedule {
    /// Requests per second of all threads.
    pub(super) rate: f64,
    pub(super) threads: usize,
    /// From 0.
    pub(super) thread: usize,
}

impl Schedule {
    /// When this thread's request `number` is due, in nanoseconds after the start of the window.
    ///
    /// Computed from the number, not from the one before: rounding does not add up.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a window is at most a day: 2^47 ns, exact in 53 bits"
    )]
    pub(super) fn due_ns(&self, number: u64) -> u64 {
        let of_all = number * self.threads as u64 + self.thread as u64;
        (of_all as f64 * NS_PER_SECOND / self.rate) as u64
    }

    /// How many of this thread's requests are due before the end of a window.
    pub(super) fn count(&self, window_ns: u64) -> u64 {
        let (mut low, mut high) = (0, 1);
        while self.due_ns(high) < window_ns {
            low = high;
            high *= 2;
        }
        if self.due_ns(low) >= window_ns {
            return 0;
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.due_ns(middle) < window_ns { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_send_in_turn_at_equal_distances() {
        let due = |thread, number| Schedule { rate: 1_000.0, threads: 2, thread }.due_ns(number);
        assert_eq!([due(0, 0), due(1, 0), due(0, 1), due(1, 1)], [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn rounding_does_not_add_up() {
        let schedule = Schedule { rate: 3.0, threads: 1, thread: 0 };
        assert_eq!(schedule.due_ns(3 * 86_400), 86_400_000_000_000);
    }

    #[test]
    fn the_count_is_what_is_due_before_the_end() {
        for rate in [0.5, 1.0, 7.0, 999.9, 100_000.0] {
            for threads in 1..4 {
                let all: u64 = (0..threads).map(|thread| Schedule { rate, threads, thread }.count(2_000_000_000)).sum();
                assert!((all as f64 - (rate * 2.0).ceil()).abs() < 0.5, "{all}: {rate} over {threads}");
            }
        }
        assert_eq!(Schedule { rate: 1.0, threads: 1, thread: 0 }.count(0), 0);
    }
}
