//! The open loop: a schedule that the server cannot change, and what becomes of it when the server is slow.

use std::sync::atomic::Ordering;
use std::time::Duration;

use headroom::interrupt::Interrupt;
use headroom::load::{Config, Engine, ErrorKind, Load, Window, judge};

use super::sockets::{OK, Reply, Server, exchange};
use super::{WINDOW, config, errors};

/// Requests per second: 100 in a window.
const RATE: f64 = 500.0;

fn run_at(rate: f64, config: Config) -> Window {
    let load = Load { duration: WINDOW, rate: Some(rate) };
    Engine::start(config, &Interrupt::default()).unwrap().run_as(load, &Interrupt::default(), &mut |_| {}).unwrap()
}

/// What is wrong with a window besides the driver being late: the machine is busy with other tests.
fn reasons(window: &Window) -> Vec<&'static str> {
    judge(window, None).iter().map(headroom::load::Reason::name).filter(|name| *name != "driver_lag").collect()
}

#[test]
fn as_many_are_sent_as_are_due() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    for threads in [1, 2, 3] {
        let before = server.requests();
        // As many connections as requests: a busy machine delays some of them, and leaves none unsent.
        let window = run_at(RATE, Config { threads, connections: 100, ..config(&server) });
        let open = window.open.as_ref().unwrap();
        assert_eq!((open.scheduled, open.unsent), (100, 0), "{threads} threads");
        assert_eq!(window.requests_ok + window.drained, 100, "{threads} threads");
        assert_eq!(server.requests() - before, 100, "{threads} threads");
        assert_eq!((window.latency_histogram_ns.len(), open.service_histogram_ns.len()), (100, 100));
        assert_eq!(open.lag_histogram_ns.len(), 100);
        assert_eq!(open.gap_histogram_ns.len(), 100 - threads as u64);
        assert_eq!(reasons(&window), [""; 0]);
    }
}

#[test]
fn a_window_without_a_rate_is_a_closed_loop_again() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    let mut engine = Engine::start(config(&server), &Interrupt::default()).unwrap();
    for rate in [Some(RATE), None, Some(RATE)] {
        let load = Load { duration: WINDOW, rate };
        let window = engine.run_as(load, &Interrupt::default(), &mut |_| {}).unwrap();
        assert_eq!(window.open.is_some(), rate.is_some());
        assert_eq!(errors(&window), []);
    }
    assert_eq!(server.connections(), 4);
}

#[test]
fn what_finds_no_connection_waits_and_its_wait_counts() {
    const DELAY: Duration = Duration::from_millis(10);
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, _| {
            std::thread::sleep(DELAY);
            Some(OK.into())
        });
    });
    // One connection serves at most 20 of the 100 that are due.
    let window = run_at(RATE, Config { connections: 1, threads: 1, ..config(&server) });
    let open = window.open.as_ref().unwrap();
    let sent = open.scheduled - open.unsent;
    assert!(sent <= 21, "{sent}");
    assert_eq!(window.latency_histogram_ns.len(), sent);
    // Counted from the write every reply takes about the same; counted from when it was due, the last waited longest.
    let delay_ns = u64::try_from(DELAY.as_nanos()).unwrap();
    assert!(open.service_histogram_ns.min() >= delay_ns - delay_ns / 1_000);
    assert!(window.latency_histogram_ns.max() >= open.service_histogram_ns.min() * 5);
    // The wait for the server is not the driver's.
    assert!(open.lag_histogram_ns.mean() < window.latency_histogram_ns.mean() / 2.0);
    assert_eq!(window.latency_censored, open.unsent);
    assert!(open.oldest_unsent_ns > Some(0));
    assert_eq!(reasons(&window), ["rate_missed"]);
}

#[test]
fn a_server_that_answers_nothing_leaves_the_whole_queue_to_see() {
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, _| {
            seen.wait_for_stop();
            None
        });
    });
    let window = run_at(RATE, Config { drain: Duration::from_millis(1), ..config(&server) });
    let open = window.open.as_ref().unwrap();
    assert_eq!((open.scheduled, open.unsent, window.unfinished), (100, 96, 4));
    assert_eq!((window.requests_ok, window.latency_censored), (0, 100));
    assert_eq!(window.latency_ns.p50, None);
    assert_eq!(reasons(&window), ["no_success", "rate_missed"]);
}

