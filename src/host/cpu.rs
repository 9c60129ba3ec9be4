//! CPU time of the whole host, and of this process.

use std::io;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use procfs::{CurrentSI as _, KernelStats};

/// CPU time of the whole host since boot, summed over all CPUs that are online.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCpu {
    /// Everything but idle, iowait and steal.
    pub busy: Duration,
    /// The part of it that went to interrupts, hard and soft. Loopback's packets are delivered in soft ones.
    pub interrupts: Duration,
    /// Idle and iowait.
    pub idle: Duration,
    /// Taken by the hypervisor.
    pub steal: Duration,
}

/// What the host's CPUs did between two samples. The three add up to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuShares {
    /// Running something.
    pub busy: f64,
    /// Nothing to run.
    pub idle: f64,
    /// Wanted to run, and the hypervisor ran something else.
    pub steal: f64,
}

impl HostCpu {
    /// From `/proc/stat`.
    ///
    /// # Errors
    /// Where `/proc/stat` cannot be read.
    pub fn sample() -> io::Result<Self> {
        let total = KernelStats::current().map_err(|error| io::Error::other(format!("/proc/stat: {error}")))?.total;
        // The time of guests is part of user and nice already.
        let interrupts = total.irq.unwrap_or(0) + total.softirq.unwrap_or(0);
        Ok(Self {
            busy: ticks(total.user + total.nice + total.system + interrupts),
            interrupts: ticks(interrupts),
            idle: ticks(total.idle + total.iowait.unwrap_or(0)),
            steal: ticks(total.steal.unwrap_or(0)),
        })
    }

    /// Shares between an earlier sample and this one. `None` where no tick passed.
    pub fn shares_since(self, earlier: Self) -> Option<CpuShares> {
        // iowait is allowed to go back a little (proc(5)); a share below zero is not.
        let busy = self.busy.saturating_sub(earlier.busy).as_secs_f64();
        let idle = self.idle.saturating_sub(earlier.idle).as_secs_f64();
        let steal = self.steal.saturating_sub(earlier.steal).as_secs_f64();
        let total = busy + idle + steal;
        (total > 0.0).then(|| CpuShares { busy: busy / total, idle: idle / total, steal: steal / total })
    }
}

/// CPU time of this process, all threads.
///
/// # Errors
/// Where the kernel does not say.
pub fn own_cpu() -> io::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let us = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(us.unsigned_abs()))
}

/// Kernel clock ticks as time.
pub(super) fn ticks(count: u64) -> Duration {
    Duration::from_nanos(count * (1_000_000_000 / procfs::ticks_per_second()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(busy: u64, idle: u64, steal: u64) -> HostCpu {
        let interrupts = Duration::ZERO;
        let [busy, idle, steal] = [busy, idle, steal].map(Duration::from_secs);
        HostCpu { busy, interrupts, idle, steal }
    }

    #[test]
    fn shares_add_up() {
        let shares = sample(16, 22, 5).shares_since(sample(10, 20, 3)).unwrap();
        assert_eq!(shares, CpuShares { busy: 0.6, idle: 0.2, steal: 0.2 });
    }

    #[test]
    fn no_time_has_no_shares() {
        assert_eq!(sample(1, 1, 1).shares_since(sample(1, 1, 1)), None);
    }

    #[test]
    fn a_counter_that_goes_back_is_not_a_negative_share() {
        let shares = sample(12, 9, 0).shares_since(sample(10, 10, 0)).unwrap();
        assert_eq!(shares, CpuShares { busy: 1.0, idle: 0.0, steal: 0.0 });
    }

    #[test]
    fn the_host_can_be_sampled() {
        let now = HostCpu::sample().unwrap();
        assert!(now.busy + now.idle > Duration::ZERO);
    }

    #[test]
    fn our_own_cpu_time_grows() {
        let before = own_cpu().unwrap();
        let mut sum = 0u64;
        // Bounded by the clock it waits for: a few milliseconds of work.
        while own_cpu().unwrap() == before {
            sum = (0..10_000).fold(sum, u64::wrapping_add);
        }
        assert!(own_cpu().unwrap() > before, "{sum}");
    }
}
