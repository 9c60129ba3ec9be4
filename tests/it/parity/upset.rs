//! Servers that hang, trickle, end or speak another protocol: the gate says so within its time, and stops.

#![expect(clippy::unwrap_used, reason = "a test ends where one of its parts cannot go on")]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use headroom::interrupt::Interrupt;
use headroom::parity::{self, Scope, Verdict};

use super::options;

/// For one reply: short, since these servers use all of it.
const TIMEOUT: Duration = Duration::from_millis(200);

/// For one reply of servers that are quick to fail, on a host that may be slow.
const PLENTY: Duration = Duration::from_secs(10);
/// The right reply to `GET /health`, and to nothing else.
const GOOD_HEALTH: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 15\r\n\r\n{\"status\":\"ok\"}";

/// A server that treats every connection in one way until it is dropped.
struct Upset {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Upset {
    fn start(treat: fn(TcpStream, &AtomicBool)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let acceptor = std::thread::spawn(move || {
            let mut connections = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::Acquire) {
                    break;
                }
                let (stream, stopped) = (stream.unwrap(), Arc::clone(&stopped));
                connections.push(std::thread::spawn(move || treat(stream, &stopped)));
            }
            for connection in connections {
                connection.join().unwrap();
            }
        });
        Self { address, stop, acceptor: Some(acceptor) }
    }

    fn verdict(&self) -> Verdict {
        self.verdict_within(TIMEOUT)
    }

    fn verdict_within(&self, timeout: Duration) -> Verdict {
        let options = parity::Options { timeout, ..options(self.address) };
        parity::run_scope(options, Scope { seed: 1, strict: true }, &Interrupt::default()).unwrap()
    }
}

impl Drop for Upset {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        self.acceptor.take().unwrap().join().unwrap();
    }
}

/// Reads until the request's head is there; false once the client has gone.
fn read_head(stream: &mut TcpStream) -> bool {
    let (mut head, mut piece) = (Vec::new(), [0; 4096]);
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        // What has been looked through is dropped, but for the start of an end.
        head.drain(..head.len().saturating_sub(3));
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return false,
            Ok(read) => head.extend_from_slice(&piece[..read]),
        }
    }
    true
}

/// The first failure says `what`, the fourth and every later one that the rest was not run.
fn assert_given_up(verdict: &Verdict, what: &str) {
    let failures: Vec<&str> = verdict.outcomes.iter().map(|outcome| outcome.failure.as_deref().unwrap()).collect();
    assert!(failures[0].contains(what) && failures[0].contains("sent GET /health"), "{}", failures[0]);
    assert!(failures[3..].iter().all(|failure| *failure == "not run: the server stopped answering"), "{failures:#?}");
    assert!(!verdict.passed());
    let text = parity::text(verdict, false);
    assert!(text.lines().filter(|line| line.starts_with("FAILED")).count() < 5, "{text}");
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let server = Upset::start(|mut stream, _| while read_head(&mut stream) {});
    assert_given_up(&server.verdict(), "no whole reply within 200 ms: 0 bytes came");
}

