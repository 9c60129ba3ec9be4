//! Whole reports of made-up records, as reviewed files.

use std::collections::BTreeMap;

use super::*;
use crate::record::sample::{life, native, peer, record, run, window};
use crate::record::{
    Cores, CpuPerRequest, Difference, Failure, Gate, Latency, Life, Reason, Server, Stage, Step, Window,
};

fn servers() -> Vec<Server> {
    vec![
        native("native", "tokio-postgres", Cores::One),
        native("native-sqlx", "sqlx", Cores::One),
        native("native-all", "tokio-postgres", Cores::All),
        peer("elysia-bun-sql", "bun", "elysia", "bun-sql"),
        Server { prepared: false, pipelined: false, ..peer("elysia-bun", "bun", "elysia", "drizzle on bun-sql") },
        peer("express-node", "node", "express", "postgres.js"),
    ]
}

const RATES: [(&str, [f64; 7]); 6] = [
    ("native", [61_000.0, 52_000.0, 48_000.0, 60_000.0, 15_000.0, 20_000.0, 250.0]),
    ("native-sqlx", [61_500.0, 51_000.0, 21_000.0, 24_000.0, 11_000.0, 9_000.0, 250.0]),
    ("native-all", [62_000.0, 54_000.0, 49_000.0, 61_000.0, 15_100.0, 20_500.0, 420.0]),
    ("elysia-bun-sql", [57_500.0, 43_000.0, 9_100.0, 29_900.0, 7_800.0, 8_500.0, 54.0]),
    ("elysia-bun", [57_400.0, 43_100.0, 7_100.0, 10_700.0, 6_800.0, 7_500.0, 53.5]),
    ("express-node", [21_000.0, 15_300.0, 3_570.0, 17_400.0, 3_400.0, 3_500.0, 53.0]),
];
const ROUTES: [&str; 7] = ["health", "echo", "me", "user", "list", "order", "cpu"];

/// One good window of every cell.
fn one_round() -> Record {
    let mut windows = Vec::new();
    for (server, rates) in RATES {
        windows.extend(ROUTES.iter().zip(rates).map(|(route, rate)| window(server, route, 1, rate)));
    }
    let lives = RATES.iter().zip(1..).map(|((server, _), number)| life(server, 1, number)).collect();
    record(run(servers(), &ROUTES, "quick", 1), windows, lives)
}

/// Ten rounds of two routes with a little noise that is the same in every test run.
fn ten_rounds() -> Record {
    let mut windows = Vec::new();
    for round in 1..=10u32 {
        for (server, rates) in RATES {
            let noise = 1.0 + f64::from((round * 7 + u32::from(server.as_bytes()[0])) % 11) / 500.0;
            windows.push(window(server, "health", round, rates[0] * noise));
            windows.push(window(server, "user", round, rates[3] * noise));
        }
    }
    let lives = (1..=10).map(|round| life("native", round, round)).collect();
    record(run(servers(), &["health", "user"], "standard", 10), windows, lives)
}

fn edit<'a>(record: &'a mut Record, server: &str, route: &str) -> &'a mut Window {
    record.windows.iter_mut().find(|window| window.server == server && window.route == route).unwrap()
}

fn void(window: &mut Window, name: &str, detail: &str) {
    window.invalidate(&Reason::new(name, detail));
}

