//! The comparison from outside: the documents it promises, the rights it takes.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::Duration;

use headroom::interrupt::Interrupt;
use headroom::load::{Config, Engine, Report, Request, judge};
use headroom::setup::MeasureLock;

/// Answers every request of every connection with 204, one connection after another, until the test ends.
fn canned_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut buffer = [0; 4096];
            // Requests of this test are far smaller than the buffer and never pipelined.
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
                    break;
                }
            }
        }
    });
    address
}

#[test]
fn every_key_of_load_json_is_documented() {
    let address = canned_server();
    let request = Request {
        method: "GET".to_owned(),
        target: "/".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        expected: None,
    };
    let config = Config {
        address,
        host: address.to_string(),
        connections: 1,
        threads: 1,
        timeout: Duration::from_secs(10),
        requests: vec![request],
        success_status: Some(201),
        check_every: 0,
    };
    let window = Engine::start(config).unwrap().run(Duration::from_millis(20), &Interrupt::default()).unwrap();
    let report = Report::new("http://x/", "x", 1, &window, &judge(&window, None));
    let json = serde_json::to_value(report).unwrap();
    // A status that does not count, so that failures and reasons are there too.
    assert!(json["first_failure"].is_object() && json["invalid_reasons"][0].is_object(), "{json}");
    let nested = ["latency_ns", "first_failure", "driver"].map(|name| &json[name]);
    let objects = nested.into_iter().chain([&json, &json["invalid_reasons"][0]]);
    let keys: Vec<&String> = objects.flat_map(|object| object.as_object().unwrap().keys()).collect();
    let format = include_str!("../../bench/FORMAT.md");
    let section = &format[format.find("## headroom load --json").unwrap()..];
    let missing: Vec<&&String> = keys
        .iter()
        .filter(|key| !section.contains(&format!("`{key}`")) && json["latency_ns"].get(key.as_str()).is_none())
        .collect();
    assert!(keys.len() > 40 && missing.is_empty(), "not in FORMAT.md: {missing:?}");
}

#[test]
fn the_right_to_measure_is_not_inherited_by_a_server() {
    let home = tempfile::tempdir().unwrap();
    let held = MeasureLock::take(home.path()).unwrap();
    // Outlives the run that started it, as a server does whose harness was killed.
    let mut server = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    drop(held);
    let again = MeasureLock::take(home.path());
    server.kill().unwrap();
    server.wait().unwrap();
    again.unwrap();
}
