//! What was measured, where and how: the parts of a report without which its numbers mean nothing.

use serde_json::Value;

use super::document::{Column, Document, Table};
use super::number::{mib, percent, seconds};
use crate::record::{Record, Server};

/// Of a commit: enough to find it.
const COMMIT_DIGITS: usize = 12;

pub(super) fn opening(record: &Record, document: &mut Document) {
    let run = &record.run;
    let settings = &run.settings;
    document.title(match &settings.suite {
        Some(suite) => format!("headroom compare, suite {suite}, {} profile", settings.profile),
        None => format!("headroom compare, {} profile", settings.profile),
    });
    let rounds = if settings.rounds == 1 { "1 round".to_owned() } else { format!("{} rounds", settings.rounds) };
    let order = if settings.rounds == 1 { "" } else { ", order rotated" };
    let label = match settings.profile.as_str() {
        "quick" => " A first answer: one host, short windows, no verdicts.",
        _ => "",
    };
    document.paragraph(format!(
        "{} UTC, {rounds} of {} s + {} s windows (warm-up + measured){order}.{label}",
        run.started_at.strftime("%Y-%m-%d %H:%M"),
        seconds(settings.warmup_s),
        seconds(settings.window_s),
    ));
    document.paragraph(
        "headroom = requests/s of native ÷ those of the server, same round, equal cores. \
         CPU headroom = CPU per request of server plus Postgres, server ÷ native. \
         Latencies are closed-loop: mostly connections ÷ rate.",
    );
    let expected = expected_cells(record);
    let finished = finished_cells(record);
    if finished < expected {
        document.loud(format!(
            "{finished} of {expected} cells are measured: the run was interrupted, or is still going; \
             `headroom compare --resume` with this folder goes on"
        ));
    }
}

/// `2026-01-02 03:04 UTC, headroom 0.1.0 (0123456789ab), standard profile, 10 rounds of 1 s + 3 s`.
pub(super) fn when_and_how(record: &Record) -> String {
    let (run, settings) = (&record.run, &record.run.settings);
    let commit = run.git_commit.as_deref().map_or_else(String::new, |commit| {
        let changes = if commit.ends_with("+changes") { "+changes" } else { "" };
        format!(" ({}{changes})", commit.chars().take(COMMIT_DIGITS).collect::<String>())
    });
    let suite = settings.suite.as_deref().map_or_else(String::new, |suite| format!("suite {suite}, "));
    format!(
        "{} UTC, headroom {}{commit}, {suite}{} profile, {} round{} of {} s + {} s",
        run.started_at.strftime("%Y-%m-%d %H:%M"),
        run.headroom_version,
        settings.profile,
        settings.rounds,
        if settings.rounds == 1 { "" } else { "s" },
        seconds(settings.warmup_s),
        seconds(settings.window_s),
    )
}

/// `AMD EPYC, 2 of 2 CPUs, kvm, Linux 6.1`, as far as it is known.
pub(super) fn host_line(record: &Record) -> String {
    let text = |key: &str| record.run.host.get(key).and_then(Value::as_str).map(str::to_owned);
    let number = |key: &str| record.run.host.get(key).and_then(Value::as_u64);
    let cpus = number("allowed_cpu_count").zip(number("logical_cpus")).map(|(may, has)| format!("{may} of {has} CPUs"));
    let kernel = text("kernel").map(|kernel| format!("Linux {}", kernel.trim_start_matches("Linux ")));
    let parts = [text("cpu_model"), cpus, text("virtualisation"), kernel];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    if known.is_empty() { "host unknown".to_owned() } else { known.join(", ") }
}

/// Cells of servers that can be measured at all.
fn expected_cells(record: &Record) -> usize {
    let run = &record.run;
    let measurable = run.servers.iter().filter(|server| !given_up(record, server)).count();
    measurable * run.settings.routes.len() * run.settings.connections.len() * run.settings.rounds as usize
}

/// Failed the gate, or had a life and never a window.
fn given_up(record: &Record, server: &Server) -> bool {
    let refused = record.run.gates.get(&server.name).is_some_and(|gate| !gate.passed);
    let failed = record.lives.iter().any(|life| life.server == server.name && life.failure.is_some());
    refused || (failed && !record.windows.iter().any(|window| window.server == server.name))
}

