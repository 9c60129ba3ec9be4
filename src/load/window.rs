//! What one window saw, over all threads.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::ErrorKind;
use super::tally::Tally;

/// A percentile is given where at least this many samples lie beyond it; with fewer it is the accident of a few.
const SAMPLES_BEYOND: u64 = 10;

/// What one window saw. Only good replies count as requests; everything else is counted apart.
#[derive(Debug, Clone)]
pub struct Window {
    /// From the common start of all threads to the end of sending; as asked unless the window ended early.
    pub window: Duration,
    /// Why it ended before its time: every connection was dead.
    pub ended_early: Option<String>,
    /// Good replies inside the window.
    pub requests_ok: u64,
    /// [`Window::requests_ok`] ÷ [`Window::window`]; 0 for a window without length.
    pub requests_per_s: f64,
    /// Good replies by second of the window; the last second may be a part of one.
    pub ok_per_second: Vec<u64>,
    /// Good replies that came after the end: in the latencies, not in the rate.
    pub drained: u64,
    /// Latencies in nanoseconds of all good replies, drained ones included.
    pub latency_histogram_ns: Histogram<u64>,
    /// Its figures.
    pub latency_ns: LatencySummary,
    /// Requests known only to have taken longer than was waited: timeouts and unfinished ones.
    pub latency_censored: u64,
    /// Latencies beyond the histogram's end, recorded as that end.
    pub latency_saturated: u64,
    /// Everything that went wrong, by kind; kinds that did not happen are absent.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// The statuses that did not count.
    pub statuses: BTreeMap<u16, u64>,
    /// The first thing that went wrong.
    pub first_failure: Option<Failure>,
    /// As configured.
    pub connections_asked: usize,
    /// Open when the window and its drain were over, or closed in order.
    pub connections_open: usize,
    /// Connections closed by an error.
    pub connections_lost: u64,
    /// Connections without one reply inside the window.
    pub connections_never_served: usize,
    /// Requests without a reply when the drain was over.
    pub unfinished: u64,
    /// Age of the oldest of them.
    pub unfinished_oldest_ns: Option<u64>,
    /// Connections made anew because they were closed while idle, or lost in an earlier window.
    pub reconnects: u64,
    /// Connections that the server closed after a whole reply.
    pub closed_by_server: u64,
    /// Good replies whose end only the closing of the connection told: a cut body looks the same.
    pub framed_by_close: u64,
    /// Inside the window, heads included.
    pub bytes_read: u64,
    /// Inside the window, heads included.
    pub bytes_written: u64,
    /// Bodies compared with the expected one.
    pub bodies_checked: u64,
    /// Time without a request outstanding: before the first, while connecting, and in an open loop until the next is due.
    pub idle_ns: u64,
    /// Time inside the window of requests that had no good reply, summed over connections.
    pub failed_ns: u64,
    /// Time of good replies after the end of the window: in the latencies, but not of the window.
    pub late_ns: u64,
    /// Handshakes since the engine was started.
    pub connect_ns: LatencySummary,
    /// What only an open loop has; its latencies count from when a request was due.
    pub open: Option<Open>,
    /// What driving cost.
    pub driver: Driver,
}

/// An open loop: what was due, and where the time between due and reply went.
#[derive(Debug, Clone)]
pub struct Open {
    /// Requests per second asked for.
    pub rate: f64,
    /// Requests due inside the window.
    pub scheduled: u64,
    /// Due, and not sent when it ended, or lost to a server that closed an idle connection.
    pub unsent: u64,
    /// How long the oldest of them had been due.
    pub oldest_unsent_ns: Option<u64>,
    /// From the write to the whole reply: what a closed loop calls latency.
    pub service_histogram_ns: Histogram<u64>,
    /// From when a request was due and had a connection to its write: the driver's own share of the latency.
    pub lag_histogram_ns: Histogram<u64>,
    /// Between one write of a thread and its next.
    pub gap_histogram_ns: Histogram<u64>,
}

