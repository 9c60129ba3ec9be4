//! What a window cost, by part, and what that says against it. Sampling is one function; the rest is arithmetic.

use std::io;
use std::time::Duration;

use crate::host::{self, HostCpu};
use crate::record::{Limits, Reason, finite};

/// CPU time of everyone, read at about the same moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) host: HostCpu,
    /// The server's process tree; `None` once it is gone.
    pub(super) server: Option<Duration>,
    /// The postmaster's; `None` where it cannot be seen.
    pub(super) postgres: Option<Duration>,
    /// This process: driver, sampling, everything.
    pub(super) own: Duration,
}

impl Sample {
    pub(super) fn take(server: i32, postmaster: Option<i32>) -> io::Result<Self> {
        let used = |pid| host::tree_usage(pid).ok().map(|usage| usage.cpu);
        Ok(Self {
            host: HostCpu::sample()?,
            server: used(server),
            postgres: postmaster.and_then(used),
            own: host::own_cpu()?,
        })
    }
}

/// What happened between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spent {
    pub(super) server: Option<Duration>,
    pub(super) postgres: Option<Duration>,
    /// Shares of the whole host. Unknown parts make the foreign share unknown, never somebody's guilt.
    pub(super) foreign_share: Option<f64>,
    pub(super) steal_share: Option<f64>,
    pub(super) idle_share: Option<f64>,
}

impl Spent {
    /// `interrupts_apart` is [`host::interrupts_apart`].
    pub(super) fn between(before: &Sample, after: &Sample, interrupts_apart: bool) -> Self {
        let grown = |before: Option<Duration>, after: Option<Duration>| after?.checked_sub(before?);
        let server = grown(before.server, after.server);
        let postgres = grown(before.postgres, after.postgres);
        let own = grown(Some(before.own), Some(after.own));
        let host = |part: fn(&HostCpu) -> Duration| grown(Some(part(&before.host)), Some(part(&after.host)));
        let (busy, idle, steal) = (host(|h| h.busy), host(|h| h.idle), host(|h| h.steal));
        let all = || Some(busy? + idle? + steal?);
        let share = |part: Option<f64>| part.zip(all()).and_then(|(part, all)| finite(part / all.as_secs_f64()));
        let seconds = |part: Option<Duration>| part.map(|part| part.as_secs_f64());
        // Where the kernel charges interrupts to nobody, those of our own packets would look like somebody's work.
        let nobodys = if interrupts_apart { host(|h| h.interrupts) } else { Some(Duration::ZERO) };
        let foreign =
            || Some(seconds(busy)? - seconds(nobodys)? - seconds(server)? - seconds(postgres)? - seconds(own)?);
        Self {
            server,
            postgres,
            foreign_share: share(foreign()),
            steal_share: share(seconds(steal)),
            idle_share: share(seconds(idle)),
        }
    }

    /// What the host's other users did to the window.
    pub(super) fn reasons(&self, limits: &Limits) -> Vec<Reason> {
        let mut reasons = Vec::new();
        let mut above = |name: &str, share: Option<f64>, limit: f64, what: &str| {
            if let Some(share) = share.filter(|share| *share > limit) {
                let detail = format!("{:.1} % of the host {what}, at most {:.1} % may", share * 100.0, limit * 100.0);
                reasons.push(Reason::new(name, detail));
            }
        };
        above("foreign_cpu", self.foreign_share, limits.max_foreign_cpu_share, "went to other processes");
        above("steal", self.steal_share, limits.max_steal_share, "was taken by the hypervisor");
        reasons
    }
}

/// CPU time over all replies it was spent on. The samples enclose the drain after a window, so its replies count here.
pub(super) fn per_request(cpu: Option<Duration>, replies: u64) -> Option<u64> {
    u64::try_from(cpu?.as_nanos()).ok()?.checked_div(replies)
}

/// More client backends than the contract allows.
pub(super) fn connections_reason(seen: Option<u32>, limits: &Limits) -> Option<Reason> {
    let most = limits.max_postgres_connections;
    let seen = seen.filter(|&seen| seen > most)?;
    Some(Reason::new(
        "too_many_connections",
        format!("{seen} Postgres connections at once, at most {most} may be open"),
    ))
}

