//! One window for people, in the order that those who know wrk look for.

use std::fmt::Write as _;

use super::{ErrorKind, Failure, LatencySummary, OpenReport, Report};

/// The whole summary, ending with a line break.
pub fn render(report: &Report) -> String {
    let mut out = String::new();
    head(&mut out, report);
    latencies(&mut out, report);
    throughput(&mut out, report);
    errors(&mut out, report);
    notes(&mut out, report);
    verdict(&mut out, report);
    out
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($out:expr, $($arguments:tt)*) => {
        writeln!($out, $($arguments)*).expect("a string takes everything")
    };
}

fn head(out: &mut String, report: &Report) {
    line!(out, "Running {} test @ {}", seconds(report.window_s), report.url);
    line!(
        out,
        "  {} and {}, to {}",
        count(report.threads as u64, "thread"),
        count(report.connections as u64, "connection"),
        report.address
    );
}

fn latencies(out: &mut String, report: &Report) {
    let latency = report.latency_ns;
    let columns = [
        ("min", latency.min),
        ("mean", latency.mean),
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("max", latency.max),
    ];
    let (mut names, mut values) = (format!("  {:<8}", ""), format!("  {:<8}", "Latency"));
    for (name, value) in columns {
        write!(names, "{name:>10}").expect("a string takes everything");
        write!(values, "{:>10}", value.map_or("-".to_owned(), latency_text)).expect("a string takes everything");
    }
    line!(out, "{names}");
    line!(out, "{values}");
    if report.latency_censored > 0 {
        line!(
            out,
            "  {} took longer than was waited, or were never sent: the true tail is longer",
            count(report.latency_censored, "request")
        );
    }
    if report.latency_saturated > 0 {
        line!(out, "  {} beyond the longest latency that can be recorded", count(report.latency_saturated, "request"));
    }
    match &report.open_loop {
        None => line!(out, "  With every connection always busy, latency is mostly connections ÷ rate."),
        Some(open) => open_loop(out, open),
    }
}

/// Where the latency of an open loop went.
fn open_loop(out: &mut String, open: &OpenReport) {
    let row = |name: &str, times: LatencySummary| {
        let columns = [times.min, times.mean, times.p50, times.p90, times.p99, times.p99_9, times.max];
        columns.iter().fold(format!("  {name:<8}"), |mut row, value| {
            write!(row, "{:>10}", value.map_or("-".to_owned(), latency_text)).expect("a string takes everything");
            row
        })
    };
    line!(out, "{}", row("service", open.service_ns));
    line!(out, "{}", row("lag", open.lag_ns));
    line!(out, "{}", row("gap", open.gap_ns));
    line!(
        out,
        "  Open loop at {} requests/s: latency counts from when a request was due, service from its write;",
        open.rate
    );
    line!(out, "  lag is the driver's own delay, gap the time between two writes of a thread.");
    if open.unsent > 0 {
        let oldest = open.oldest_unsent_ns.map_or("-".to_owned(), latency_text);
        line!(
            out,
            "  {} of {} due were not sent, every connection was busy; the oldest was due {oldest} before the end",
            open.unsent,
            open.scheduled
        );
    }
}

fn throughput(out: &mut String, report: &Report) {
    line!(
        out,
        "  {} in {}, {} read",
        count(report.requests_ok, "request"),
        seconds(report.window_s),
        bytes_text(report.bytes_read as f64)
    );
    let rate = report.requests_per_s.map_or("-".to_owned(), |rate| format!("{rate:.2}"));
    let transfer =
        if report.window_s > 0.0 { bytes_text(report.bytes_read as f64 / report.window_s) } else { "-".to_owned() };
    line!(out, "Requests/sec: {rate:>12}");
    line!(out, "Transfer/sec: {transfer:>12}");
}

