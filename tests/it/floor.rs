//! The floors, as a user starts them.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::support::{self, TestDatabase};

fn json(arguments: &[&str]) -> Value {
    let output =
        Command::new(support::headroom()).arg("floor").args(arguments).arg("--json").output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_responder_answers_every_route_of_the_driver_and_ends_on_a_signal() {
    for route in ["health", "echo", "me", "user", "list", "cpu"] {
        let mut responder = Command::new(support::headroom())
            .args(["floor", "http", "--listen", "127.0.0.1:0", "--route", route])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut line = String::new();
        BufReader::new(responder.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening on ").expect("its address");
        let load = ["load", url, "--route", route, "--fixed", "-c", "7", "-d", "100ms", "--json"];
        let output = Command::new(support::headroom()).args(load).output().expect("the driver runs");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(report["requests_ok"].as_u64() > Some(0), "{route}: {report}");
        assert_eq!(report["errors"], serde_json::json!({}), "{route}");
        kill(Pid::from_raw(i32::try_from(responder.id()).expect("a pid")), Signal::SIGTERM).expect("it runs");
        assert_eq!(responder.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn statements_are_counted_with_their_cost_on_both_sides() {
    let database = TestDatabase::new();
    for route in ["user", "list", "order"] {
        let arguments = ["postgres", "--route", route, "-c", "50", "-d", "200ms", "--database-url", database.url()];
        let report = json(&arguments);
        assert!(report["statements"].as_u64() > Some(0), "{report}");
        assert!(report["client_cpu_ns_per_statement"].as_f64() > Some(0.0), "{report}");
    }
    // What the floor inserted is gone again.
    let mut database = headroom::postgres::Database::connect(database.url()).expect("a marked database");
    assert_eq!(database.order_count().expect("a count"), 200_000);
}

#[test]
fn hashing_is_counted() {
    let report = json(&["hash", "-d", "1ms"]);
    assert!(report["chains"].as_u64() > Some(0) && report["threads"] == 1, "{report}");
    assert_eq!(report["hash"], "b33317277fdbfa5b5acd01754aa83301c763d35e173df7940f21f624992541a4");
}

#[test]
fn what_has_no_floor_is_refused_in_one_line() {
    for (arguments, wanted) in [
        (&["postgres", "--route", "cpu"][..], "--route cpu"),
        (&["postgres", "-c", "0"], "--in-flight"),
        (&["hash", "-t", "0"], "--threads 0"),
        (&["http", "--listen", "0.0.0.0:0"], "loopback"),
    ] {
        let output = Command::new(support::headroom()).arg("floor").args(arguments).output().expect("it runs");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
        assert!(stderr.contains(wanted), "{stderr}");
    }
}
