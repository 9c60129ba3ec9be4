//! How connections come and go: refused, closed while idle, starved, lost with the server, left on a signal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headroom::interrupt::{Interrupt, Interrupted};
use headroom::load::{Config, Engine, ErrorKind, judge};

use super::sockets::{OK, Server, exchange};
use super::{WINDOW, assert_valid, config, errors, poll_until};

#[test]
fn a_refused_connection_stops_the_start_with_count_errno_and_remedy() {
    let server = Server::start(|_, _| {});
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error =
        Engine::start(Config { endpoint: free.into(), connections: 7, ..config(&server) }, &Interrupt::default())
            .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "only 0 of 7 connections to {free} came up: connection refused (ECONNREFUSED): \
             start the server, or check the address and the port"
        )
    );
}

#[test]
fn more_connections_than_open_files_are_refused_before_the_first() {
    let server = Server::start(|_, _| {});
    let error = Engine::start(Config { connections: 1 << 40, ..config(&server) }, &Interrupt::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("the hard limit is") && error.contains("use fewer connections"), "{error}");
    assert_eq!(server.connections(), 0);
}

#[test]
fn local_ports_that_do_not_suffice_are_refused_before_the_first() {
    // In a network of its own, whose range is ten ports.
    const NEW_NETWORK: [&str; 2] = ["--map-root-user", "--net"];
    if !Command::new("unshare").args(NEW_NETWORK).arg("true").status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may not make a network namespace");
        return;
    }
    let output = Command::new("unshare")
        .args(NEW_NETWORK)
        .args(["sh", "-c"])
        .arg("echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range && exec \"$0\" load http://127.0.0.1:1 -c 11")
        .arg(crate::support::headroom())
        .output()
        .expect("unshare runs");
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("11 connections") && said.contains("ip_local_port_range has 10"), "{said}");
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let server = Server::start(|_, _| {});
    let refused = |config: Config| Engine::start(config, &Interrupt::default()).unwrap_err().to_string();
    assert!(refused(Config { threads: 0, ..config(&server) }).contains("0 threads"));
    assert!(
        refused(Config { threads: 5, ..config(&server) }).contains("4 connections cannot be spread over 5 threads")
    );
    assert!(refused(Config { timeout: Duration::ZERO, ..config(&server) }).contains("timeout of 0"));
    assert!(refused(Config { requests: Vec::new(), ..config(&server) }).contains("no request"));
}

#[test]
fn a_close_between_warm_up_and_window_is_a_reconnect() {
    // Closes what has been idle for a moment, as Node does after five seconds.
    let server = Server::start(|mut stream, seen| {
        stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        exchange(&mut stream, seen, |_, _| Some(OK.into()));
    });
    let mut engine = Engine::start(config(&server), &Interrupt::default()).unwrap();
    engine.run(WINDOW, &Interrupt::default()).unwrap();
    poll_until("the close of all idle connections", || server.closed() == server.connections());
    let window = engine.run(WINDOW, &Interrupt::default()).unwrap();
    assert_valid(&window);
    assert_eq!((window.reconnects, window.closed_by_server, window.connections_open), (4, 0, 4));
}

#[test]
fn a_close_that_the_first_request_meets_is_a_reconnect_too() {
    let closing = Arc::new(AtomicBool::new(false));
    let is_closing = Arc::clone(&closing);
    let server = Server::start(move |mut stream, seen| {
        let is_of_warm_up = seen.connections.load(Ordering::SeqCst) <= 4;
        exchange(&mut stream, seen, |_, _| (!(is_of_warm_up && is_closing.load(Ordering::SeqCst))).then(|| OK.into()));
    });
    let mut engine = Engine::start(config(&server), &Interrupt::default()).unwrap();
    engine.run(WINDOW, &Interrupt::default()).unwrap();
    closing.store(true, Ordering::SeqCst);
    let window = engine.run(WINDOW, &Interrupt::default()).unwrap();
    assert_valid(&window);
    assert_eq!((window.reconnects, window.connections_lost, server.connections()), (4, 0, 8));
}

