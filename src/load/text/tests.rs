//! Whole summaries as reviewed files.

use std::time::Duration;

use super::*;
use crate::load::tally::{End, Tally};
use crate::load::{Window, judge};

fn summary(connections: usize, host_idle_share: Option<f64>, tally: Tally) -> String {
    let window = Window::merge(connections, None, vec![tally]);
    let reasons = judge(&window, host_idle_share);
    render(&Report::new("http://127.0.0.1:3000/users/4242", "127.0.0.1:3000", 1, &window, &reasons))
}

/// 100 connections, 20,000 replies in 2 s, of 10 ms each.
fn sound() -> Tally {
    let mut tally = Tally::new(Duration::from_secs(10));
    (0..20_000).for_each(|k| tally.completed(k * 100_000, 9_000_000 + k * 100));
    tally.idle_ns = 1_000_000_000;
    tally.bodies_checked = 20;
    tally.end = End {
        window_ns: 2_000_000_000,
        bytes_read: 5_400_000,
        bytes_written: 1_400_000,
        cpu_ns: 120_000_000,
        wall_ns: 2_000_000_000,
        connections_open: 100,
        ..End::default()
    };
    tally
}

#[test]
fn a_valid_window() {
    insta::assert_snapshot!(summary(100, Some(0.5), sound()));
}

#[test]
fn a_window_with_everything_wrong() {
    let mut tally = sound();
    tally.error(ErrorKind::Status);
    tally.error(ErrorKind::Timeout);
    tally.error(ErrorKind::Closed);
    tally.status(500);
    tally.connections_lost = 2;
    (tally.reconnects, tally.closed_by_server, tally.framed_by_close) = (3, 1, 2);
    let failure = Failure {
        kind: ErrorKind::Status,
        detail: "status 500".to_owned(),
        request: "GET /users/4242 HTTP/1.1\r\nhost: 127.0.0.1:3000\r\n\r\n".to_owned(),
        reply: "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 5\r\n\r\n\u{1b}[31m".to_owned(),
    };
    tally.first_failure = Some((1, failure));
    (tally.end.connections_never_served, tally.end.connections_open) = (1, 99);
    (tally.end.unfinished, tally.end.unfinished_oldest_ns) = (1, Some(7_000_000_000));
    tally.end.cpu_ns = 1_990_000_000;
    insta::assert_snapshot!(summary(100, Some(0.5), tally));
}

#[test]
fn a_window_in_which_nothing_happened() {
    let mut tally = Tally::new(Duration::from_secs(10));
    tally.end.ended_early = Some("no connection was up for 1s".to_owned());
    insta::assert_snapshot!(summary(1, None, tally));
}

#[test]
fn units_fit_their_figures() {
    let latencies = [0, 999, 1_000, 999_000, 1_500_000, 60_000_000_000].map(latency_text);
    assert_eq!(latencies, ["0ns", "999ns", "1.00us", "999.00us", "1.50ms", "60.00s"]);
    let bytes = [0.0, 1023.0, 1024.0, 1_500_000.0, 5e9].map(bytes_text);
    assert_eq!(bytes, ["0B", "1023B", "1.00KB", "1.43MB", "4.66GB"]);
    assert_eq!([1.0, 0.25].map(seconds), ["1s", "0.25s"]);
    assert_eq!(count(1, "reply") + &count(2, "reply") + &count(0, "body"), "1 reply2 replies0 bodies");
}

#[test]
fn quoted_bytes_are_bounded() {
    let mut out = String::new();
    quoted(&mut out, '<', &"x\n".repeat(100));
    assert_eq!(out.lines().count(), QUOTED_LINES + 1);
}
