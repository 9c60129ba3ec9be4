//! Records on a real disk: torn, from the future, full.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::sample::{life, native, record, run, window};
use super::*;

fn a_run() -> Run {
    run(vec![native("native", "tokio-postgres", Cores::One)], &["user"], "quick", 1)
}

fn written(windows: &[Window]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(dir.path(), &a_run()).unwrap();
    for window in windows {
        writer.append_window(window).unwrap();
    }
    dir
}

fn append(dir: &TempDir, name: &str, text: &str) {
    fs::OpenOptions::new().append(true).open(dir.path().join(name)).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn what_is_written_is_read_back() {
    let windows = [window("native", "user", 1, 60_000.0), window("native", "user", 2, 61_000.0)];
    let dir = written(&windows);
    let (mut writer, _) = Writer::resume(dir.path()).unwrap();
    writer.append_life(&life("native", 1, 1)).unwrap();
    let expected = record(a_run(), windows.to_vec(), vec![life("native", 1, 1)]);
    assert_eq!(Record::read(dir.path()).unwrap(), expected);
}

#[test]
fn unknown_values_are_null_and_never_zero_or_nan() {
    let mut dead = window("native", "user", 1, 1.0);
    dead.requests_ok = 0;
    dead.requests_per_s = finite(f64::from(0) / f64::from(0));
    dead.latency_ns = Latency::default();
    dead.cpu_ns_per_request.server = None;
    let dir = written(&[dead.clone()]);
    let text = fs::read_to_string(dir.path().join(WINDOWS_FILE)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["requests_per_s"].is_null() && json["latency_ns"]["p99"].is_null(), "{text}");
    assert!(json["cpu_ns_per_request"]["server"].is_null(), "{text}");
    assert_eq!(Record::read(dir.path()).unwrap().windows, [dead]);
}

#[test]
fn a_torn_last_line_is_left_out_and_mended_on_resume() {
    let dir = written(&[window("native", "user", 1, 60_000.0)]);
    append(&dir, WINDOWS_FILE, r#"{"schema":1,"server":"nat"#);
    let read = Record::read(dir.path()).unwrap();
    assert_eq!((read.windows.len(), read.torn), (1, true));
    let (mut writer, _) = Writer::resume(dir.path()).unwrap();
    writer.append_window(&window("native", "user", 2, 61_000.0)).unwrap();
    let read = Record::read(dir.path()).unwrap();
    assert_eq!((read.windows.len(), read.windows[1].round, read.torn), (2, 2, false));
}

#[test]
fn a_whole_last_line_without_its_newline_is_kept() {
    let dir = written(&[window("native", "user", 1, 60_000.0)]);
    let path = dir.path().join(WINDOWS_FILE);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.trim_end()).unwrap();
    let (mut writer, before) = Writer::resume(dir.path()).unwrap();
    assert_eq!(before.windows.len(), 1);
    writer.append_window(&window("native", "user", 2, 61_000.0)).unwrap();
    assert_eq!(Record::read(dir.path()).unwrap().windows.len(), 2);
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_that_names_it() {
    let dir = written(&[window("native", "user", 1, 60_000.0)]);
    append(&dir, WINDOWS_FILE, "{\"schema\":1\n");
    let error = Record::read(dir.path()).unwrap_err();
    assert!(format!("{error:#}").contains("windows.jsonl line 2"), "{error:#}");
}

#[test]
fn keys_from_the_future_are_ignored_and_a_newer_schema_is_refused() {
    let dir = written(&[]);
    let mut row = serde_json::to_value(window("native", "user", 1, 60_000.0)).unwrap();
    row["energy_j"] = 12.into();
    append(&dir, WINDOWS_FILE, &format!("{row}\n"));
    assert_eq!(Record::read(dir.path()).unwrap().windows.len(), 1);
    row["schema"] = (SCHEMA + 1).into();
    append(&dir, WINDOWS_FILE, &format!("{row}\n"));
    let error = format!("{:#}", Record::read(dir.path()).unwrap_err());
    assert!(error.contains("windows.jsonl line 2: schema 2 is newer than 1"), "{error}");
}

#[test]
fn a_newer_run_is_refused_even_where_its_shape_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(RUN_FILE), r#"{"schema": 99, "conditions": []}"#).unwrap();
    let error = format!("{:#}", Record::read(dir.path()).unwrap_err());
    assert!(error.contains("run.json: schema 99 is newer"), "{error}");
}

#[test]
fn a_folder_without_a_record_and_a_folder_with_one_are_told_apart() {
    let empty = tempfile::tempdir().unwrap();
    assert!(Record::read(empty.path()).unwrap_err().to_string().contains("holds no record"));
    let full = written(&[]);
    assert!(Writer::create(full.path(), &a_run()).unwrap_err().to_string().contains("holds a record already"));
}

#[test]
fn a_full_disk_is_one_line_that_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    symlink("/dev/full", dir.path().join(WINDOWS_FILE)).unwrap();
    let mut writer = Writer::create(dir.path(), &a_run()).unwrap();
    let error = writer.append_window(&window("native", "user", 1, 60_000.0)).unwrap_err().to_string();
    assert!(error.contains("windows.jsonl: No space left"), "{error}");
    assert!(error.contains("--resume") && !error.contains('\n'), "{error}");
}