fn errors(out: &mut String, report: &Report) {
    if let Some(bad) = report.errors.get(&ErrorKind::Status) {
        let statuses: Vec<String> =
            report.statuses.iter().map(|(status, count)| format!("{count} × {status}")).collect();
        line!(out, "  Replies that do not count: {bad} ({})", statuses.join(", "));
    }
    let others: Vec<String> = report
        .errors
        .iter()
        .filter(|&(&kind, _)| kind != ErrorKind::Status)
        .map(|(kind, count)| format!("{} {count}", kind.name()))
        .collect();
    if !others.is_empty() {
        line!(out, "  Errors: {}", others.join(", "));
    }
    if let Some(Failure { kind, detail, request, reply }) = &report.first_failure {
        line!(out, "  The first one ({}): {detail}", kind.name());
        quoted(out, '>', request);
        quoted(out, '<', reply);
    }
}

fn notes(out: &mut String, report: &Report) {
    if report.connections_never_served > 0 {
        line!(out, "  {} had no reply inside the window", count(report.connections_never_served as u64, "connection"));
    }
    if report.unfinished > 0 {
        let oldest = report.unfinished_oldest_ns.map_or("-".to_owned(), latency_text);
        line!(
            out,
            "  {} still without a reply after the drain, the oldest for {oldest}",
            count(report.unfinished, "request")
        );
    }
    if report.closed_by_server > 0 {
        line!(
            out,
            "  {} closed by the server after a reply and opened again",
            count(report.closed_by_server, "connection")
        );
    }
    if report.reconnects > 0 {
        line!(out, "  {} closed while idle and opened again", count(report.reconnects, "connection"));
    }
    if report.framed_by_close > 0 {
        line!(out, "  {} without a length: a cut body could not be told", count(report.framed_by_close, "reply"));
    }
    if report.bodies_checked > 0 {
        line!(out, "  {} compared with the expected one", count(report.bodies_checked, "body"));
    }
    if let (Some(median), Some(longest)) = (report.connect_ns.p50.or(report.connect_ns.mean), report.connect_ns.max) {
        line!(out, "  Connecting took {} each, at most {}", latency_text(median), latency_text(longest));
    }
    let cost = report.driver.cpu_ns_per_request.map_or("-".to_owned(), latency_text);
    let busy = report.driver.busy_share.map_or("-".to_owned(), |share| format!("{:.0} %", share * 100.0));
    line!(out, "  Driver: {cost} of CPU per request, its busiest thread {busy} busy");
}

fn verdict(out: &mut String, report: &Report) {
    if report.valid {
        line!(out, "VALID");
    }
    for reason in &report.invalid_reasons {
        line!(out, "INVALID {}: {}", reason.name, reason.text);
    }
    for condition in &report.failed_if {
        line!(out, "FAILED {condition}");
    }
}

/// At most this many lines of a failing request or reply are shown.
const QUOTED_LINES: usize = 12;

fn quoted(out: &mut String, mark: char, text: &str) {
    for text in text.lines().take(QUOTED_LINES) {
        // Control characters would take over the terminal.
        let shown: String = text.chars().map(|c| if c.is_control() { '�' } else { c }).collect();
        line!(out, "{}", format!("  {mark} {shown}").trim_end());
    }
    if text.lines().count() > QUOTED_LINES {
        line!(out, "  {mark} …");
    }
}

/// `1 request`, `2 requests`, `3 replies`.
fn count(number: u64, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

fn seconds(seconds: f64) -> String {
    if seconds.fract() == 0.0 { format!("{seconds:.0}s") } else { format!("{seconds:.2}s") }
}

/// Three figures or so, with the unit that fits.
fn latency_text(ns: u64) -> String {
    let ns = ns as f64;
    match ns {
        _ if ns < 1e3 => format!("{ns:.0}ns"),
        _ if ns < 1e6 => format!("{:.2}us", ns / 1e3),
        _ if ns < 1e9 => format!("{:.2}ms", ns / 1e6),
        _ => format!("{:.2}s", ns / 1e9),
    }
}

/// Powers of 1024 under the names wrk gives them.
fn bytes_text(bytes: f64) -> String {
    const KIB: f64 = 1024.0;
    match bytes {
        _ if bytes < KIB => format!("{bytes:.0}B"),
        _ if bytes < KIB * KIB => format!("{:.2}KB", bytes / KIB),
        _ if bytes < KIB * KIB * KIB => format!("{:.2}MB", bytes / KIB / KIB),
        _ => format!("{:.2}GB", bytes / KIB / KIB / KIB),
    }
}

#[cfg(test)]
mod tests;
