//! One section a route: rates, latencies, costs and memory, and the rounds behind each ratio.

use super::document::{Column, Document, Notes, Table};
use super::figures::{Cell, base_of, cpu_headroom, headroom};
use super::number::{NONE, mib, ms, rate, ratio, us};
use super::overview::{shown_name, shown_rate};
use crate::record::{Cores, Record, Server, Window};
use crate::stats::{CONFIDENCE, Ratio};

pub(super) fn write(record: &Record, document: &mut Document) {
    for route in &record.run.settings.routes {
        for &connections in &record.run.settings.connections {
            section(record, route, connections, document);
        }
    }
}

fn section(record: &Record, route: &str, connections: u32, document: &mut Document) {
    let mut notes = Notes::default();
    let mut figures = Table { columns: columns(record), rows: Vec::new() };
    let mut rounds = Table { columns: rounds_columns(), rows: Vec::new() };
    for cores in [Cores::One, Cores::All] {
        // A server without any window has its line in the overview; here it would only repeat itself.
        // So does a route on which nothing counts.
        if !record.windows.iter().any(|w| w.valid && w.route == route && w.connections == connections) {
            continue;
        }
        let shown = |s: &&Server| s.cores == cores && record.windows.iter().any(|w| w.server == s.name);
        for server in record.run.servers.iter().filter(shown) {
            let cell = Cell::of(record, &server.name, route, connections);
            let base = base_of(record, server).map(|base| Cell::of(record, &base.name, route, connections));
            let over = base.as_ref().and_then(|base| headroom(base, &cell));
            let cpu_over = base.as_ref().and_then(|base| cpu_headroom(base, &cell));
            let mut row = vec![shown_name(record, server)];
            row.push(shown_rate(record, server, &cell, route, connections, &mut notes));
            if record.run.settings.rounds > 1 {
                row.push(cell.rate().map_or_else(none, |s| format!("{}..{}", rate(s.min()), rate(s.max()))));
            }
            row.extend([shown_ratio(over), shown_ratio(cpu_over)]);
            row.extend(latencies(&cell, &mut notes));
            row.extend(costs(&cell));
            figures.rows.push(row);
            if let Some(over) = over.filter(|over| over.rounds > 1) {
                rounds.rows.push(rounds_row(server, &over, cpu_over));
            }
        }
    }
    if !figures.rows.is_empty() {
        document.heading(format!("Route {route}, {connections} connections"));
    }
    document.table(figures);
    document.list(notes.lines());
    document.table(rounds);
}

fn columns(record: &Record) -> Vec<Column> {
    let mut columns = vec![Column::text("server"), Column::number("requests/s")];
    if record.run.settings.rounds > 1 {
        columns.push(Column::number("min..max").spare(4));
    }
    columns.extend([
        Column::number("headroom"),
        Column::number("CPU headroom"),
        Column::number("p50 ms").spare(2),
        Column::number("p99 ms").spare(1),
        Column::number("server µs"),
        Column::number("Postgres µs"),
        Column::number("driver µs").spare(3),
        Column::number("peak MiB").spare(1),
    ]);
    columns
}

fn none() -> String {
    NONE.to_owned()
}

fn shown_ratio(value: Option<Ratio>) -> String {
    value.map_or_else(none, |value| ratio(value.mean))
}

fn median(cell: &Cell<'_>, value: impl Fn(&Window) -> Option<u64>) -> Option<f64> {
    cell.sample(|window| value(window).map(|value| value as f64)).map(|sample| sample.median())
}

fn latencies(cell: &Cell<'_>, notes: &mut Notes) -> [String; 2] {
    let p50 = median(cell, |window| window.latency_ns.p50).map_or_else(none, ms);
    let mut p99 = median(cell, |window| window.latency_ns.p99).map_or_else(none, ms);
    if let Some(note) = starvation(cell) {
        p99 += &notes.mark(note);
    }
    [p50, p99]
}

/// Starvation is a result: connections that waited out the whole window are counted, not hidden in a percentile.
fn starvation(cell: &Cell<'_>) -> Option<String> {
    let worst = cell.valid.values().max_by_key(|window| (window.connections_never_served, window.unfinished))?;
    if worst.connections_never_served == 0 && worst.unfinished == 0 {
        return None;
    }
    let oldest =
        worst.unfinished_oldest_ns.map_or_else(String::new, |ns| format!(", the oldest after {} ms", ms(ns as f64)));
    Some(format!(
        "{} of {} connections had no reply in a whole window, {} requests were never answered{oldest}: \
         the tail is longer than shown",
        worst.connections_never_served, worst.connections, worst.unfinished
    ))
}

fn costs(cell: &Cell<'_>) -> [String; 4] {
    [
        median(cell, |window| window.cpu_ns_per_request.server).map_or_else(none, us),
        median(cell, |window| window.cpu_ns_per_request.postgres).map_or_else(none, us),
        median(cell, |window| window.cpu_ns_per_request.driver).map_or_else(none, us),
        median(cell, |window| window.peak_rss_bytes).map_or_else(none, mib),
    ]
}

/// Says how sure it is.
fn interval_title() -> String {
    format!("{:.0} % interval", CONFIDENCE * 100.0)
}

fn rounds_columns() -> Vec<Column> {
    vec![
        Column::text("base ÷ server, by round"),
        Column::number("headroom"),
        Column::number("min..max"),
        Column::number(&interval_title()),
        Column::number("rounds won by base"),
        Column::number("CPU headroom min..max").spare(1),
        Column::text("the base is"),
    ]
}

fn rounds_row(server: &Server, over: &Ratio, cpu_over: Option<Ratio>) -> Vec<String> {
    let range = |low: f64, high: f64| format!("{}..{}", ratio(low), ratio(high));
    vec![
        server.name.clone(),
        ratio(over.mean),
        range(over.min, over.max),
        over.interval.map_or_else(none, |interval| range(interval.low, interval.high)),
        format!("{} of {}", over.won, over.rounds),
        cpu_over.map_or_else(none, |cpu| range(cpu.min, cpu.max)),
        over.verdict.map_or_else(none, |verdict| verdict.words().to_owned()),
    ]
}
