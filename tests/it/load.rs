//! The load driver against servers that behave, and against servers that do not: raw sockets, one thread a connection.

#[path = "load/faults.rs"]
mod faults;
#[path = "load/life.rs"]
mod life;
#[path = "load/open.rs"]
mod open;
#[path = "load/sockets.rs"]
pub(crate) mod sockets;
#[path = "load/traps.rs"]
mod traps;

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use headroom::contract::{self, Expected, Route, Variety};
use headroom::interrupt::Interrupt;
use headroom::load::{Config, Engine, ErrorKind, Report, Request, Window, judge, render, text};

use sockets::{OK, Server, exchange};

/// Long enough for thousands of requests, short enough to run every test each time.
const WINDOW: Duration = Duration::from_millis(200);
/// After a window, for what starved connections are still owed.
const DRAIN: Duration = Duration::from_secs(1);
/// Longer than any test lasts: a test that hangs ends by this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

fn get(target: &str) -> Request {
    Request { method: "GET".into(), target: target.into(), headers: Vec::new(), body: Vec::new(), expected: None }
}

/// Four connections over two threads.
fn config(server: &Server) -> Config {
    Config {
        endpoint: server.address.into(),
        host: server.address.to_string(),
        connections: 4,
        threads: 2,
        timeout: PATIENCE,
        drain: DRAIN,
        requests: vec![get("/")],
        success_status: None,
        check_every: 0,
        keeps_alive: true,
        spins: false,
    }
}

fn run(config: Config) -> Window {
    Engine::start(config, &Interrupt::default()).unwrap().run(WINDOW, &Interrupt::default()).unwrap()
}

fn errors(window: &Window) -> Vec<ErrorKind> {
    window.errors.keys().copied().collect()
}

fn poll_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// Nothing speaks against it, and it saw replies.
fn assert_valid(window: &Window) {
    assert_eq!(judge(window, None), [], "{window:?}");
    assert_eq!(window.latency_histogram_ns.len(), window.requests_ok + window.drained);
    assert_eq!(window.ok_per_second.iter().sum::<u64>(), window.requests_ok);
}

#[test]
fn what_the_driver_counts_is_what_the_server_answered() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    let window = run(config(&server));
    assert_valid(&window);
    assert_eq!(window.requests_ok + window.drained, server.requests());
    assert_eq!((window.connections_open, server.connections()), (4, 4));
    assert_eq!((window.unfinished, window.reconnects, window.closed_by_server), (0, 0, 0));
    assert!(window.bytes_read >= window.requests_ok * OK.len() as u64);
    assert!(window.bytes_written > 0 && window.driver.cpu_ns_per_request.is_some_and(|cpu_ns| cpu_ns > 0));
    let (min, max) = (window.latency_ns.min.unwrap(), window.latency_ns.max.unwrap());
    assert!(min > 0 && min <= window.latency_ns.p50.unwrap() && window.latency_ns.p50.unwrap() <= max);
    let report = Report::new("http://x/", "x", 2, &window, &[]);
    assert!(text::render(&report).ends_with("VALID\n"));
}

#[test]
fn connections_are_spread_exactly_and_stay_over_several_windows() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    let mut engine =
        Engine::start(Config { connections: 15, threads: 8, ..config(&server) }, &Interrupt::default()).unwrap();
    for _ in 0..3 {
        let window = engine.run(WINDOW, &Interrupt::default()).unwrap();
        assert_valid(&window);
        assert_eq!((window.connections_asked, window.connections_open), (15, 15));
    }
    assert_eq!(server.connections(), 15);
}

#[test]
fn every_connection_begins_with_another_request() {
    let first = std::sync::Arc::new(Mutex::new(HashSet::new()));
    let noted = std::sync::Arc::clone(&first);
    let server = Server::start(move |mut stream, seen| {
        exchange(&mut stream, seen, |k, head| {
            if k == 0 {
                noted.lock().unwrap().insert(head.lines().next().unwrap().to_owned());
            }
            Some(OK.into())
        });
    });
    let requests = ["/0", "/1", "/2", "/3"].map(get).to_vec();
    assert_valid(&run(Config { requests, ..config(&server) }));
    assert_eq!(first.lock().unwrap().len(), 4);
}

#[test]
fn every_legal_framing_counts() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nx-trailer: 1\r\n\r\n";
    let interim = format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n{OK}");
    for reply in [chunked.to_owned(), "HTTP/1.1 204 No Content\r\n\r\n".to_owned(), interim] {
        for piece in [usize::MAX, 1] {
            let reply = reply.clone();
            let server = Server::start(move |mut stream, seen| {
                exchange(&mut stream, seen, |_, _| Some(sockets::Reply::pieces(&reply, piece)));
            });
            assert_valid(&run(config(&server)));
        }
    }
}

#[test]
fn head_has_no_body_whatever_its_length_says() {
    let reply = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n";
    let server = Server::start(move |mut stream, seen| exchange(&mut stream, seen, |_, _| Some(reply.into())));
    let requests = vec![Request { method: "HEAD".into(), ..get("/") }];
    assert_valid(&run(Config { requests, ..config(&server) }));
}

#[test]
fn a_reply_without_a_length_lasts_until_the_close_and_is_told_apart() {
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, _| Some(sockets::Reply::last("HTTP/1.1 200 OK\r\n\r\nall of it")));
    });
    let window = run(config(&server));
    assert_valid(&window);
    assert_eq!(window.framed_by_close, window.requests_ok + window.drained);
    assert_eq!(window.closed_by_server, window.requests_ok + window.drained);
}

