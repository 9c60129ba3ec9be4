//! The gate as a user asks for it: a part of it, its list, its report, its exit codes.

use std::process::{Command, Output};

use serde_json::Value;

use crate::served::on_our_front;
use crate::support;

fn parity(arguments: &[&str]) -> Output {
    let mut command = Command::new(support::headroom());
    command.arg("parity").args(arguments).env_remove("JWT_SECRET").output().expect("the binary runs")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn a_part_of_the_gate_says_that_it_is_one() {
    on_our_front(|server| {
        let url = format!("http://{}", server.address);
        let output = parity(&[&url, "--only", "health", "--only", "user-missing-not-404", "--seed", "5"]);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert!(text.starts_with("gate not asked: ") && text.contains("left out") && text.contains("seed 5"), "{text}");
        let output = parity(&[&url, "--only", "health", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&report["passed"], report["left_out"].as_u64() > Some(50)), (&Value::Null, true), "{report}");
        let output = parity(&[&url, "--core", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!((&report["passed"], &report["left_out"]), (&Value::Bool(true), &0.into()), "{report}");
        assert_eq!(report["strict"]["passed"], 0, "{report}");
    });
}

#[test]
fn orders_asked_for_by_name_bring_the_reads_that_allow_them() {
    on_our_front(|server| {
        let url = format!("http://{}", server.address);
        let output = parity(&[&url, "--only", "order-reply-differs", "--json"]);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let ids: Vec<&str> =
            report["outcomes"].as_array().expect("a list").iter().filter_map(|o| o["id"].as_str()).collect();
        assert!(ids.contains(&"order-reply-differs") && ids.contains(&"user-row-differs"), "{ids:?}");
        assert_eq!(output.status.code(), Some(0), "{report}");
    });
}

#[test]
fn a_failure_shows_what_was_sent_and_what_came_back() {
    on_our_front(|server| {
        let url = format!("http://{}", server.address);
        let folder = tempfile::tempdir().expect("a folder");
        let junit = folder.path().join("report.xml");
        let mut command = Command::new(support::headroom());
        command.args(["parity", &url, "--only", "me", "--junit"]).arg(&junit).env("JWT_SECRET", "another secret");
        let output = command.output().expect("the binary runs");
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("          > GET /me HTTP/1.1") && text.contains("          < HTTP/1.1 401"), "{text}");
        let xml = std::fs::read_to_string(&junit).expect("a report");
        assert!(xml.contains("classname=\"me\"") && xml.contains("<failure message="), "{xml}");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing beside the report");
    });
}

#[test]
fn the_list_has_every_check_and_what_it_sends() {
    let output = parity(&["--list"]);
    let text = text(&output);
    let last = text.lines().last().expect("a summary");
    assert_eq!(output.status.code(), Some(0), "{text}");
    let counts: Vec<usize> = last.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert_eq!(counts.iter().sum::<usize>(), text.lines().count() - 1, "{last}");
    let output = parity(&["--list", "--json", "--only", "echo", "--seed", "3"]);
    let checks: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = checks.as_array().expect("a list");
    assert!(checks.iter().all(|check| check["id"].as_str().is_some_and(|id| id.starts_with("echo-"))));
    assert!(checks[0]["exchanges"][0]["request"].as_str().is_some_and(|request| request.starts_with("POST /echo")));
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("UTF-8");
    for (arguments, named) in [
        (&["http://127.0.0.1:1", "--only", "nothing"][..], "\"nothing\""),
        (&["--list", "--only", "user-"], "\"user-\""),
        (&["http://127.0.0.1:1", "--junit", folder], "no file"),
        (&["http://127.0.0.1:1", "--junit", "/nonexistent/report.xml"], "/nonexistent/report.xml"),
    ] {
        let output = parity(arguments);
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{arguments:?}: {stderr}");
        assert!(stderr.contains(named), "{arguments:?}: {stderr}");
    }
}