/// Fewer transactions than replies that each needed one: some were answered from memory, or several shared one.
pub(super) fn statements_reason(replies: u64, transactions: Option<u64>) -> Option<Reason> {
    let transactions = transactions.filter(|&transactions| transactions < replies)?;
    let detail = format!("{transactions} transactions for {replies} replies that each need one");
    Some(Reason::new("too_few_statements", detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sample(server: u64, postgres: u64, own: u64, busy: u64, idle: u64, steal: u64) -> Sample {
        Sample {
            host: HostCpu { busy: MS(busy), interrupts: MS(busy / 10), idle: MS(idle), steal: MS(steal) },
            server: Some(MS(server)),
            postgres: Some(MS(postgres)),
            own: MS(own),
        }
    }

    fn limits() -> Limits {
        Limits { max_foreign_cpu_share: 0.05, max_steal_share: 0.02, max_postgres_connections: 10 }
    }

    fn close(got: Option<f64>, want: f64) {
        assert!((got.unwrap() - want).abs() < 1e-9, "got {got:?}, want {want}");
    }

    #[test]
    fn what_nobody_of_ours_used_is_foreign() {
        // 8 s of host: 7 busy, 0.6 idle, 0.4 stolen; of the busy ones 3 + 2 + 1 are ours.
        let before = sample(100, 200, 300, 1_000, 2_000, 0);
        let after = sample(3_100, 2_200, 1_300, 8_000, 2_600, 400);
        let spent = Spent::between(&before, &after, false);
        close(spent.foreign_share, 1.0 / 8.0);
        close(spent.steal_share, 0.05);
        close(spent.idle_share, 0.075);
        assert_eq!((spent.server, spent.postgres), (Some(MS(3_000)), Some(MS(2_000))));
        let reasons = spent.reasons(&limits());
        let names: Vec<&str> = reasons.iter().map(|reason| reason.name.as_str()).collect();
        assert_eq!(names, ["foreign_cpu", "steal"]);
        assert_eq!(reasons[0].text, "12.5 % of the host went to other processes, at most 5.0 % may");
    }

    #[test]
    fn interrupts_that_nobody_is_charged_for_are_not_foreign() {
        // As above: 7 s busy, 0.7 s of them interrupts.
        let spent = Spent::between(&sample(0, 0, 0, 0, 0, 0), &sample(3_000, 2_000, 1_000, 7_000, 600, 400), true);
        close(spent.foreign_share, 0.3 / 8.0);
        close(spent.idle_share, 0.075);
    }

    #[test]
    fn at_the_limit_a_window_is_still_valid() {
        let spent = |foreign, steal| Spent {
            server: None,
            postgres: None,
            foreign_share: Some(foreign),
            steal_share: Some(steal),
            idle_share: None,
        };
        assert!(spent(0.05, 0.02).reasons(&limits()).is_empty());
        assert!(spent(-0.01, 0.0).reasons(&limits()).is_empty());
        assert_eq!(spent(0.051, 0.021).reasons(&limits()).len(), 2);
    }

    #[test]
    fn what_is_unknown_accuses_nobody() {
        let before = sample(0, 0, 0, 0, 0, 0);
        let mut after = sample(1_000, 1_000, 0, 8_000, 0, 0);
        after.postgres = None;
        let spent = Spent::between(&before, &after, false);
        assert_eq!((spent.foreign_share, spent.postgres), (None, None));
        assert!(spent.reasons(&limits()).is_empty());
        // A tree that lost a process it never reaped has less CPU than before: unknown, not negative.
        let shrunk = Spent::between(&sample(500, 0, 0, 0, 0, 0), &sample(400, 0, 0, 1_000, 0, 0), false);
        assert_eq!((shrunk.server, shrunk.foreign_share), (None, None));
    }

    #[test]
    fn a_window_without_length_has_no_shares() {
        let same = sample(1, 1, 1, 1, 1, 1);
        let spent = Spent::between(&same, &same, false);
        assert_eq!((spent.foreign_share, spent.steal_share, spent.idle_share), (None, None, None));
    }

    #[test]
    fn cost_per_reply_is_null_without_replies() {
        assert_eq!(per_request(Some(MS(2)), 0), None);
        assert_eq!(per_request(None, 5), None);
        assert_eq!(per_request(Some(MS(2)), 200), Some(10_000));
    }

    #[test]
    fn ten_connections_are_allowed_and_eleven_are_not() {
        assert_eq!(connections_reason(Some(10), &limits()), None);
        assert_eq!(connections_reason(None, &limits()), None);
        assert_eq!(connections_reason(Some(11), &limits()).unwrap().name, "too_many_connections");
    }

    #[test]
    fn every_reply_needs_a_transaction() {
        assert_eq!(statements_reason(1_000, Some(1_000)), None);
        assert_eq!(statements_reason(1_000, Some(1_040)), None);
        assert_eq!(statements_reason(0, Some(0)), None);
        assert_eq!(statements_reason(1_000, None), None);
        let reason = statements_reason(1_000, Some(999)).unwrap();
        assert_eq!(reason.text, "999 transactions for 1000 replies that each need one");
    }
}