fn finished_cells(record: &Record) -> usize {
    let mut cells: Vec<_> =
        record.windows.iter().map(|w| (w.server.as_str(), w.route.as_str(), w.connections, w.round)).collect();
    cells.sort_unstable();
    cells.dedup();
    cells.len()
}

pub(super) fn servers(record: &Record, document: &mut Document) {
    document.heading("Servers");
    let columns = vec![
        Column::text("server"),
        Column::text("what it is"),
        Column::text("class"),
        Column::text("cores"),
        Column::text("statements"),
        Column::text("gate"),
        Column::text("versions"),
    ];
    let rows = record.run.servers.iter().map(|server| row(record, server)).collect();
    document.table(Table { columns, rows });
    let mut strict = Vec::new();
    for server in &record.run.servers {
        let Some(gate) = record.run.gates.get(&server.name).filter(|gate| !gate.strict_differences.is_empty()) else {
            continue;
        };
        let ids: Vec<&str> = gate.strict_differences.iter().map(|difference| difference.id.as_str()).collect();
        strict.push(format!("{}: {}", server.name, ids.join(", ")));
    }
    if !strict.is_empty() {
        document.paragraph("Strict differences, reported and never a gate (run.json has what was sent and answered):");
        document.list(strict);
    }
}

fn row(record: &Record, server: &Server) -> Vec<String> {
    let prepared = if server.prepared { "prepared" } else { "not prepared" };
    let pipelined = if server.pipelined { "pipelined" } else { "one in flight" };
    let processes = format!("{} process{}", server.processes, if server.processes == 1 { "" } else { "es" });
    let gate = record.run.gates.get(&server.name).map_or("not run".to_owned(), |gate| {
        match (gate.passed, gate.strict_differences.len()) {
            (false, _) => "failed".to_owned(),
            (true, 0) => "passed".to_owned(),
            (true, n) => format!("passed, {n} strict"),
        }
    });
    let versions: Vec<String> = server.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    vec![
        server.name.clone(),
        server.label.clone(),
        server.class.clone(),
        format!("{}, {processes}", server.cores.name()),
        format!("{prepared}, {pipelined}"),
        gate,
        versions.join(", "),
    ]
}

pub(super) fn conditions(record: &Record, document: &mut Document) {
    let run = &record.run;
    let settings = &run.settings;
    document.heading("Conditions");
    let mut lines = vec![
        format!("headroom {}, commit {}", run.headroom_version, run.git_commit.as_deref().unwrap_or("unknown")),
        format!(
            "warm-up {} s ({} s after a start), window {} s, at most {} windows a cell, driver threads {}",
            seconds(settings.warmup_s),
            seconds(settings.first_warmup_s),
            seconds(settings.window_s),
            settings.max_attempts,
            settings.driver_threads
        ),
        match settings.seed {
            Some(seed) => format!("requests vary from seed {seed}, one body in {} is compared", settings.check_every),
            None => format!("requests are the contract's examples, one body in {} is compared", settings.check_every),
        },
        format!(
            "void above {} foreign CPU, {} steal, {} Postgres connections",
            percent(settings.limits.max_foreign_cpu_share),
            percent(settings.limits.max_steal_share),
            settings.limits.max_postgres_connections
        ),
        format!("Postgres {}{}", run.postgres.version, if run.postgres.visible { "" } else { ", its CPU not visible" }),
    ];
    if !run.postgres.settings.is_empty() {
        let all: Vec<String> = run.postgres.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        lines.push(format!("Postgres settings: {}", all.join(", ")));
    }
    for resumed in &run.resumed_at {
        lines.push(format!("resumed {} UTC", resumed.strftime("%Y-%m-%d %H:%M")));
    }
    host_lines("", &run.host, &mut lines);
    document.list(lines);
}

/// Whatever the host's facts hold, one line each, nested names joined by points; `null` is unknown.
fn host_lines(path: &str, value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { format!("host {name}") } else { format!("{path}.{name}") };
                host_lines(&path, value, lines);
            }
        }
        Value::Null => lines.push(format!("{path}: unknown")),
        Value::String(text) => lines.push(format!("{path}: {text}")),
        Value::Number(bytes) if path.ends_with("_bytes") => {
            lines.push(format!("{path}: {} MiB", mib(bytes.as_f64().unwrap_or_default())));
        }
        other => lines.push(format!("{path}: {other}")),
    }
}