#[test]
fn a_server_that_trickles_is_given_up() {
    // A whole and right reply, byte by byte: later than asked for, though never silent for long.
    let server = Upset::start(|mut stream, stop| {
        if !read_head(&mut stream) {
            return;
        }
        for byte in GOOD_HEALTH {
            if stop.load(Ordering::Acquire) || stream.write_all(&[*byte]).is_err() {
                return;
            }
            // The pace is what is tested: some 90 bytes take longer than the timeout, however slow the host.
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    assert_given_up(&server.verdict(), "is not complete");
}

#[test]
fn a_server_that_closes_is_given_up() {
    let server = Upset::start(|mut stream, _| {
        read_head(&mut stream);
    });
    assert_given_up(&server.verdict(), "closed the connection without a reply");
}

#[test]
fn a_reply_cut_short_is_told_from_a_whole_one() {
    let server = Upset::start(|mut stream, _| {
        if read_head(&mut stream) {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{\"status\":");
        }
    });
    assert_given_up(&server.verdict(), "closed the connection after 49 bytes, within the body");
}

#[test]
fn another_protocol_is_given_up() {
    let server = Upset::start(|mut stream, _| {
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.2p1\r\n");
        read_head(&mut stream);
    });
    assert_given_up(&server.verdict(), "a head that is not HTTP");
}

#[test]
fn a_reply_without_end_is_given_up() {
    let server = Upset::start(|mut stream, _| {
        if read_head(&mut stream) && stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_ok()
        {
            let chunk = format!("fff0\r\n{}\r\n", "x".repeat(0xfff0));
            while stream.write_all(chunk.as_bytes()).is_ok() {}
        }
    });
    assert_given_up(&server.verdict_within(PLENTY), "a body of more than 1048576 bytes");
}

#[test]
fn a_server_that_answers_everything_alike_fails_and_gets_no_order() {
    let server = Upset::start(answer_all_alike);
    let verdict = server.verdict();
    assert!(!verdict.passed());
    let of = |id: &str| verdict.outcomes.iter().find(|outcome| outcome.id == id).unwrap().failure.clone();
    assert_eq!(of("health-body-differs"), None);
    assert!(of("user-row-differs").unwrap().contains("first difference at byte 2"));
    for outcome in verdict.outcomes.iter().filter(|outcome| outcome.id.starts_with("order-")) {
        let failure = outcome.failure.as_deref().unwrap();
        assert!(
            failure.starts_with("not run: the reads did not prove") && failure.contains("--allow-writes"),
            "{failure}"
        );
    }
    assert_eq!(verdict.orders_stored, 0);
}

#[test]
fn orders_are_posted_to_unknown_data_where_its_owner_allows_it() {
    let server = Upset::start(answer_all_alike);
    let options = parity::Options { allow_writes: true, timeout: TIMEOUT, ..options(server.address) };
    let verdict = parity::run_scope(options, Scope { seed: 1, strict: false }, &Interrupt::default()).unwrap();
    let of = |id: &str| verdict.outcomes.iter().find(|outcome| outcome.id == id).unwrap().failure.clone().unwrap();
    assert!(of("order-reply-differs").contains("expected status 201, got 200"));
    assert!(of("order-accepts-missing-amount").ends_with(r#"sent POST /orders {"userId":7,"currency":"USD"}"#));
}

fn answer_all_alike(mut stream: TcpStream, _: &AtomicBool) {
    while read_head(&mut stream) && stream.write_all(GOOD_HEALTH).is_ok() {}
}

#[test]
fn nobody_listening_is_an_error_with_a_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = parity::run(options(address), &Interrupt::default()).unwrap_err().to_string();
    assert!(error.contains(&format!("no connection to {address}: connection refused")), "{error}");
    assert!(error.contains("start the server"), "{error}");
}

#[test]
fn a_server_that_still_answers_something_is_not_given_up() {
    let server = Upset::start(|mut stream, _| {
        let mut first = [0; 12];
        if stream.read_exact(&mut first).is_ok() && first == *b"GET /health " && read_head(&mut stream) {
            let _ = stream.write_all(GOOD_HEALTH);
            answer_all_alike(stream, &AtomicBool::new(false));
        }
    });
    let options = parity::Options { timeout: PLENTY, ..options(server.address) };
    let verdict = parity::run_scope(options, Scope { seed: 1, strict: false }, &Interrupt::default()).unwrap();
    let text = parity::text(&verdict, false);
    assert!(!verdict.passed() && !text.contains("stopped answering"), "{text}");
    let cpu = verdict.outcomes.iter().find(|outcome| outcome.id == "cpu-load-hash-differs").unwrap();
    assert!(cpu.failure.as_deref().unwrap().contains("sent GET /cpu?n=15000"), "{text}");
}
