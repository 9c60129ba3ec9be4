//! What one thread counts while it drives: plain numbers of its own, merged when the window is over.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::ErrorKind;
use super::window::Failure;

/// Latencies are told apart to one part in a thousand.
const SIGNIFICANT_DIGITS: u8 = 3;
/// Upper end of the histogram, at least; a longer timeout moves it.
const HIGHEST_AT_LEAST: Duration = Duration::from_mins(1);
const NS_PER_SECOND: u64 = 1_000_000_000;

/// Counts of one thread in one window.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) histogram: Histogram<u64>,
    pub(super) latency_saturated: u64,
    pub(super) requests_ok: u64,
    pub(super) drained: u64,
    pub(super) ok_per_second: Vec<u64>,
    pub(super) errors: [u64; ErrorKind::ALL.len()],
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) reconnects: u64,
    pub(super) closed_by_server: u64,
    pub(super) connections_lost: u64,
    pub(super) framed_by_close: u64,
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) bodies_checked: u64,
    /// Time inside the window of requests that had no good reply.
    pub(super) failed_ns: u64,
    /// Time of good replies after the end of the window.
    pub(super) late_ns: u64,
    pub(super) idle_ns: u64,
    /// What only an open loop has.
    pub(super) open: Option<OpenTally>,
    /// With the time it happened, so that the first of all threads can be told.
    pub(super) first_failure: Option<(u64, Failure)>,
    /// Known when the window is over.
    pub(super) end: End,
}

/// What is known when the window is over.
#[derive(Debug, Default)]
pub(super) struct End {
    pub(super) window_ns: u64,
    /// Until the end of the window, without the drain.
    pub(super) bytes_read: u64,
    pub(super) bytes_written: u64,
    pub(super) cpu_ns: u64,
    pub(super) wall_ns: u64,
    pub(super) connections_open: usize,
    pub(super) connections_never_served: usize,
    pub(super) unfinished: u64,
    pub(super) unfinished_oldest_ns: Option<u64>,
    pub(super) ended_early: Option<String>,
    /// Handshakes since the engine was started.
    pub(super) connect_times: Option<Histogram<u64>>,
}

/// What one thread counts in an open loop, where a request can be late before it is sent. In nanoseconds.
#[derive(Debug)]
pub(super) struct OpenTally {
    /// Due inside the window.
    pub(super) scheduled: u64,
    /// Due and not sent because every connection was busy until the end, or lost to a server that closed an idle one.
    pub(super) unsent: u64,
    /// How long the oldest of them had been due at the end.
    pub(super) oldest_unsent_ns: Option<u64>,
    /// From the write to the whole reply, of good replies.
    pub(super) service: Histogram<u64>,
    /// From when a request was due and had a connection to its write.
    pub(super) lag: Histogram<u64>,
    /// Between one write and the next.
    pub(super) gaps: Histogram<u64>,
    last_sent_ns: Option<u64>,
}

impl OpenTally {
    pub(super) fn new(timeout: Duration) -> Self {
        let [service, lag, gaps] = std::array::from_fn(|_| histogram(timeout));
        Self { scheduled: 0, unsent: 0, oldest_unsent_ns: None, service, lag, gaps, last_sent_ns: None }
    }

    pub(super) fn sent(&mut self, now_ns: u64, lag_ns: u64) {
        self.lag.saturating_record(lag_ns);
        if let Some(last_ns) = self.last_sent_ns.replace(now_ns) {
            self.gaps.saturating_record(now_ns - last_ns);
        }
    }

    pub(super) fn served(&mut self, service_ns: u64) {
        self.service.saturating_record(service_ns);
    }

    /// Adds what another thread counted in the same window.
    pub(super) fn add(&mut self, other: &Self) {
        self.scheduled += other.scheduled;
        self.unsent += other.unsent;
        self.oldest_unsent_ns = self.oldest_unsent_ns.max(other.oldest_unsent_ns);
        for (all, one) in
            [(&mut self.service, &other.service), (&mut self.lag, &other.lag), (&mut self.gaps, &other.gaps)]
        {
            all.add(one).expect("the histograms of all threads have the same range");
        }
    }
}

/// For times of requests that take up to `timeout`.
fn histogram(timeout: Duration) -> Histogram<u64> {
    // A timeout is noticed late by a tick and by what a busy loop adds: twice is beyond both.
    let highest = timeout.saturating_mul(2).max(HIGHEST_AT_LEAST);
    let highest = u64::try_from(highest.as_nanos()).unwrap_or(u64::MAX);
    Histogram::new_with_bounds(1, highest, SIGNIFICANT_DIGITS)
        .expect("a range from 1 ns to at least 60 s at 3 digits is one the histogram has")
}

/// For times of handshakes.
pub(super) fn connect_histogram() -> Histogram<u64> {
    histogram(HIGHEST_AT_LEAST)
}

impl Tally {
    /// For windows whose requests take up to `timeout`.
    pub(super) fn new(timeout: Duration) -> Self {
        Self {
            histogram: histogram(timeout),
            latency_saturated: 0,
            requests_ok: 0,
            drained: 0,
            ok_per_second: Vec::new(),
            errors: [0; ErrorKind::ALL.len()],
            statuses: BTreeMap::new(),
            reconnects: 0,
            closed_by_server: 0,
            connections_lost: 0,
            framed_by_close: 0,
            bytes_read: 0,
            bytes_written: 0,
            bodies_checked: 0,
            failed_ns: 0,
            late_ns: 0,
            idle_ns: 0,
            open: None,
            first_failure: None,
            end: End::default(),
        }
    }

    /// Makes room for latencies of up to this; before the first.
    pub(super) fn lasts(&mut self, longest: Duration) {
        self.histogram = histogram(longest);
    }

    /// A good reply inside the window, this long after its start.
    #[inline]
    pub(super) fn completed(&mut self, since_start_ns: u64, latency_ns: u64) {
        self.requests_ok += 1;
        let second = usize::try_from(since_start_ns / NS_PER_SECOND).unwrap_or(usize::MAX);
        if second >= self.ok_per_second.len() {
            self.ok_per_second.resize(second + 1, 0);
        }
        self.ok_per_second[second] += 1;
        self.record(latency_ns);
    }

    /// A good reply to a request of the window, after its end: no throughput, but a latency.
    /// `late_ns`: the part of its time that was after the end.
    pub(super) fn completed_late(&mut self, latency_ns: u64, late_ns: u64) {
        self.drained += 1;
        self.late_ns += late_ns;
        self.record(latency_ns);
    }

    #[inline]
    fn record(&mut self, latency_ns: u64) {
        if latency_ns > self.histogram.high() {
            self.latency_saturated += 1;
        }
        self.histogram.saturating_record(latency_ns);
    }

    pub(super) fn error(&mut self, kind: ErrorKind) {
        self.errors[kind as usize] += 1;
    }

    pub(super) fn status(&mut self, status: u16) {
        *self.statuses.entry(status).or_insert(0) += 1;
    }
}