/// Everything that can go wrong in one round.
fn troubled() -> Record {
    let mut record = one_round();
    let starved = edit(&mut record, "express-node", "cpu");
    (starved.connections_never_served, starved.unfinished, starved.unfinished_oldest_ns) =
        (23, 23, Some(6_000_000_000));
    (starved.latency_ns.p99, starved.latency_ns.p99_9) = (None, None);
    let mut first = edit(&mut record, "elysia-bun", "user").clone();
    void(&mut first, "foreign_cpu", "7.2 % of the host went to other processes, at most 5 % may");
    record.windows.push(first);
    edit(&mut record, "elysia-bun", "user").attempt = 2;
    let zero = edit(&mut record, "elysia-bun", "order");
    (zero.requests_ok, zero.requests_per_s) = (0, Some(0.0));
    (zero.latency_ns, zero.cpu_ns_per_request) = (Latency::default(), CpuPerRequest::default());
    zero.errors = BTreeMap::from([("reset".to_owned(), 100)]);
    void(zero, "errors", "100 reset");
    void(zero, "server_died", "exited with status 3: out | of <memory>");

    record.run.servers.push(peer("refused", "node", "koa", "postgres.js"));
    record.run.servers.push(peer("dead", "node", "hapi", "postgres.js"));
    let difference = Difference {
        id: "user-int4-overflow".to_owned(),
        proves: "an id above int4 is refused".to_owned(),
        difference: "expected 422, got 500".to_owned(),
    };
    record.run.gates.get_mut("express-node").unwrap().strict_differences.push(difference.clone());
    let gate = Gate {
        passed: false,
        checks: 113,
        core_failures: vec![difference],
        strict_differences: Vec::new(),
        error: None,
    };
    record.run.gates.insert("refused".to_owned(), gate);
    let failure = |stage, why: &str| Some(Failure { stage, why: why.to_owned() });
    record.lives.push(Life { failure: failure(Stage::Gate, "missed a core check"), ..life("refused", 1, 7) });
    record
        .lives
        .push(Life { failure: failure(Stage::Start, "exited with status 3: \u{1b}[31mno port"), ..life("dead", 1, 8) });
    record.lives.push(Life { failure: failure(Stage::Load, "killed by signal 9"), ..life("elysia-bun", 1, 9) });
    record
}

#[test]
fn a_quick_run() {
    insta::assert_snapshot!(terminal(&one_round(), Look { width: 100, colour: false }));
}

#[test]
fn a_quick_run_on_a_narrow_terminal() {
    insta::assert_snapshot!(terminal(&one_round(), Look { width: 72, colour: false }));
}

#[test]
fn a_run_with_every_kind_of_trouble() {
    insta::assert_snapshot!(terminal(&troubled(), Look { width: 110, colour: false }));
}

#[test]
fn a_run_with_every_kind_of_trouble_as_markdown() {
    insta::assert_snapshot!(markdown(&troubled()));
}

#[test]
fn ten_rounds_have_intervals_and_verdicts() {
    let mut record = ten_rounds();
    void(edit(&mut record, "express-node", "user"), "checkpoint", "1 checkpoint ran");
    insta::assert_snapshot!(markdown(&record));
}

#[test]
fn a_peer_ahead_of_us_is_said_loudly() {
    let mut record = one_round();
    edit(&mut record, "elysia-bun-sql", "user").requests_per_s = Some(66_000.0);
    let text = terminal(&record, Look { width: 500, colour: false });
    let loud: Vec<&str> = text.lines().filter(|line| line.starts_with("!!")).collect();
    assert_eq!(
        loud,
        ["!! elysia-bun-sql served 1.10× the requests of native on user at 100 connections, in 1 of 1 rounds more: \
          this is a bug in our server until shown otherwise (one round proves little: measure again with --profile standard)"]
    );
    assert!(!terminal(&one_round(), Look::default()).contains("!!"));
}

#[test]
fn windows_whose_statements_nobody_counted_are_named() {
    let mut record = ten_rounds();
    record.lives.remove(3);
    record.lives[0].transactions = None;
    let text = markdown(&record);
    assert!(text.contains("open, for: elysia-bun round 1, elysia-bun-sql round 1, "), "{text}");
    assert!(text.contains("native-sqlx round 4.") && !text.contains("express-node round 2"), "{text}");
}

#[test]
fn a_hundred_failed_checks_are_three_and_a_number() {
    let mut record = troubled();
    let gate = record.run.gates.get_mut("refused").unwrap();
    gate.core_failures = vec![gate.core_failures[0].clone(); 100];
    let text = terminal(&record, Look { width: 5_000, colour: false });
    let line = text.lines().find(|line| line.contains("refused did not pass the gate")).unwrap();
    assert!(line.contains("100 core checks failed") && line.ends_with("97 more in run.json"), "{line}");
    assert_eq!(line.matches("expected 422").count(), 3);
}

#[test]
fn a_debug_build_is_said_loudly() {
    let mut record = one_round();
    record.run.debug_build = true;
    assert!(terminal(&record, Look::default()).contains("!! headroom was a debug build"));
}

#[test]
fn a_busy_host_is_named_before_the_empty_tables() {
    let mut record = one_round();
    let all = record.windows.len();
    for window in record.windows.iter_mut().take(all / 2 + 1) {
        void(window, "foreign_cpu", "60.0 % of the host went to other processes, at most 5.0 % may");
    }
    let text = terminal(&record, Look { width: 500, colour: false });
    assert!(text.contains("!! 22 of 42 windows are void because others used"), "{text}");
    void(edit(&mut record, "express-node", "cpu"), "checkpoint", "1");
    record.windows.iter_mut().take(2).for_each(|window| window.valid = true);
    record.windows.iter_mut().take(2).for_each(|window| window.invalid_reasons.clear());
    assert!(!terminal(&record, Look::default()).contains("!!"));
}

