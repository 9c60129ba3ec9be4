//! What went wrong, said where nobody overlooks it: rows that beat us, servers that failed, windows that do not count.

use std::collections::BTreeSet;

use super::document::{Column, Document, Table};
use super::figures::{Cell, base_of, headroom};
use super::number::{NONE, percent, rate, ratio};
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
                     this is a bug in our server until shown otherwise{}",
                    server.name,
                    ratio(1.0 / over.mean),
                    base.name,
                    over.rounds - over.won,
                    over.rounds,
                    if over.rounds == 1 {
                        " (one round proves little: measure again with --profile standard)"
                    } else {
                        ""
                    }
                ));
            }
        }
    }
}

/// An unoptimised ceiling is none.
pub(super) fn debug_build(record: &Record, document: &mut Document) {
    if record.run.debug_build {
        document.loud(
            "headroom was a debug build: its native rows are no ceiling, and no ratio below means anything; \
             measure with `cargo run --release`",
        );
    }
}

/// Limits that let more through than the defaults: whoever copies the table must copy this too.
pub(super) fn loosened_limits(record: &Record, document: &mut Document) {
    const FOREIGN_CPU: f64 = 0.05;
    const STEAL: f64 = 0.02;
    let limits = &record.run.settings.limits;
    if limits.max_foreign_cpu_share <= FOREIGN_CPU && limits.max_steal_share <= STEAL {
        return;
    }
    let most = |share: fn(&Window) -> Option<f64>| {
        let seen = record.windows.iter().filter(|window| window.valid).filter_map(share);
        seen.max_by(f64::total_cmp).map_or_else(|| NONE.to_owned(), percent)
    };
    document.loud(format!(
        "the limits were loosened: foreign CPU up to {} (usually {}), steal up to {} (usually {}); \
         windows that count had up to {} and {}",
        percent(limits.max_foreign_cpu_share),
        percent(FOREIGN_CPU),
        percent(limits.max_steal_share),
        percent(STEAL),
        most(|window| window.foreign_cpu_share),
        most(|window| window.steal_share),
    ));
}

/// Where the host leaves little to look at, the reader is told what to do about it before the empty tables.
pub(super) fn busy_host(record: &Record, document: &mut Document) {
    let is_disturbed =
        |window: &&Window| window.invalid_reasons.iter().any(|r| r.name == "foreign_cpu" || r.name == "steal");
    let disturbed = record.windows.iter().filter(is_disturbed).count();
    if disturbed * 2 > record.windows.len() {
        document.loud(format!(
            "{disturbed} of {} windows are void because others used this host's CPUs: end other programs and measure again, \
             or accept the disturbance with --max-foreign-cpu or --max-steal",
            record.windows.len()
        ));
    }
}

/// Why a cell has no figure, one line, the same for cells that lack it for the same reason.
pub(super) fn why_missing(record: &Record, server: &Server, cell: &Cell<'_>, route: &str, connections: u32) -> String {
    if !cell.invalid.is_empty() {
        let names: BTreeSet<&str> =
            cell.invalid.iter().flat_map(|window| &window.invalid_reasons).map(|reason| reason.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        return format!("void in every attempt: {} (the report lists the windows)", names.join(", "));
    }
    let refused = record.run.gates.get(&server.name).is_some_and(|gate| !gate.passed);
    if refused || record.lives.iter().any(|life| life.server == server.name && life.failure.is_some()) {
        return format!("{} could not be measured: see the servers that failed", server.name);
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

/// Windows whose statements nobody counted: valid by every other rule, and the reader should know.
pub(super) fn uncounted(record: &Record, document: &mut Document) {
    let counted = |window: &&Window| {
        let life = record.lives.iter().find(|life| life.life == window.life);
        life.is_some_and(|life| life.transactions.is_some() || life.database_requests_ok == 0)
    };
    let uncounted: BTreeSet<(u32, &str)> = record
        .windows
        .iter()
        .filter(|window| window.valid && !counted(window))
        .map(|window| (window.round, window.server.as_str()))
        .collect();
    if !uncounted.is_empty() {
        let names: Vec<String> = uncounted.iter().map(|(round, server)| format!("{server} round {round}")).collect();
        document.paragraph(format!(
            "Statements were not counted, because the run was killed or other sessions were open, for: {}.",
            names.join(", ")
        ));
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
        Column::number("requests/s"),
        Column::text("reasons"),
    ];
    let row = |window: &&Window| {
        vec![
            window.server.clone(),
            window.route.clone(),
            window.connections.to_string(),
            window.round.to_string(),
            window.attempt.to_string(),
            window.requests_per_s.map_or_else(|| NONE.to_owned(), rate),
            reasons(window),
        ]
    };
    document.table(Table { columns, rows: invalid.iter().map(row).collect() });
}

fn reasons(window: &Window) -> String {
    let all: Vec<String> = window.invalid_reasons.iter().map(|r| format!("{} ({})", r.name, r.text)).collect();
    if all.is_empty() { "no reason given".to_owned() } else { all.join("; ") }
}

/// A server of another kind fails a hundred checks, and the first few say so.
const SHOWN: usize = 3;

fn gate_failure(gate: &Gate) -> String {
    if let Some(error) = &gate.error {
        return format!("the gate could not run: {error}");
    }
    let all = gate.core_failures.len();
    let mut shown: Vec<String> =
        gate.core_failures.iter().take(SHOWN).map(|f| format!("{}: {}", f.id, f.difference)).collect();
    if all > SHOWN {
        shown.push(format!("{} more in run.json", all - SHOWN));
    }
    let checks = if all == 1 { "check" } else { "checks" };
    format!("{all} core {checks} failed: {}", shown.join("; "))
}

fn stage(stage: Stage, why: &str) -> String {
    match stage {
        Stage::Start => format!("it did not start: {why}"),
        Stage::Gate => format!("it was lost at the gate: {why}"),
        Stage::Load => format!("it died under load: {why}"),
    }
}