#[test]
fn a_stall_is_seen_by_all_that_were_due_meanwhile() {
    // The first request is held until fifty others are due, then all are answered at once.
    const STALL: Duration = Duration::from_millis(100);
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |_, _| {
            if seen.requests.load(Ordering::SeqCst) == 1 {
                std::thread::sleep(STALL);
            }
            Some(OK.into())
        });
    });
    let window = run_at(RATE, Config { connections: 1, threads: 1, ..config(&server) });
    let open = window.open.as_ref().unwrap();
    let late = |histogram: &hdrhistogram::Histogram<u64>| histogram.count_between(10_000_000, u64::MAX);
    // Nearly fifty waited more than a tenth of the stall, one of them for the server, the others for their turn.
    assert!(late(&window.latency_histogram_ns) >= 40, "{}", late(&window.latency_histogram_ns));
    assert!(late(&open.service_histogram_ns) < late(&window.latency_histogram_ns));
}

#[test]
fn connections_that_are_closed_while_idle_are_opened_again() {
    // Each connection carries two requests.
    let server = Server::start(|mut stream, seen| {
        exchange(&mut stream, seen, |number, _| Some(if number == 1 { Reply::last(OK) } else { OK.into() }));
    });
    let window = run_at(RATE, config(&server));
    let open = window.open.as_ref().unwrap();
    assert!(server.connections() >= 40, "{}", server.connections());
    // A request that met the close was not answered and is not sent twice: where that happened it is an error.
    let met = window.errors.get(&ErrorKind::Closed).copied().unwrap_or(0);
    assert!(errors(&window).iter().all(|kind| *kind == ErrorKind::Closed) && met < window.reconnects, "{window:?}");
    assert_eq!(window.requests_ok + window.drained + open.unsent + met, 100);
    assert_eq!(server.requests(), window.requests_ok + window.drained);
}

#[test]
fn a_thread_that_spins_counts_the_same() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    let window = run_at(RATE, Config { spins: true, threads: 1, connections: 100, ..config(&server) });
    assert_eq!((window.requests_ok + window.drained, reasons(&window)), (100, vec![]));
    // It is always busy, and that is not held against it.
    assert_eq!(window.driver.busy_share, None);
}

#[test]
fn rates_that_mean_nothing_are_refused() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    let mut engine = Engine::start(config(&server), &Interrupt::default()).unwrap();
    for rate in [0.0, -1.0, 0.01, 1e9, f64::NAN, f64::INFINITY] {
        let load = Load { duration: WINDOW, rate: Some(rate) };
        let error = engine.run_as(load, &Interrupt::default(), &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("cannot be kept"), "{rate}: {error}");
    }
}

#[test]
fn without_keep_alive_every_request_has_its_own_connection() {
    let close = |headers: &mut Vec<(String, String)>| headers.push(("connection".into(), "close".into()));
    for obeys in [true, false] {
        let server = Server::start(move |mut stream, seen| {
            exchange(&mut stream, seen, |number, _| {
                assert_eq!(number, 0, "a second request on a connection");
                let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
                Some(if obeys { Reply::last(head) } else { OK.into() })
            });
        });
        let mut config = Config { keeps_alive: false, ..config(&server) };
        config.requests.iter_mut().for_each(|request| close(&mut request.headers));
        let window = super::run(config);
        assert_eq!(errors(&window), [], "{obeys}");
        assert!(window.requests_ok > 10, "{obeys}");
        let answered = window.requests_ok + window.drained;
        assert_eq!(server.requests(), answered, "{obeys}");
        assert!(server.connections() >= answered, "{obeys}");
        assert!(window.connect_ns.max.is_some(), "{obeys}");
    }
}

#[test]
fn a_connection_that_waits_for_its_turn_does_not_time_out() {
    let server = Server::start(|mut stream, seen| exchange(&mut stream, seen, |_, _| Some(OK.into())));
    // Of twenty connections each has a request every second, twice as long as one may take.
    let load = Load { duration: WINDOW * 10, rate: Some(20.0) };
    let config = Config { connections: 20, timeout: WINDOW * 5 / 2, ..config(&server) };
    let mut engine = Engine::start(config, &Interrupt::default()).unwrap();
    let window = engine.run_as(load, &Interrupt::default(), &mut |_| {}).unwrap();
    assert_eq!((errors(&window), window.requests_ok + window.drained), (vec![], 40));
}