/// Latencies of good replies. `None` where there are no samples, too few of them, or where the percentile
/// falls among the censored requests: these count as longer than all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Shortest.
    pub min: Option<u64>,
    /// Arithmetic mean.
    pub mean: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p99_9: Option<u64>,
    /// Longest one seen; where requests were censored the true one is longer.
    pub max: Option<u64>,
}

/// CPU time of the driver's threads inside the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Driver {
    /// Of all threads.
    pub cpu_ns: u64,
    /// Per good reply; `None` without one.
    pub cpu_ns_per_request: Option<u64>,
    /// CPU time ÷ wall time of the busiest thread; `None` where threads never sleep.
    pub busy_share: Option<f64>,
}

/// A failure as it looked on the wire, clipped, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// What exactly, in one line.
    pub detail: String,
    /// The request.
    pub request: String,
    /// The last bytes that came; empty where none did.
    pub reply: String,
}

impl Window {
    /// The latency that `part` of `whole` of all requests did not exceed, in nanoseconds; `None` as in
    /// [`LatencySummary`].
    pub fn percentile(&self, part: u64, whole: u64) -> Option<u64> {
        percentile(&self.latency_histogram_ns, self.latency_censored, part, whole)
    }

    /// Merges what the threads counted.
    pub(super) fn merge(connections_asked: usize, rate: Option<f64>, tallies: Vec<Tally>) -> Self {
        let mut tallies = tallies.into_iter();
        let mut all = tallies.next().expect("an engine has at least one thread");
        let mut busiest = busy_share(&all);
        for tally in tallies {
            busiest = busiest.into_iter().chain(busy_share(&tally)).reduce(f64::max);
            add(&mut all, tally);
        }
        let errors: BTreeMap<ErrorKind, u64> =
            ErrorKind::ALL.into_iter().zip(all.errors).filter(|&(_, count)| count > 0).collect();
        let window = Duration::from_nanos(all.end.window_ns);
        let timeouts = errors.get(&ErrorKind::Timeout).copied().unwrap_or(0);
        let unsent = all.open.as_ref().map_or(0, |open| open.unsent);
        let latency_censored = timeouts + all.end.unfinished + unsent;
        let open = all.open.zip(rate).map(|(open, rate)| Open {
            rate,
            scheduled: open.scheduled,
            unsent: open.unsent,
            oldest_unsent_ns: open.oldest_unsent_ns,
            service_histogram_ns: open.service,
            lag_histogram_ns: open.lag,
            gap_histogram_ns: open.gaps,
        });
        let connect_times = all.end.connect_times.as_ref();
        Self {
            window,
            ended_early: all.end.ended_early,
            requests_ok: all.requests_ok,
            requests_per_s: if window.is_zero() { 0.0 } else { all.requests_ok as f64 / window.as_secs_f64() },
            ok_per_second: all.ok_per_second,
            drained: all.drained,
            latency_ns: LatencySummary::of(&all.histogram, latency_censored),
            latency_histogram_ns: all.histogram,
            latency_censored,
            latency_saturated: all.latency_saturated,
            errors,
            statuses: all.statuses,
            first_failure: all.first_failure.map(|(_, failure)| failure),
            connections_asked,
            connections_open: all.end.connections_open,
            connections_lost: all.connections_lost,
            connections_never_served: all.end.connections_never_served,
            unfinished: all.end.unfinished,
            unfinished_oldest_ns: all.end.unfinished_oldest_ns,
            reconnects: all.reconnects,
            closed_by_server: all.closed_by_server,
            framed_by_close: all.framed_by_close,
            bytes_read: all.end.bytes_read,
            bytes_written: all.end.bytes_written,
            bodies_checked: all.bodies_checked,
            idle_ns: all.idle_ns,
            failed_ns: all.failed_ns,
            late_ns: all.late_ns,
            connect_ns: connect_times.map_or_else(LatencySummary::default, |times| LatencySummary::of(times, 0)),
            open,
            driver: Driver {
                cpu_ns: all.end.cpu_ns,
                cpu_ns_per_request: all.end.cpu_ns.checked_div(all.requests_ok),
                busy_share: busiest,
            },
        }
    }
}

