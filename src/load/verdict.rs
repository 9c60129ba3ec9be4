//! Whether a window says what it seems to say. Pure: a window in, reasons against it out.

use std::collections::BTreeMap;
use std::fmt;

use super::{ErrorKind, LatencySummary, Open, Window};

/// A driver thread busier than this has no time left to see a reply when it comes.
const DRIVER_BUSY_SHARE: f64 = 0.95;
/// With no more idle time than this the host as a whole was the limit, the driver no more than the server.
const HOST_IDLE_SHARE: f64 = 0.05;
/// How far Little's law may be off. The engine's own books are exact; 2 % leaves room for clocks that are read a turn
/// late when a window ends early, and is far below what a lost or doubled request stream would show.
const LITTLE_TOLERANCE: f64 = 0.02;
/// Below this many good replies the law is not asked: it speaks of averages.
const LITTLE_REQUESTS: u64 = 100;

/// The part of a schedule that may be missing: the accuracy that is promised of a rate.
const RATE_TOLERANCE: f64 = 0.005;
/// The part of a latency that may be the driver's own delay; below the second figure it is what waking a thread takes.
const LAG_SHARE: f64 = 0.5;
const LAG_ALLOWED_NS: u64 = 100_000;

/// Why a window is invalid.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Something went wrong.
    Errors {
        /// By kind.
        errors: BTreeMap<ErrorKind, u64>,
        /// Statuses that did not count.
        statuses: BTreeMap<u16, u64>,
    },
    /// A connection was lost, or not there at the end.
    ConnectionsLost {
        /// As configured.
        asked: usize,
        /// Open at the end.
        open: usize,
        /// Closed by an error.
        lost: u64,
    },
    /// Not one good reply.
    NoSuccess,
    /// The window ended before its time.
    EndedEarly {
        /// Why.
        why: String,
    },
    /// Connections, rate and latency contradict each other.
    LittlesLaw {
        /// As configured.
        connections: usize,
        /// Rate × mean time of a request, with the time of unfinished requests and the time without one.
        implied: f64,
    },
    /// An open loop that did not keep to its schedule.
    RateMissed {
        /// Requests per second asked for.
        rate: f64,
        /// Due inside the window.
        scheduled: u64,
        /// Of those, sent.
        sent: u64,
    },
    /// In an open loop the driver's own delay is a large part of a latency reported.
    DriverLag {
        /// Which latency.
        percentile: &'static str,
        /// The lag of that percentile, in nanoseconds.
        lag_ns: u64,
        /// The latency, in nanoseconds.
        latency_ns: u64,
    },
    /// The driver could not have sent more, and the host had time left.
    DriverLimit {
        /// CPU share of its busiest thread.
        busy_share: f64,
        /// Idle share of the host.
        host_idle_share: f64,
    },
}

/// What speaks against a window; empty where it is valid. `host_idle_share` is the idle part of all CPUs' time during
/// the window, where it is known: without it nobody can say that the driver was the limit.
pub fn judge(window: &Window, host_idle_share: Option<f64>) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if let Some(why) = &window.ended_early {
        reasons.push(Reason::EndedEarly { why: why.clone() });
    }
    if !window.errors.is_empty() {
        reasons.push(Reason::Errors { errors: window.errors.clone(), statuses: window.statuses.clone() });
    }
    let (asked, open, lost) = (window.connections_asked, window.connections_open, window.connections_lost);
    if open < asked || lost > 0 {
        reasons.push(Reason::ConnectionsLost { asked, open, lost });
    }
    if window.requests_ok == 0 {
        reasons.push(Reason::NoSuccess);
    }
    reasons.extend(littles_law(window));
    if let Some(open) = &window.open {
        reasons.extend(rate_missed(open));
        reasons.extend(driver_lag(window, open));
    }
    if let (Some(busy_share), Some(host_idle_share)) = (window.driver.busy_share, host_idle_share)
        && busy_share >= DRIVER_BUSY_SHARE
        && host_idle_share > HOST_IDLE_SHARE
    {
        reasons.push(Reason::DriverLimit { busy_share, host_idle_share });
    }
    reasons
}

/// Little's law (L = λW): the mean number of requests outstanding, plus that of connections without one, is the number
/// of connections. The time of good replies comes from the histogram that is reported, so that a latency which was
/// invented, dropped or recorded wrongly breaks it; all other time is counted, so that a starved connection does not.
fn littles_law(window: &Window) -> Option<Reason> {
    if window.requests_ok < LITTLE_REQUESTS || window.window.is_zero() {
        return None;
    }
    let times = window.open.as_ref().map_or(&window.latency_histogram_ns, |open| &open.service_histogram_ns);
    let good_ns = times.mean() * times.len() as f64 - window.late_ns as f64;
    let implied = (good_ns + (window.failed_ns + window.idle_ns) as f64) / window.window.as_nanos() as f64;
    let connections = window.connections_asked;
    let is_off = (implied / connections as f64 - 1.0).abs() > LITTLE_TOLERANCE;
    is_off.then_some(Reason::LittlesLaw { connections, implied })
}

