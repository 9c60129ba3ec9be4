//! One window and its verdict as `headroom load --json` writes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Driver, ErrorKind, Failure, LatencySummary, Open, Reason, Window};

/// Version of the JSON below; raised when a field changes its meaning or goes away.
const FORMAT: u32 = 1;

/// An open loop: what was due, and the parts of its latency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenReport {
    /// Requests per second asked for.
    pub rate: f64,
    /// Requests due inside the window.
    pub scheduled: u64,
    /// Due, and not sent when it ended.
    pub unsent: u64,
    /// How long the oldest of them had been due.
    pub oldest_unsent_ns: Option<u64>,
    /// From the write to the whole reply.
    pub service_ns: LatencySummary,
    /// From when a request was due and had a connection to its write.
    pub lag_ns: LatencySummary,
    /// Between one write of a thread and its next.
    pub gap_ns: LatencySummary,
}

impl OpenReport {
    fn new(open: &Open) -> Self {
        Self {
            rate: open.rate,
            scheduled: open.scheduled,
            unsent: open.unsent,
            oldest_unsent_ns: open.oldest_unsent_ns,
            service_ns: LatencySummary::of(&open.service_histogram_ns, 0),
            lag_ns: LatencySummary::of(&open.lag_histogram_ns, 0),
            gap_ns: LatencySummary::of(&open.gap_histogram_ns, 0),
        }
    }
}

/// What was measured, over what, and whether it is valid. Absent figures are `null`, never NaN and never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// As typed.
    pub url: String,
    /// The one address all connections went to.
    pub address: String,
    /// Driver threads.
    pub threads: usize,
    /// Connections asked for.
    pub connections: usize,
    /// Length of the window.
    pub window_s: f64,
    /// Good replies inside the window.
    pub requests_ok: u64,
    /// Good replies ÷ length; `null` for a window without one.
    pub requests_per_s: Option<f64>,
    /// Good replies by second of the window.
    pub ok_per_second: Vec<u64>,
    /// Good replies after the end of the window.
    pub drained: u64,
    /// Of good replies, drained ones included; in an open loop counted from when each was due.
    pub latency_ns: LatencySummary,
    /// What only an open loop has; `null` for a closed one.
    pub open_loop: Option<OpenReport>,
    /// Handshakes since the start of the run.
    pub connect_ns: LatencySummary,
    /// Requests known only to have taken longer than was waited.
    pub latency_censored: u64,
    /// Latencies beyond the histogram's end.
    pub latency_saturated: u64,
    /// By kind; empty where nothing went wrong.
    pub errors: BTreeMap<ErrorKind, u64>,
    /// Statuses that did not count.
    pub statuses: BTreeMap<u16, u64>,
    /// The first failure, clipped.
    pub first_failure: Option<Failure>,
    /// Open at the end.
    pub connections_open: usize,
    /// Closed by an error.
    pub connections_lost: u64,
    /// Without one reply inside the window.
    pub connections_never_served: usize,
    /// Requests without a reply when the drain was over.
    pub unfinished: u64,
    /// Age of the oldest of them.
    pub unfinished_oldest_ns: Option<u64>,
    /// Connections made anew because they had been closed while idle.
    pub reconnects: u64,
    /// Connections that the server closed after a whole reply.
    pub closed_by_server: u64,
    /// Good replies whose end only the closing of the connection told.
    pub framed_by_close: u64,
    /// Inside the window.
    pub bytes_read: u64,
    /// Inside the window.
    pub bytes_written: u64,
    /// Bodies compared with the expected one.
    pub bodies_checked: u64,
    /// What driving cost.
    pub driver: Driver,
    /// Whether nothing speaks against the window.
    pub valid: bool,
    /// Conditions of `--fail-if` that were true or could not be told, with what was found.
    pub failed_if: Vec<String>,
    /// What does.
    pub invalid_reasons: Vec<ReasonReport>,
}

/// A reason against a window, by name and in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonReport {
    /// Stable.
    pub name: String,
    /// One line.
    pub text: String,
}

impl Report {
    /// `url` and `address` as they are to be shown.
    pub fn new(url: &str, address: &str, threads: usize, window: &Window, reasons: &[Reason]) -> Self {
        let named = |reason: &Reason| ReasonReport { name: reason.name().to_owned(), text: reason.to_string() };
        Self {
            format: FORMAT,
            url: url.to_owned(),
            address: address.to_owned(),
            threads,
            connections: window.connections_asked,
            window_s: window.window.as_secs_f64(),
            requests_ok: window.requests_ok,
            requests_per_s: (!window.window.is_zero()).then_some(window.requests_per_s),
            ok_per_second: window.ok_per_second.clone(),
            drained: window.drained,
            latency_ns: window.latency_ns,
            open_loop: window.open.as_ref().map(OpenReport::new),
            connect_ns: window.connect_ns,
            latency_censored: window.latency_censored,
            latency_saturated: window.latency_saturated,
            errors: window.errors.clone(),
            statuses: window.statuses.clone(),
            first_failure: window.first_failure.clone(),
            connections_open: window.connections_open,
            connections_lost: window.connections_lost,
            connections_never_served: window.connections_never_served,
            unfinished: window.unfinished,
            unfinished_oldest_ns: window.unfinished_oldest_ns,
            reconnects: window.reconnects,
            closed_by_server: window.closed_by_server,
            framed_by_close: window.framed_by_close,
            bytes_read: window.bytes_read,
            bytes_written: window.bytes_written,
            bodies_checked: window.bodies_checked,
            driver: window.driver,
            failed_if: Vec::new(),
            valid: reasons.is_empty(),
            invalid_reasons: reasons.iter().map(named).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::load::judge;
    use crate::load::tally::Tally;

    #[test]
    fn a_window_without_anything_has_nulls_and_no_nan() {
        let window = Window::merge(1, None, vec![Tally::new(Duration::from_secs(1))]);
        let report = Report::new("http://127.0.0.1:1/", "127.0.0.1:1", 1, &window, &judge(&window, None));
        insta::assert_snapshot!(serde_json::to_string_pretty(&report).unwrap());
        let back: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(back, report);
    }
}
