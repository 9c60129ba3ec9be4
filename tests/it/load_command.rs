//! `headroom load` as it is typed.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use serde_json::Value;

use crate::load::sockets::{Reply, Server, exchange};
use crate::support;

const OK: &str = crate::load::sockets::OK;

fn load(arguments: &[&str]) -> Output {
    Command::new(support::headroom()).arg("load").args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

fn json(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = load(&[arguments, &["--json"]].concat());
    let value = serde_json::from_slice(&output.stdout);
    (output.status.code(), value.unwrap_or_else(|_| panic!("no JSON: {output:?}")))
}

fn refusal(arguments: &[&str]) -> String {
    let output = load(arguments);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{said}");
    said
}

/// Answers everything, and keeps the first line of each request with its body.
fn listener() -> (Server, &'static Mutex<Vec<String>>) {
    let heard: &'static Mutex<Vec<String>> = Box::leak(Box::default());
    let server = Server::start(move |mut stream, seen| {
        exchange(&mut stream, seen, |_, request| {
            let (start, body) = request.split_once("\r\n\r\n").expect("a whole request");
            let line = start.lines().next().unwrap_or_default();
            heard.lock().expect("no panic").push(format!("{line} {body}"));
            Some(Reply::from(OK))
        });
    });
    (server, heard)
}

#[test]
fn places_in_target_and_body_are_drawn() {
    let (server, heard) = listener();
    let url = format!("http://{}/u/{{id:1..3}}?k={{kind:a,b}}", server.address);
    let (code, report) = json(&[&url, "-c", "2", "-d", "100ms", "-b", r#"{"n":{n:7..8}}"#, "--seed", "3"]);
    assert_eq!((code, report["valid"].as_bool()), (Some(0), Some(true)), "{report}");
    let mut heard = heard.lock().expect("no panic").clone();
    heard.sort_unstable();
    heard.dedup();
    assert_eq!(heard.len(), 12, "{heard:?}");
    assert_eq!(heard[0], r#"POST /u/1?k=a HTTP/1.1 {"n":7}"#);
}

#[test]
fn targets_come_from_a_file_with_their_weights() {
    let (server, heard) = listener();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mix.txt");
    fs::write(&file, "# mostly reads\n9 GET /read/{id:1..50}\n\n1 POST /write {\"id\":{id:1..50}}\n").expect("written");
    let url = format!("http://{}", server.address);
    let file = file.to_str().expect("UTF-8");
    let (code, report) = json(&[&url, "-c", "4", "-d", "300ms", "--targets", file]);
    assert_eq!(code, Some(0), "{report}");
    let heard = heard.lock().expect("no panic");
    let reads = heard.iter().filter(|line| line.starts_with("GET /read/")).count();
    let share = reads as f64 / heard.len() as f64;
    assert!((0.8..0.97).contains(&share), "{reads} of {}", heard.len());
    assert!(heard.iter().filter(|line| line.starts_with("POST")).all(|line| line.contains("{\"id\":")));
}

#[test]
fn an_open_loop_reports_its_parts() {
    let (server, _) = listener();
    let url = format!("http://{}/", server.address);
    let (_, report) = json(&[&url, "-c", "4", "-d", "200ms", "--rate", "500"]);
    let open = &report["open_loop"];
    assert_eq!((open["rate"].as_f64(), open["scheduled"].as_u64()), (Some(500.0), Some(100)), "{report}");
    for part in ["service_ns", "lag_ns", "gap_ns"] {
        assert!(open[part]["p50"].as_u64().is_some(), "{part}: {report}");
    }
    assert!(report["connect_ns"]["max"].as_u64() > Some(0), "{report}");
    let text = load(&[&url, "-c", "4", "-d", "200ms", "--rate", "500"]);
    let text = String::from_utf8(text.stdout).expect("UTF-8");
    for word in ["service", "lag", "gap", "Open loop at 500 requests/s", "Connecting took"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn conditions_decide_the_exit_code() {
    let (server, _) = listener();
    let url = format!("http://{}/", server.address);
    let with = |conditions: &[&str]| {
        let mut arguments = vec![url.as_str(), "-c", "2", "-d", "100ms"];
        arguments.extend(conditions.iter().flat_map(|condition| ["--fail-if", condition]));
        json(&arguments)
    };
    let (code, report) = with(&["p50>1s", "errors>0"]);
    assert_eq!((code, report["failed_if"].as_array().map(Vec::len)), (Some(0), Some(0)), "{report}");
    let (code, report) = with(&["p50>1s", "rate<1000000", "max>1ns"]);
    assert_eq!((code, report["failed_if"].as_array().map(Vec::len)), (Some(1), Some(2)), "{report}");
    assert!(report["failed_if"][0].as_str().is_some_and(|text| text.starts_with("rate<1000000: rate is ")));
    let text = load(&[&url, "-c", "2", "-d", "100ms", "--fail-if", "max>1ns"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("FAILED max>1ns: max is "), "{text:?}");
    assert!(refusal(&[&url, "--fail-if", "p98>1ms"]).contains("use one of p50"));
}

#[test]
fn the_distribution_is_a_table_and_a_log() {
    let (server, _) = listener();
    let url = format!("http://{}/", server.address);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("load.hlog");
    let output = load(&[
        &url,
        "-c",
        "100",
        "-d",
        "200ms",
        "--rate",
        "500",
        "--percentiles",
        "--hdr-log",
        file.to_str().expect("UTF-8"),
    ]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.contains("Latency distribution") && text.contains("50.00000 %"), "{text}");
    // Ten of a hundred requests lie beyond 87.5 %, and fewer beyond the next half.
    assert!(text.contains("87.50000 %") && !text.contains("93.75000 %"), "{text}");
    let log = fs::read(&file).expect("written");
    let mut deserializer = hdrhistogram::serialization::Deserializer::new();
    let mut found = Vec::new();
    for entry in hdrhistogram::serialization::interval_log::IntervalLogIterator::new(&log) {
        use base64::Engine as _;
        use hdrhistogram::serialization::interval_log::LogEntry;
        if let LogEntry::Interval(interval) = entry.expect("a log that can be read") {
            let bytes = base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram()).expect("base64");
            let histogram: hdrhistogram::Histogram<u64> =
                deserializer.deserialize(&mut bytes.as_slice()).expect("a histogram");
            found.push((interval.tag().map(|tag| tag.as_str().to_owned()), histogram.len()));
        }
    }
    let tagged = |tag: &str| (Some(tag.to_owned()), 100);
    assert_eq!(found, [(None, 100), tagged("service"), tagged("lag")]);
    let nowhere = refusal(&[&url, "-d", "50ms", "--hdr-log", "/nowhere/x.hlog"]);
    assert!(nowhere.contains("--hdr-log /nowhere/x.hlog"), "{nowhere}");
}

#[test]
fn the_search_for_the_capacity_shows_every_window() {
    let (server, _) = listener();
    let url = format!("http://{}/", server.address);
    let (code, report) = json(&[&url, "-c", "4", "-d", "50ms", "--capacity", "p50<10s"]);
    let probes = report["probes"].as_array().expect("a list");
    assert!(!probes.is_empty() && report["ceiling_per_s"].as_f64() > Some(0.0), "{report}");
    assert_eq!(code, Some(i32::from(report["capacity_per_s"].is_null())), "{report}");
    // Every rate that was tried has its place on the curve, and the one found is among them.
    let (low, high) = probes
        .iter()
        .filter_map(|probe| probe["rate"].as_f64())
        .fold((f64::MAX, f64::MIN), |(low, high), rate| (low.min(rate), high.max(rate)));
    assert!(probes.iter().all(|probe| probe["requests_per_s"].is_number()), "{report}");
    assert!(report["capacity_per_s"].as_f64().is_none_or(|found| low <= found && found <= high), "{report}");
    // No server answers before it is asked.
    let output = load(&[&url, "-c", "4", "-d", "100ms", "--capacity", "p50<1ns"]);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Capacity: no rate kept p50<1ns"), "{text}");
    assert!(refusal(&[&url, "--capacity", "rate>1"]).contains("no objective"));
}

#[test]
fn cpus_are_kept_to_or_refused() {
    let (server, _) = listener();
    let url = format!("http://{}/", server.address);
    let first = headroom::host::allowed_cpus().expect("known")[0].to_string();
    assert_eq!(json(&[&url, "-c", "2", "-d", "50ms", "--cpus", &first]).0, Some(0));
    assert!(refusal(&[&url, "--cpus", "1023"]).contains("--cpus 1023"));
    assert!(refusal(&[&url, "--cpus", "x"]).contains("0,2-3"));
}

#[test]
fn input_that_cannot_be_sent_is_refused_before_anything_is() {
    let (server, heard) = listener();
    let url = format!("http://{}/", server.address);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("targets");
    fs::write(&file, "GET /\nGET\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    for (arguments, says) in [
        (&["--targets", file][..], "line 2"),
        (&["--targets", "/nowhere"], "--targets /nowhere"),
        (&["--targets", file, "-b", "x"], "cannot be used with"),
        (&["--rate", "0"], "cannot be kept"),
        (&["--rate", "x"], "--rate"),
        (&["--rate", "5", "--capacity", "p99<1s"], "cannot be used with"),
        (&["-b", "{n:2..1}"], "empty"),
        (&["-d", "0"], "-d 0"),
    ] {
        let said = refusal(&[&[url.as_str()], arguments].concat());
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    let with_path = format!("{url}x");
    assert!(refusal(&[&with_path, "--targets", file]).contains("without /x"));
    assert!(heard.lock().expect("no panic").is_empty());
}

#[test]
fn headers_are_taken_or_refused() {
    let seen: &'static Mutex<String> = Box::leak(Box::default());
    let server = Server::start(move |mut stream, noted| {
        exchange(&mut stream, noted, |_, request| {
            seen.lock().expect("no panic").clone_from(&request.to_owned());
            Some(Reply::from(OK))
        });
    });
    let url = format!("http://{}/", server.address);
    assert_eq!(json(&[&url, "-c", "1", "-d", "50ms", "-H", "x-a:b", "-H", "Host: other"]).0, Some(0));
    let request = seen.lock().expect("no panic").clone();
    assert!(request.contains("x-a: b\r\n") && request.contains("Host: other\r\n"), "{request}");
    assert_eq!(request.to_lowercase().matches("host:").count(), 1, "{request}");
    assert!(refusal(&[&url, "-H", "novalue"]).contains("novalue"));
}

#[test]
fn a_server_that_only_fails_has_no_figures_and_exit_code_1() {
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, _| Some("HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".into()));
    });
    let (code, report) = json(&[&format!("http://{}/", server.address), "-c", "2", "-d", "100ms"]);
    assert_eq!((code, report["requests_ok"].as_u64(), &report["latency_ns"]["min"]), (Some(1), Some(0), &Value::Null));
    assert!(report["errors"]["status"].as_u64() > Some(0) && report["first_failure"]["reply"].is_string(), "{report}");
}