#[test]
fn a_new_connection_that_is_closed_without_a_reply_is_an_error() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| None));
    let window =
        Engine::start(config(&server), &Interrupt::default()).unwrap().run(WINDOW, &Interrupt::default()).unwrap();
    assert_eq!((errors(&window), window.reconnects), (vec![ErrorKind::Closed], 0));
    // The waits between reconnects grow.
    assert!(window.errors[&ErrorKind::Closed] < 40, "{:?}", window.errors);
}

#[test]
fn a_starved_connection_is_recorded_and_does_not_void_the_window() {
    let is_taken = AtomicBool::new(false);
    let server = Server::start(move |mut stream, seen| {
        let is_starved = !is_taken.swap(true, Ordering::SeqCst);
        exchange(&mut stream, seen, |_, _| {
            if is_starved {
                seen.wait_for_stop();
            }
            Some(OK.into())
        });
    });
    let mut engine = Engine::start(config(&server), &Interrupt::default()).unwrap();
    let window = engine.run(WINDOW, &Interrupt::default()).unwrap();
    assert_valid(&window);
    assert_eq!((window.connections_never_served, window.unfinished, window.latency_censored), (1, 1, 1));
    assert!(window.unfinished_oldest_ns.unwrap() > u64::try_from(WINDOW.as_nanos()).unwrap());
    assert_eq!(window.connections_open, 4);
    // Its connection is of no use any more and is made anew.
    assert_eq!(engine.run(WINDOW, &Interrupt::default()).unwrap().reconnects, 1);
}

#[test]
fn a_server_that_dies_ends_the_window_early() {
    let server = Server::start(|mut stream, seen| {
        let address = stream.local_addr().unwrap();
        exchange(&mut stream, seen, |k, _| {
            if k == 20 {
                seen.stop_listening(address);
            }
            (!seen.stop.load(Ordering::SeqCst)).then(|| OK.into())
        });
    });
    let asked = Duration::from_mins(10);
    let window =
        Engine::start(config(&server), &Interrupt::default()).unwrap().run(asked, &Interrupt::default()).unwrap();
    assert!(window.window < asked);
    assert!(errors(&window).contains(&ErrorKind::Refused), "{:?}", window.errors);
    assert_eq!(window.connections_open, 0);
    let reasons = judge(&window, None);
    assert_eq!(reasons[0].name(), "ended_early");
    // The waits between reconnects grow: four connections for about a second make no flood.
    assert!(window.errors.values().sum::<u64>() < 100, "{:?}", window.errors);
}

#[test]
fn a_server_that_is_gone_before_the_window_is_an_error_with_its_count() {
    let server = Server::start(|mut stream, seen| {
        let address = stream.local_addr().unwrap();
        exchange(&mut stream, seen, |k, _| {
            seen.stop_listening(address);
            (k == 0).then(|| OK.into())
        });
    });
    let mut engine = Engine::start(config(&server), &Interrupt::default()).unwrap();
    let _ = engine.run(WINDOW, &Interrupt::default());
    let error = engine.run(WINDOW, &Interrupt::default()).unwrap_err().to_string();
    assert!(error.contains("only 0 of 4 connections") && error.contains("ECONNREFUSED"), "{error}");
}

/// What the child process below says when its window has begun.
const BEGUN: &str = "the window has begun";

#[test]
fn a_signal_ends_the_window_at_once() {
    // In a process of its own: a signal to this one would reach every test.
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "load::life::window_that_waits_for_a_signal", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains(BEGUN)));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    lines.for_each(drop);
    assert!(child.wait().unwrap().success());
}

#[test]
#[ignore = "a part of another test, which starts it as a process"]
fn window_that_waits_for_a_signal() {
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |k, _| {
            if k == 0 {
                println!("{BEGUN}");
                std::io::stdout().flush().unwrap();
            }
            Some(OK.into())
        });
    });
    let interrupt = Interrupt::listen().unwrap();
    let mut engine = Engine::start(config(&server), &Interrupt::default()).unwrap();
    let error = engine.run(Duration::from_mins(10), &interrupt).unwrap_err();
    assert_eq!(error.downcast_ref::<Interrupted>().map(|interrupted| interrupted.signal), Some(2));
}