#[test]
fn an_announced_close_is_a_reconnect_and_no_error() {
    let reply = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    let server = Server::start(move |mut stream, seen| {
        exchange(&mut stream, seen, |_, _| Some(sockets::Reply::last(reply)));
    });
    let window = run(config(&server));
    assert_valid(&window);
    assert!(window.requests_ok > 4);
    assert_eq!((window.closed_by_server, window.reconnects), (window.requests_ok + window.drained, 0));
    assert_eq!(window.connections_open, 4);
}

#[test]
fn a_reply_longer_than_every_buffer_counts() {
    let long = format!(
        "HTTP/1.1 200 OK\r\nx-long: {}\r\ncontent-length: 3000000\r\n\r\n{}",
        "h".repeat(30_000),
        "b".repeat(3_000_000)
    );
    for piece in [usize::MAX, 70_001] {
        let reply = long.clone();
        let server = Server::start(move |mut stream, seen| {
            exchange(&mut stream, seen, |_, _| Some(sockets::Reply::pieces(&reply, piece)));
        });
        let window = run(Config { connections: 2, ..config(&server) });
        assert!(window.requests_ok + window.drained > 0 && errors(&window).is_empty(), "{window:?}");
        // Reading it takes several turns, and none of them is the end of the connection.
        assert_eq!((window.closed_by_server, server.connections()), (0, 2));
    }
}

#[test]
fn a_known_delay_is_measured() {
    const DELAY: Duration = Duration::from_millis(20);
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, _| {
            std::thread::sleep(DELAY);
            Some(OK.into())
        });
    });
    let window = run(Config { connections: 20, ..config(&server) });
    assert_valid(&window);
    let delay_ns = u64::try_from(DELAY.as_nanos()).unwrap();
    // The histogram gives the lower end of its step, one part in a thousand.
    assert!(window.latency_ns.min.unwrap() >= delay_ns - delay_ns / 1000);
    assert!(window.latency_ns.p50.unwrap() >= delay_ns);
    assert!(window.requests_per_s <= 20.0 / DELAY.as_secs_f64());
}

#[test]
fn a_reply_after_the_window_is_a_latency_and_no_throughput() {
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, _| {
            std::thread::sleep(WINDOW * 2);
            Some(OK.into())
        });
    });
    let window = run(config(&server));
    assert_eq!((window.requests_ok, window.drained, window.unfinished), (0, 4, 0));
    assert_eq!((window.latency_histogram_ns.len(), window.connections_never_served), (4, 4));
    assert_eq!(judge(&window, None).iter().map(headroom::load::Reason::name).collect::<Vec<_>>(), ["no_success"]);
}

#[test]
fn only_the_status_asked_for_counts() {
    for (success_status, counts) in [(None, true), (Some(200), true), (Some(201), false)] {
        let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
        let window = run(Config { success_status, ..config(&server) });
        assert_eq!(window.requests_ok > 0, counts);
        assert_eq!(window.statuses.keys().copied().collect::<Vec<_>>(), if counts { vec![] } else { vec![200] });
    }
}

#[test]
fn sampled_bodies_are_compared() {
    // One reply in ten is another one.
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |k, _| {
            Some(if k % 10 == 9 { OK.replace("ok", "no") } else { OK.into() }.as_str().into())
        });
    });
    let requests = vec![Request { expected: Some(Expected::Exact(b"ok".to_vec())), ..get("/") }];
    let window = run(Config { requests: requests.clone(), check_every: 1, ..config(&server) });
    let bad = window.errors[&ErrorKind::Body];
    assert_eq!(window.errors, BTreeMap::from([(ErrorKind::Body, bad)]));
    assert_eq!(window.bodies_checked, window.requests_ok + window.drained + bad);
    assert!(window.requests_ok > bad);
    let failure = window.first_failure.as_ref().unwrap();
    assert_eq!((failure.kind, failure.detail.as_str()), (ErrorKind::Body, "expected ok, got no"));
    let sampled = run(Config { requests: requests.clone(), check_every: 7, ..config(&server) });
    assert!(sampled.bodies_checked > 0 && sampled.bodies_checked < sampled.requests_ok);
    assert_eq!(run(Config { requests, check_every: 0, ..config(&server) }).bodies_checked, 0);
}

#[test]
fn the_id_of_every_row_is_compared() {
    // One row in ten is the neighbour's; no body is sampled.
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |k, _| {
            let id = if k % 10 == 9 { 8 } else { 7 };
            let body = format!(r#"{{"id":{id},"name":"User 7"}}"#);
            Some(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_str().into())
        });
    });
    let expected = Expected::Exact(br#"{"id":7,"name":"User 7"}"#.to_vec());
    let requests = vec![Request { expected: Some(expected), ..get("/") }];
    let window = run(Config { requests, ..config(&server) });
    let (bad, good) = (window.errors[&ErrorKind::Body], window.requests_ok + window.drained);
    assert_eq!((bad + good, window.bodies_checked), (server.requests(), 0));
    assert!(good > bad * 5 && bad > 0, "{good} and {bad}");
    assert_eq!(window.first_failure.unwrap().detail, r#"a body that begins {"id":8,"name":"User 7"}, not {"id":7,"#);
}

#[test]
fn requests_of_the_contract_are_sent_with_one_host() {
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, head| {
            let is_sound = head.matches("host: 127.0.0.1:").count() == 1
                && head.starts_with("POST /echo HTTP/1.1\r\n")
                && head.contains("content-type: application/json\r\n");
            is_sound.then(|| sockets::Reply::echo(head))
        });
    });
    let requests = contract::requests(Route::Echo, Variety::Seeded(1), contract::BENCH_SECRET);
    let requests = requests.into_iter().map(render).collect();
    let window = run(Config { requests, check_every: 1, success_status: Some(200), ..config(&server) });
    assert_valid(&window);
    assert_eq!(window.bodies_checked, window.requests_ok + window.drained);
}
