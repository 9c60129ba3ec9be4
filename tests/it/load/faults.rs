//! Servers whose bytes are wrong: each fault is counted under its own name, and nothing hangs.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headroom::interrupt::Interrupt;
use headroom::load::{Config, Engine, ErrorKind, Request, judge};

use super::sockets::{OK, Reply, Server, exchange};
use super::{WINDOW, config, errors, get, poll_until, run};

fn server_with(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |mut stream, seen| exchange(&mut stream, seen, |_, _| Some(reply())))
}

#[test]
fn bytes_after_a_reply_are_surplus() {
    let window = run(config(&server_with(|| format!("{OK}!").as_str().into())));
    assert_eq!((errors(&window), window.requests_ok), (vec![ErrorKind::Surplus], 0));
    assert!(window.first_failure.unwrap().reply.ends_with("ok!"));
}

#[test]
fn two_replies_to_one_request_are_surplus() {
    let window = run(config(&server_with(|| format!("{OK}{OK}").as_str().into())));
    assert_eq!((errors(&window), window.requests_ok), (vec![ErrorKind::Surplus], 0));
}

#[test]
fn bytes_before_any_request_are_an_early_reply() {
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let server = Server::start(move |mut stream, seen| {
        // The driver may have left already: then there is nothing to answer.
        let _ = stream.write_all(OK.as_bytes());
        count.fetch_add(1, Ordering::SeqCst);
        exchange(&mut stream, seen, |_, _| Some(OK.into()));
    });
    // Whether the bytes are met while opening or later depends on their speed; they may not pass.
    let outcome = Engine::start(config(&server), &Interrupt::default()).and_then(|mut engine| {
        poll_until("bytes on every connection", || written.load(Ordering::SeqCst) >= 4);
        engine.run(WINDOW, &Interrupt::default())
    });
    match outcome {
        Ok(window) => assert!(errors(&window).contains(&ErrorKind::EarlyReply), "{window:?}"),
        Err(error) => assert!(error.to_string().contains("before it had the request"), "{error}"),
    }
}

#[test]
fn a_reply_to_half_a_request_is_an_early_reply() {
    // Answers after one byte and reads no more: the kernel's buffers cannot hold the rest.
    let server = Server::start(|mut stream, seen| {
        if stream.read_exact(&mut [0]).is_ok() {
            stream.write_all(OK.as_bytes()).unwrap();
            seen.wait_for_stop();
        }
    });
    let body = vec![b'x'; 32 * 1024 * 1024];
    let requests = vec![Request { method: "POST".into(), body, ..get("/") }];
    let window = run(Config { requests, connections: 1, threads: 1, ..config(&server) });
    assert_eq!((errors(&window), window.requests_ok), (vec![ErrorKind::EarlyReply], 0));
}

#[test]
fn a_close_inside_the_body_is_an_error() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\ncut";
    let window = run(config(&server_with(move || Reply::last(cut))));
    assert_eq!((errors(&window), window.requests_ok), (vec![ErrorKind::Closed], 0));
    let names: Vec<_> = judge(&window, None).iter().map(headroom::load::Reason::name).collect();
    assert!(names.contains(&"errors") && names.contains(&"connections_lost") && names.contains(&"no_success"));
}

#[test]
fn what_is_not_http_is_a_parse_error() {
    for text in
        ["SSH-2.0-OpenSSH_9.7\r\n\r\n", "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "HTTP/1.1 101 x\r\n\r\n"]
    {
        let window = run(config(&server_with(move || text.into())));
        assert_eq!((errors(&window), window.requests_ok), (vec![ErrorKind::Parse], 0), "{text}");
    }
}

#[test]
fn fast_failures_are_no_throughput() {
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |k, _| {
            Some(if k < 10 { OK.into() } else { "HTTP/1.1 500 Oops\r\ncontent-length: 3\r\n\r\nbad".into() })
        });
    });
    let window = run(config(&server));
    assert_eq!(window.requests_ok, 40);
    assert_eq!(window.statuses, BTreeMap::from([(500, window.errors[&ErrorKind::Status])]));
    // The connections are of use after such a reply.
    assert_eq!((errors(&window), window.connections_lost, server.connections()), (vec![ErrorKind::Status], 0, 4));
    assert_eq!(judge(&window, None).len(), 1);
    let failure = window.first_failure.unwrap();
    assert!(failure.request.starts_with("GET / HTTP/1.1\r\nhost: 127.0.0.1:"), "{failure:?}");
    assert_eq!(failure.reply, "HTTP/1.1 500 Oops\r\ncontent-length: 3\r\n\r\nbad");
}

#[test]
fn a_server_that_never_answers_gives_timeouts_and_no_figures() {
    let server = Server::start(|mut stream, seen| {
        // Reads on, so that it sees the driver leave.
        while super::sockets::read_request(&mut stream).is_some() {
            seen.requests.fetch_add(1, Ordering::SeqCst);
        }
    });
    let window = run(Config { timeout: Duration::from_millis(60), ..config(&server) });
    assert_eq!((errors(&window), window.requests_ok), (vec![ErrorKind::Timeout], 0));
    assert_eq!(window.latency_censored, window.errors[&ErrorKind::Timeout]);
    assert_eq!(window.latency_ns.p50, None);
    assert_eq!((window.connections_never_served, window.unfinished), (4, 0));
    // A timed-out request takes its connection with it.
    assert!(server.connections() > 4 && window.connections_lost >= 4);
}