#[test]
fn a_verdict_on_a_life_voids_its_windows_on_those_routes_only() {
    let other_life = Window { life: 2, ..window("native", "user", 1, 60_000.0) };
    let health = window("native", "health", 1, 60_000.0);
    let dir = written(&[window("native", "user", 1, 60_000.0), health, other_life]);
    let (mut writer, _) = Writer::resume(dir.path()).unwrap();
    let reason = Reason::new("too_few_statements", "10 statements for 240,000 replies");
    let void = Void { routes: vec!["user".to_owned()], reason: reason.clone() };
    writer.append_life(&Life { voids: vec![void], ..life("native", 1, 1) }).unwrap();
    let read = Record::read(dir.path()).unwrap();
    assert_eq!(read.windows.iter().map(|window| window.valid).collect::<Vec<_>>(), [false, true, true]);
    assert_eq!(read.windows[0].invalid_reasons, [reason]);
}

#[test]
fn run_json_is_replaced_as_a_whole() {
    let dir = written(&[]);
    let (writer, mut before) = Writer::resume(dir.path()).unwrap();
    before.run.gates.clear();
    writer.replace_run(&before.run).unwrap();
    assert!(Record::read(dir.path()).unwrap().run.gates.is_empty());
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

/// Every key of a value, those inside objects and lists included; not those of maps whose keys are data.
fn keys(value: &serde_json::Value, found: &mut Vec<String>) {
    const DATA: [&str; 5] = ["versions", "gates", "errors", "statuses", "host"];
    match value {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                found.push(name.clone());
                let postgres_settings = name == "settings" && value.get("profile").is_none();
                if !DATA.contains(&name.as_str()) && !postgres_settings {
                    keys(value, found);
                }
            }
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn every_key_is_documented() {
    let format = include_str!("../../bench/FORMAT.md");
    let reason = Reason::new("foreign_cpu", "9 %");
    let mut void = window("native", "user", 1, 1.0);
    void.invalidate(&reason);
    let difference = Difference { id: String::new(), proves: String::new(), difference: String::new() };
    let gate = Gate {
        passed: false,
        checks: 1,
        core_failures: vec![difference.clone()],
        strict_differences: vec![difference],
        error: None,
    };
    let ended = Life {
        voids: vec![Void { routes: vec!["user".to_owned()], reason }],
        failure: Some(Failure { stage: Stage::Load, why: String::new() }),
        ..life("native", 1, 1)
    };
    let rows = [
        serde_json::to_value(a_run()).unwrap(),
        serde_json::to_value(void).unwrap(),
        serde_json::to_value(ended).unwrap(),
        serde_json::to_value(gate).unwrap(),
    ];
    let mut found = Vec::new();
    for row in &rows {
        keys(row, &mut found);
    }
    let missing: Vec<&String> = found.iter().filter(|key| !format.contains(&format!("`{key}`"))).collect();
    assert!(found.len() > 80 && missing.is_empty(), "{} keys, not in FORMAT.md: {missing:?}", found.len());
}