#[test]
fn ratios_never_mix_cores() {
    let record = one_round();
    let all = &record.run.servers[2];
    assert!(figures::base_of(&record, all).is_none() && figures::is_base(&record, all));
    let cluster = Server { cores: Cores::All, ..peer("express-cluster", "node", "express", "postgres.js") };
    assert_eq!(figures::base_of(&record, &cluster).unwrap().name, "native-all");
    assert_eq!(figures::base_of(&record, &record.run.servers[5]).unwrap().name, "native");
}

#[test]
fn a_step_changes_one_layer() {
    let servers = servers();
    let names: Vec<(&str, &str, &str)> =
        steps::steps(&servers).iter().map(|s| (s.from.name.as_str(), s.to.name.as_str(), s.layer)).collect();
    assert_eq!(names, [("native-sqlx", "native", "driver"), ("elysia-bun", "elysia-bun-sql", "driver")]);
}

#[test]
fn steps_of_a_suite_multiply_into_the_overall_ratio() {
    let step = |from: &str, to: &str| Step { from: from.to_owned(), to: to.to_owned(), changes: "a layer".to_owned() };
    let mut record = ten_rounds();
    record.run.settings.steps = vec![
        step("express-node", "elysia-bun"),
        step("elysia-bun", "elysia-bun-sql"),
        step("native-sqlx", "native"),
        step("native", "native-all"),
    ];
    assert_eq!(steps::chains(&record.run.settings.steps).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    // A void round leaves the product and the direct ratio with other rounds.
    void(edit(&mut record, "elysia-bun", "user"), "steal", "3 % of the host was stolen");
    let text = markdown(&record);
    let from = text.find("## Steps").unwrap();
    let to = from + text[from..].find("between servers of equal cores").unwrap();
    insta::assert_snapshot!(text[from..to].trim_end());
}

#[test]
fn records_stand_side_by_side_and_are_never_divided_by_each_other() {
    let mut other = ten_rounds();
    other.run.host = serde_json::json!({ "cpu_model": "Another CPU", "logical_cpus": 8, "allowed_cpu_count": 4 });
    other.run.servers.retain(|server| server.name != "elysia-bun");
    other.run.servers.push(peer("fastify-node", "node", "fastify", "postgres.js"));
    other.windows.retain(|window| window.route != "health" || window.server != "express-node");
    let text = beside_markdown(&[("here", &one_round()), ("there", &other)]);
    insta::assert_snapshot!(text);
}

#[test]
fn a_summary_is_the_first_table_with_where_it_comes_from() {
    insta::assert_snapshot!(summary(&ten_rounds()));
}

#[test]
fn a_round_counts_in_a_ratio_only_where_both_are_valid() {
    let mut record = ten_rounds();
    void(edit(&mut record, "native", "user"), "steal", "3 % of the host was stolen");
    let of = |name| figures::Cell::of(&record, name, "user", 100);
    assert_eq!(figures::headroom(&of("native"), &of("express-node")).unwrap().rounds, 9);
    assert_eq!(figures::headroom(&of("express-node"), &of("elysia-bun")).unwrap().rounds, 10);
}

#[test]
fn an_empty_record_is_a_report_too() {
    let empty = record(run(servers(), &ROUTES, "quick", 1), Vec::new(), Vec::new());
    let text = terminal(&empty, Look::default());
    assert!(text.contains("0 of 42 cells are measured"), "{text}");
    for word in ["NaN", "inf"] {
        assert!(!text.contains(word) && !markdown(&empty).contains(word));
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80, 100, 132] {
        let text = terminal(&one_round(), Look { width, colour: false });
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn colour_only_where_asked_and_never_from_a_server() {
    assert!(!terminal(&troubled(), Look { width: 100, colour: false }).contains('\u{1b}'));
    let text = terminal(&troubled(), Look { width: 100, colour: true });
    assert!(text.contains("\u{1b}[1m") && !text.contains("\u{1b}[31m"));
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let read = |record: &Record| (terminal(record, Look::default()), markdown(record));
    assert_eq!(read(&troubled()), read(&troubled()));
}