/// A schedule is kept where all but a few of its requests were sent.
fn rate_missed(open: &Open) -> Option<Reason> {
    let sent = open.scheduled.saturating_sub(open.unsent);
    let is_missed = open.unsent as f64 > open.scheduled as f64 * RATE_TOLERANCE;
    is_missed.then_some(Reason::RateMissed { rate: open.rate, scheduled: open.scheduled, sent })
}

/// The first percentile of which the driver's own delay is too large a part.
fn driver_lag(window: &Window, open: &Open) -> Option<Reason> {
    let lag = LatencySummary::of(&open.lag_histogram_ns, 0);
    let latency = window.latency_ns;
    [("p50", lag.p50, latency.p50), ("p90", lag.p90, latency.p90), ("p99", lag.p99, latency.p99)]
        .into_iter()
        .filter_map(|(percentile, lag, latency)| Some((percentile, lag?, latency?)))
        .find(|&(_, lag_ns, latency_ns)| lag_ns > LAG_ALLOWED_NS && lag_ns as f64 > latency_ns as f64 * LAG_SHARE)
        .map(|(percentile, lag_ns, latency_ns)| Reason::DriverLag { percentile, lag_ns, latency_ns })
}

impl Reason {
    /// A stable name, for records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Errors { .. } => "errors",
            Self::ConnectionsLost { .. } => "connections_lost",
            Self::NoSuccess => "no_success",
            Self::EndedEarly { .. } => "ended_early",
            Self::LittlesLaw { .. } => "littles_law",
            Self::RateMissed { .. } => "rate_missed",
            Self::DriverLag { .. } => "driver_lag",
            Self::DriverLimit { .. } => "driver_limit",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors { errors, statuses } => {
                let statuses: Vec<String> =
                    statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
                let one = |(&kind, count): (&ErrorKind, &u64)| match kind {
                    ErrorKind::Status => format!("{count} status ({})", statuses.join(", ")),
                    _ => format!("{count} {}", kind.name()),
                };
                write!(f, "{}", errors.iter().map(one).collect::<Vec<String>>().join(", "))
            }
            Self::ConnectionsLost { asked, open, lost } => {
                write!(f, "{lost} connections ended by an error, {open} of {asked} open at the end")
            }
            Self::NoSuccess => f.write_str("not one good reply"),
            Self::EndedEarly { why } => f.write_str(why),
            Self::LittlesLaw { connections, implied } => {
                write!(f, "rate × latency implies {implied:.2} connections, there were {connections}")
            }
            Self::RateMissed { rate, scheduled, sent } => write!(
                f,
                "of {scheduled} requests due at {rate}/s only {sent} were sent, no connection was free for the others: \
                 use a lower rate or more connections"
            ),
            Self::DriverLag { percentile, lag_ns, latency_ns } => write!(
                f,
                "the driver sent late: {percentile} of its own delay is {:.0} µs, of the latency {:.0} µs: \
                 give it a CPU of its own (--cpus), use more threads or a lower rate",
                *lag_ns as f64 / 1_000.0,
                *latency_ns as f64 / 1_000.0
            ),
            Self::DriverLimit { busy_share, host_idle_share } => write!(
                f,
                "the driver was the limit: a thread was {:.1} % busy while {:.1} % of the host was idle, use more threads",
                busy_share * 100.0,
                host_idle_share * 100.0
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::tally::{End, OpenTally, Tally};

    /// Two connections, 200 good replies in a second, each taking 10 ms.
    fn sound() -> Window {
        let mut tally = Tally::new(Duration::from_secs(1));
        (0..200).for_each(|_| tally.completed(0, 10_000_000));
        tally.end = End {
            window_ns: 1_000_000_000,
            cpu_ns: 960_000_000,
            wall_ns: 1_000_000_000,
            connections_open: 2,
            ..End::default()
        };
        Window::merge(2, None, vec![tally])
    }

    fn names(window: &Window, host_idle_share: Option<f64>) -> Vec<&'static str> {
        judge(window, host_idle_share).iter().map(Reason::name).collect()
    }

    #[test]
    fn a_sound_window_is_valid() {
        assert_eq!(judge(&sound(), Some(0.0)), []);
        assert_eq!(judge(&sound(), None), []);
    }