fn busy_share(tally: &Tally) -> Option<f64> {
    (tally.end.wall_ns > 0).then(|| tally.end.cpu_ns as f64 / tally.end.wall_ns as f64)
}

/// Adds what another thread counted in the same window.
fn add(all: &mut Tally, other: Tally) {
    all.histogram.add(&other.histogram).expect("the histograms of all threads have the same range");
    all.latency_saturated += other.latency_saturated;
    all.requests_ok += other.requests_ok;
    all.drained += other.drained;
    let seconds = all.ok_per_second.len().max(other.ok_per_second.len());
    all.ok_per_second.resize(seconds, 0);
    all.ok_per_second.iter_mut().zip(other.ok_per_second).for_each(|(sum, count)| *sum += count);
    all.errors.iter_mut().zip(other.errors).for_each(|(sum, count)| *sum += count);
    for (status, count) in other.statuses {
        *all.statuses.entry(status).or_insert(0) += count;
    }
    all.reconnects += other.reconnects;
    all.closed_by_server += other.closed_by_server;
    all.connections_lost += other.connections_lost;
    all.framed_by_close += other.framed_by_close;
    all.bodies_checked += other.bodies_checked;
    all.idle_ns += other.idle_ns;
    all.failed_ns += other.failed_ns;
    all.late_ns += other.late_ns;
    if let (Some(all), Some(other)) = (&mut all.open, &other.open) {
        all.add(other);
    }
    if let (Some(all), Some(other)) = (&mut all.end.connect_times, &other.end.connect_times) {
        all.add(other).expect("the histograms of all threads have the same range");
    }
    let earliest = |one: &(u64, Failure), two: &(u64, Failure)| one.0.cmp(&two.0);
    all.first_failure = all.first_failure.take().into_iter().chain(other.first_failure).min_by(earliest);
    all.end.window_ns = all.end.window_ns.max(other.end.window_ns);
    all.end.bytes_read += other.end.bytes_read;
    all.end.bytes_written += other.end.bytes_written;
    all.end.cpu_ns += other.end.cpu_ns;
    all.end.wall_ns = all.end.wall_ns.max(other.end.wall_ns);
    all.end.connections_open += other.end.connections_open;
    all.end.connections_never_served += other.end.connections_never_served;
    all.end.unfinished += other.end.unfinished;
    all.end.unfinished_oldest_ns = all.end.unfinished_oldest_ns.max(other.end.unfinished_oldest_ns);
    all.end.ended_early = all.end.ended_early.take().or(other.end.ended_early);
}

impl LatencySummary {
    /// The figures of a histogram in nanoseconds, with this many requests known only to have taken longer.
    pub fn of(histogram: &Histogram<u64>, censored: u64) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let percentile = |per_10_000| percentile(histogram, censored, per_10_000, 10_000);
        Self {
            min: Some(histogram.min()),
            // The mean of what was recorded to three digits, without its fraction of a nanosecond.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of u64 is one")]
            mean: Some(histogram.mean().round() as u64),
            p50: percentile(5_000),
            p90: percentile(9_000),
            p99: percentile(9_900),
            p99_9: percentile(9_990),
            max: Some(histogram.max()),
        }
    }
}

