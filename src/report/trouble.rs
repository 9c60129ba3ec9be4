//! What went wrong, said where nobody overlooks it: rows that beat us, servers that failed, windows that do not count.

use super::document::{Column, Document, Table};
use super::figures::{Cell, base_of, headroom};
use super::number::ratio;
use crate::record::{Gate, Record, Server, Stage, Window};

/// A peer ahead of the native row is a fault of ours until shown otherwise.
pub(super) fn loud(record: &Record, document: &mut Document) {
    let settings = &record.run.settings;
    for server in record.run.servers.iter().filter(|server| !server.native) {
        let Some(base) = base_of(record, server) else { continue };
        for route in &settings.routes {
            for &connections in &settings.connections {
                let of = |name: &str| Cell::of(record, name, route, connections);
                let Some(over) = headroom(&of(&base.name), &of(&server.name)).filter(|over| over.mean < 1.0) else {
                    continue;
                };
                document.loud(format!(
                    "{} served {} the requests of {} on {route} at {connections} connections, in {} of {} rounds more: \
                     this is a bug in our server until shown otherwise",
                    server.name,
                    ratio(1.0 / over.mean),
                    base.name,
                    over.rounds - over.won,
                    over.rounds
                ));
            }
        }
    }
}

/// Why a cell has no figure, one line.
pub(super) fn why_missing(record: &Record, server: &Server, cell: &Cell<'_>, route: &str, connections: u32) -> String {
    if let Some(window) = cell.invalid.last() {
        let reasons = reasons(window);
        let attempts = cell.invalid.len();
        return format!(
            "{} on {route}: {attempts} of {attempts} windows are void, the last for {reasons}",
            server.name
        );
    }
    if let Some(gate) = record.run.gates.get(&server.name).filter(|gate| !gate.passed) {
        return format!("{} was not measured: {}", server.name, gate_failure(gate));
    }
    let mut failures =
        record.lives.iter().filter(|life| life.server == server.name).filter_map(|life| life.failure.as_ref());
    if let Some(failure) = failures.next_back() {
        return format!("{} was not measured: {}", server.name, stage(failure.stage, &failure.why));
    }
    format!("{} on {route} at {connections} connections was not measured: the run is not finished", server.name)
}

pub(super) fn failed_servers(record: &Record, document: &mut Document) {
    let mut lines = Vec::new();
    for server in &record.run.servers {
        if let Some(gate) = record.run.gates.get(&server.name).filter(|gate| !gate.passed) {
            lines.push(format!("{} did not pass the gate: {}", server.name, gate_failure(gate)));
        }
        let own = record.lives.iter().filter(|life| life.server == server.name);
        for (life, failure) in own.filter_map(|life| Some((life, life.failure.as_ref()?))) {
            // The gate's verdict says it better.
            if failure.stage != Stage::Gate {
                lines.push(format!("{} round {}: {}", server.name, life.round, stage(failure.stage, &failure.why)));
            }
        }
    }
    if !lines.is_empty() {
        document.heading("Servers that failed");
        document.list(lines);
    }
}

/// Every one of them, those measured again included.
pub(super) fn invalid_windows(record: &Record, document: &mut Document) {
    let invalid: Vec<&Window> = record.windows.iter().filter(|window| !window.valid).collect();
    if invalid.is_empty() {
        return;
    }
    document.heading("Windows that do not count");
    document.paragraph(format!(
        "{} of {} windows are void. None enters a figure above.",
        invalid.len(),
        record.windows.len()
    ));
    let columns = vec![
        Column::text("server"),
        Column::text("route"),
        Column::number("connections"),
        Column::number("round"),
        Column::number("attempt"),
        Column::text("reasons"),
    ];
    let row = |window: &&Window| {
        vec![
            window.server.clone(),
            window.route.clone(),
            window.connections.to_string(),
            window.round.to_string(),
            window.attempt.to_string(),
            reasons(window),
        ]
    };
    document.table(Table { columns, rows: invalid.iter().map(row).collect() });
}

fn reasons(window: &Window) -> String {
    let all: Vec<String> = window.invalid_reasons.iter().map(|r| format!("{} ({})", r.name, r.text)).collect();
    if all.is_empty() { "no reason given".to_owned() } else { all.join("; ") }
}

fn gate_failure(gate: &Gate) -> String {
    if let Some(error) = &gate.error {
        return format!("the gate could not run: {error}");
    }
    let failed: Vec<String> = gate.core_failures.iter().map(|f| format!("{}: {}", f.id, f.difference)).collect();
    format!("{} of {} core checks differ ({})", failed.len(), gate.checks, failed.join("; "))
}

fn stage(stage: Stage, why: &str) -> String {
    match stage {
        Stage::Start => format!("it did not start: {why}"),
        Stage::Gate => format!("it was lost at the gate: {why}"),
        Stage::Load => format!("it died under load: {why}"),
    }
}