    #[test]
    fn each_fault_has_its_reason() {
        let with = |change: fn(&mut Window)| {
            let mut window = sound();
            change(&mut window);
            names(&window, Some(0.01))
        };
        assert_eq!(with(|w| _ = w.errors.insert(ErrorKind::Status, 1)), ["errors"]);
        assert_eq!(with(|w| w.connections_open = 1), ["connections_lost"]);
        assert_eq!(with(|w| w.connections_lost = 1), ["connections_lost"]);
        assert_eq!(with(|w| w.requests_ok = 0), ["no_success"]);
        assert_eq!(with(|w| w.ended_early = Some("x".into())), ["ended_early"]);
        assert_eq!(with(|w| w.failed_ns += 50_000_000), ["littles_law"]);
        assert_eq!(with(|w| w.late_ns += 50_000_000), ["littles_law"]);
        // Five latencies of half a second that nobody had.
        assert_eq!(with(|w| (0..5).for_each(|_| _ = w.latency_histogram_ns.record(500_000_000))), ["littles_law"]);
    }

    #[test]
    fn littles_law_counts_all_time_and_needs_a_sample() {
        let mut window = sound();
        (window.late_ns, window.idle_ns, window.failed_ns) = (500_000_000, 400_000_000, 100_000_000);
        assert_eq!(judge(&window, None), []);
        (window.late_ns, window.requests_ok) = (0, 99);
        assert_eq!(judge(&window, None), []);
        window.requests_ok = 100;
        assert_eq!(names(&window, None), ["littles_law"]);
    }

    /// A thousand requests due in a second, each served in 10 ms.
    fn open_loop(lag_ns: u64, unsent: u64) -> Window {
        let mut window = sound();
        let mut open = OpenTally::new(Duration::from_secs(1));
        (0..1_000).for_each(|_| open.sent(0, lag_ns));
        window.open = Some(Open {
            rate: 1_000.0,
            scheduled: 1_000,
            unsent,
            oldest_unsent_ns: None,
            service_histogram_ns: window.latency_histogram_ns.clone(),
            lag_histogram_ns: open.lag,
            gap_histogram_ns: open.gaps,
        });
        window
    }

    #[test]
    fn an_open_loop_keeps_its_schedule_and_sends_in_time() {
        assert_eq!(names(&open_loop(0, 5), None), [""; 0]);
        assert_eq!(names(&open_loop(0, 6), None), ["rate_missed"]);
        assert_eq!(names(&open_loop(4_900_000, 0), None), [""; 0]);
        assert_eq!(names(&open_loop(5_100_000, 0), None), ["driver_lag"]);
        // What waking a thread takes is not held against it.
        let mut fast = open_loop(90_000, 0);
        fast.latency_ns.p50 = Some(100_000);
        assert_eq!(names(&fast, None), [""; 0]);
    }

    #[test]
    fn the_driver_was_the_limit_where_it_was_busy_and_the_host_was_not() {
        assert_eq!(names(&sound(), Some(0.06)), ["driver_limit"]);
        assert_eq!(names(&sound(), Some(0.05)), [""; 0]);
        let mut window = sound();
        window.driver.busy_share = Some(0.94);
        assert_eq!(judge(&window, Some(0.5)), []);
    }

    #[test]
    fn starvation_is_recorded_and_not_held_against_the_window() {
        let mut window = sound();
        (window.connections_never_served, window.unfinished) = (1, 1);
        assert_eq!(judge(&window, Some(0.0)), []);
    }

    #[test]
    fn reasons_read_as_one_line() {
        let errors = BTreeMap::from([(ErrorKind::Status, 3), (ErrorKind::Timeout, 1)]);
        let lines = [
            Reason::Errors { errors, statuses: BTreeMap::from([(500, 2), (503, 1)]) },
            Reason::ConnectionsLost { asked: 100, open: 98, lost: 7 },
            Reason::LittlesLaw { connections: 100, implied: 52.125 },
            Reason::RateMissed { rate: 1_000.0, scheduled: 2_000, sent: 1_900 },
            Reason::DriverLag { percentile: "p99", lag_ns: 900_000, latency_ns: 1_000_000 },
            Reason::DriverLimit { busy_share: 0.99, host_idle_share: 0.25 },
        ]
        .map(|reason| reason.to_string());
        assert_eq!(
            lines,
            [
                "1 timeout, 3 status (2 × 500, 1 × 503)",
                "7 connections ended by an error, 98 of 100 open at the end",
                "rate × latency implies 52.12 connections, there were 100",
                "of 2000 requests due at 1000/s only 1900 were sent, no connection was free for the others: use a lower \
                 rate or more connections",
                "the driver sent late: p99 of its own delay is 900 µs, of the latency 1000 µs: give it a CPU of its own \
                 (--cpus), use more threads or a lower rate",
                "the driver was the limit: a thread was 99.0 % busy while 25.0 % of the host was idle, use more threads",
            ]
        );
    }
}