/// Nearest rank: the smallest value with at least `part` of `whole` of all requests at or below it.
fn percentile(histogram: &Histogram<u64>, censored: u64, part: u64, whole: u64) -> Option<u64> {
    let total = histogram.len() + censored;
    if total * (whole - part) < SAMPLES_BEYOND * whole {
        return None;
    }
    let rank = (total * part).div_ceil(whole);
    let mut seen = 0;
    for step in histogram.iter_recorded() {
        seen += step.count_since_last_iteration();
        if seen >= rank {
            return Some(step.value_iterated_to());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Tally::new(Duration::from_secs(1)).histogram;
        values.into_iter().for_each(|value| histogram.record(value).unwrap());
        histogram
    }

    #[test]
    fn no_sample_gives_no_figure() {
        assert_eq!(LatencySummary::of(&histogram([]), 5), LatencySummary::default());
    }

    #[test]
    fn percentiles_are_nearest_ranks() {
        let summary = LatencySummary::of(&histogram(1..=1000), 0);
        let expected = LatencySummary {
            min: Some(1),
            mean: Some(501),
            p50: Some(500),
            p90: Some(900),
            p99: Some(990),
            p99_9: None,
            max: Some(1000),
        };
        assert_eq!(summary, expected);
    }

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let supported = |count| {
            let summary = LatencySummary::of(&histogram(1..=count), 0);
            [summary.p50, summary.p90, summary.p99, summary.p99_9].map(|value| value.is_some())
        };
        assert_eq!(supported(1), [false; 4]);
        assert_eq!(supported(19), [false; 4]);
        assert_eq!(supported(20), [true, false, false, false]);
        assert_eq!(supported(99), [true, false, false, false]);
        assert_eq!(supported(100), [true, true, false, false]);
        assert_eq!(supported(1_000), [true, true, true, false]);
        assert_eq!(supported(10_000), [true; 4]);
    }

    #[test]
    fn censored_requests_are_longer_than_all_others() {
        let summary = LatencySummary::of(&histogram(1..=950), 50);
        assert_eq!((summary.p50, summary.p90, summary.p99), (Some(500), Some(900), None));
    }

    #[test]
    fn threads_are_added_up() {
        let mut one = Tally::new(Duration::from_secs(1));
        one.completed(5, 100);
        one.error(ErrorKind::Status);
        one.status(500);
        one.end = super::super::tally::End { window_ns: 2_000_000_000, cpu_ns: 10, wall_ns: 100, ..Default::default() };
        let mut two = Tally::new(Duration::from_secs(1));
        two.completed(1_500_000_000, 300);
        two.completed_late(500, 10);
        two.status(500);
        two.end = super::super::tally::End {
            window_ns: 2_000_000_000,
            cpu_ns: 50,
            wall_ns: 100,
            unfinished: 1,
            unfinished_oldest_ns: Some(7),
            ..Default::default()
        };
        let window = Window::merge(2, None, vec![one, two]);
        assert_eq!((window.requests_ok, window.drained, window.latency_censored), (2, 1, 1));
        assert!((window.requests_per_s - 1.0).abs() < 1e-9);
        assert_eq!(window.ok_per_second, [1, 1]);
        assert_eq!(window.errors, BTreeMap::from([(ErrorKind::Status, 1)]));
        assert_eq!(window.statuses, BTreeMap::from([(500, 2)]));
        assert_eq!(window.latency_ns.mean, Some(300));
        assert_eq!(window.unfinished_oldest_ns, Some(7));
        assert_eq!(window.driver, Driver { cpu_ns: 60, cpu_ns_per_request: Some(30), busy_share: Some(0.5) });
    }

    #[test]
    fn many_requests_keep_their_mean() {
        let mut tally = Tally::new(Duration::from_secs(1));
        (0..3_000_000_u64).for_each(|k| tally.completed(0, 1_000_000 + k % 2 * 1_000_000));
        let window = Window::merge(1, None, vec![tally]);
        let mean = window.latency_ns.mean.unwrap();
        assert!(mean.abs_diff(1_500_000) < 1_500, "{mean}");
    }

    #[test]
    fn a_window_without_length_has_no_division_by_zero() {
        let window = Window::merge(1, None, vec![Tally::new(Duration::from_secs(1))]);
        assert_eq!(window.requests_per_s.to_bits(), 0.0_f64.to_bits());
        assert_eq!(window.driver, Driver { cpu_ns: 0, cpu_ns_per_request: None, busy_share: None });
    }

    #[test]
    fn latencies_beyond_the_histogram_are_counted() {
        let mut tally = Tally::new(Duration::from_secs(1));
        tally.completed(0, 59_000_000_000);
        assert_eq!(tally.latency_saturated, 0);
        tally.completed(0, u64::MAX);
        assert_eq!((tally.latency_saturated, tally.histogram.len()), (1, 2));
    }
}
