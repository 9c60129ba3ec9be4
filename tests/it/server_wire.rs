//! The reference server's HTTP, byte by byte: what is read, what is refused, and when a connection ends.
//!
//! What HTTP leaves open, or hyper does in its own way, is asked of our own front alone; each place says why.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use headroom::contract::EXAMPLE_TOKEN;

use crate::served::{Served, on_both_fronts, on_our_front};
use crate::support::{self, TestDatabase};
use crate::wire::{Reply, Wire};

const ORDER: &str = r#"{"userId":4242,"amount":19.99,"currency":"USD"}"#;
const ECHO: &str = r#"{"name":"Jane Doe","email":"jane@example.com","age":30,"tags":["a","b"]}"#;
const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: t\r\n\r\n";
/// How a request to `/echo` begins.
const TO_ECHO: &str = "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\n";

fn health_with(headers: &str) -> String {
    format!("GET /health HTTP/1.1\r\nhost: t\r\n{headers}\r\n")
}

fn echo_by_length() -> String {
    format!("{TO_ECHO}content-length: {}\r\n\r\n{ECHO}", ECHO.len())
}

/// The echo's body in pieces of `size`, with what may stand between them.
fn echo_in_chunks(size: usize) -> String {
    let chunk = |part: &[u8]| format!("{:X};x=\"y\"\r\n{}\r\n", part.len(), String::from_utf8_lossy(part));
    let chunks: String = ECHO.as_bytes().chunks(size).map(chunk).collect();
    format!("{TO_ECHO}transfer-encoding: chunked\r\n\r\n{chunks}000\r\nx-trailer: 1\r\n\r\n")
}

/// Sends this on a connection of its own, followed by a good request, and gives the reply: after it the connection
/// must end, and the request that follows must not be answered.
fn last_reply(served: &Served, request: impl AsRef<[u8]>) -> Reply {
    let mut wire = served.wire();
    let shown = String::from_utf8_lossy(request.as_ref()).into_owned();
    let reply = wire.ask([request.as_ref(), HEALTH.as_bytes()].concat());
    assert!(wire.closed(), "still open, or one more reply, after {shown:.300}");
    reply
}

#[test]
fn heads_that_are_not_http_are_refused_and_end_the_connection() {
    on_both_fronts(|served| {
        for (request, status) in [
            ("GET /health HTTP/1.1\r\n\r\n".to_owned(), 400),
            ("GET /health HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n".to_owned(), 400),
            (health_with("x : y\r\n"), 400),
            (health_with("x\t: y\r\n"), 400),
            (health_with(" x: y\r\n"), 400),
            (health_with("x: y\r\n z\r\n"), 400),
            (health_with("x: y\r\n\tz\r\n"), 400),
            (health_with("x: a\0b\r\n"), 400),
            (health_with("x\0: y\r\n"), 400),
            (health_with("x: a\rb\r\n"), 400),
            (health_with("x: a\u{7f}b\r\n"), 400),
            (health_with("x\r\n"), 400),
            (health_with(": y\r\n"), 400),
            (health_with("é: y\r\n"), 400),
            (health_with("content-length: 1\r\ncontent-length: 2\r\n"), 400),
            ("GET  /health HTTP/1.1\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("GET /health  HTTP/1.1\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("GET /hea\tlth HTTP/1.1\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("GET /hea\0lth HTTP/1.1\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("GET /health HTTP/1.1 \r\nhost: t\r\n\r\n".to_owned(), 400),
            ("GET /health HTTP/1.10\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("GET /health http/1.1\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("GET /health\r\nhost: t\r\n\r\n".to_owned(), 400),
            (" GET /health HTTP/1.1\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("G\u{1}T /health HTTP/1.1\r\nhost: t\r\n\r\n".to_owned(), 400),
            ("\x16\x03\x01\x02\0\x01\0\x01\x7c\x03\x03\r\n\r\n".to_owned(), 400),
            (health_with(&"x: 1\r\n".repeat(101)), 431),
            (health_with(&format!("x: {}\r\n", "y".repeat(600_000))), 431),
            (format!("GET /{} HTTP/1.1\r\nhost: t\r\n\r\n", "y".repeat(600_000)), 431),
        ] {
            let reply = last_reply(served, &request);
            // hyper calls a long target 414.
            assert!(reply.status == status || (status == 431 && reply.status == 414), "{request:.300}: {}", reply.head);
        }
        assert_eq!(served.wire().get("/health").status, 200);
    });
}

#[test]
fn lengths_are_digits_given_once_or_alike() {
    on_both_fronts(|served| {
        let sent = |headers: &str| last_reply(served, format!("{TO_ECHO}{headers}\r\n{ECHO}")).status;
        let length = ECHO.len();
        for value in
            ["", "-1", "+72", "0x48", "72.0", "7 2", "18446744073709551616", "99999999999999999999999", "x", "７２"]
        {
            assert_eq!(sent(&format!("content-length: {value}\r\n")), 400, "{value}");
        }
        assert_eq!(sent(&format!("content-length: {length}\r\ncontent-length: 0\r\n")), 400);
        assert_eq!(sent(&format!("content-length: 0\r\ncontent-length: {length}\r\n")), 400);
        assert_eq!(sent(&format!("content-length: {length}, 0\r\n")), 400);
        let mut wire = served.wire();
        let alike = format!("{TO_ECHO}content-length: {length}\r\nContent-Length: {length}\r\n\r\n{ECHO}");
        assert_eq!(wire.ask(alike).body, ECHO);
        let zeros = format!("{TO_ECHO}content-length: 000{length}\r\n\r\n{ECHO}");
        assert_eq!(wire.ask(zeros).body, ECHO);
    });
}

/// hyper answers some codings with 400, reads others as chunks, and knows no expectation it cannot meet: HTTP leaves
/// the first open (RFC 9112, section 6.1), and the last too (RFC 9110, section 10.1.1).
#[test]
fn codings_and_expectations_that_are_not_known_are_named() {
    on_our_front(|served| {
        let sent = |headers: &str| last_reply(served, format!("{TO_ECHO}{headers}\r\n{}", "0\r\n\r\n")).status;
        for value in [
            "gzip",
            "gzip, chunked",
            "chunked, gzip",
            "chunked, chunked",
            "identity",
            "xchunked",
            "chunked;q=1",
            "\"chunked\"",
            "chunked,",
            "",
        ] {
            assert_eq!(sent(&format!("transfer-encoding: {value}\r\n")), 501, "{value}");
        }
        assert_eq!(sent("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n"), 501);
        assert_eq!(sent("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n"), 501);
        assert_eq!(sent("expect: 200-ok\r\ncontent-length: 5\r\n"), 417);
        let old =
            "POST /echo HTTP/1.0\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(last_reply(served, old).status, 400);
        for version in ["1.2", "2.0", "3.0", "0.9"] {
            assert_eq!(last_reply(served, format!("GET / HTTP/{version}\r\nhost: t\r\n\r\n")).status, 505, "{version}");
        }
        assert_eq!(last_reply(served, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
    });
}

/// hyper reads the chunks too, but keeps the connection, where RFC 9112, section 6.1, wants it ended.
#[test]
fn a_request_framed_twice_is_the_last_of_its_connection() {
    on_our_front(|served| {
        let hidden = "GET /users/1 HTTP/1.1\r\nhost: t\r\n\r\n";
        let chunks = format!("{:x}\r\n{ECHO}\r\n0\r\n\r\n", ECHO.len());
        for headers in [
            format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", chunks.len()),
            format!("transfer-encoding: chunked\r\ncontent-length: {}\r\n", chunks.len() + hidden.len()),
            "content-length: 0\r\ntransfer-encoding: chunked\r\n".to_owned(),
            "Transfer-Encoding: CHUNKED\r\nContent-Length: 3\r\n".to_owned(),
        ] {
            let reply = last_reply(served, format!("{TO_ECHO}{headers}\r\n{chunks}{hidden}"));
            assert_eq!((reply.status, reply.body.as_str()), (200, ECHO), "{headers}");
            assert_eq!(reply.header("connection"), Some("close"), "{headers}");
        }
        // What follows such a request may be long: its sender must still be able to read the reply.
        let reply = last_reply(
            served,
            format!(
                "{TO_ECHO}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n{chunks}{}",
                hidden.repeat(10_000)
            ),
        );
        assert_eq!(reply.status, 200);
    });
}

#[test]
fn bodies_framed_wrongly_are_400_and_end_the_connection() {
    on_both_fronts(|served| {
        for chunks in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "0x5\r\n",
            "5\r\nabcdefg\r\n",
            "5\r\nabcdeX\r\n",
            "5 5\r\nabcde\r\n",
            " 5\r\nabcde\r\n",
            "5\n\nabcde",
            "5;x\0\r\nabcde\r\n",
            "fffffffffffffffff\r\n",
            "10000000000000000000000000000005\r\nabcde\r\n",
        ] {
            let reply = last_reply(served, format!("{TO_ECHO}transfer-encoding: chunked\r\n\r\n{chunks}"));
            assert_eq!(reply.status, 400, "{chunks:?}");
        }
    });
}

#[test]
fn requests_may_come_byte_by_byte() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for request in [format!("\r\n\r\n{}", echo_by_length()), echo_in_chunks(7), echo_in_chunks(1), echo_by_length()]
        {
            for byte in request.as_bytes() {
                wire.send([*byte]);
            }
            assert_eq!(wire.reply().body, ECHO);
        }
        // And end in the middle of the next one.
        let both = [echo_in_chunks(30), echo_by_length(), HEALTH.to_owned()].concat();
        for cut in (1..both.len()).step_by(7) {
            wire.send(&both[..cut]);
            wire.send(&both[cut..]);
            assert_eq!(
                (wire.reply().body.as_str(), wire.reply().body.as_str(), wire.reply().status),
                (ECHO, ECHO, 200),
                "{cut}"
            );
        }
    });
}

#[test]
fn line_ends_without_carriage_return_frame_what_they_seem_to() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        let one = "POST /echo HTTP/1.1\nhost: t\ncontent-type: application/json\n";
        wire.send(format!("{one}content-length: {}\n\n{ECHO}{one}transfer-encoding: chunked\r\n\n{:x}\r\n{ECHO}\r\n0\r\n\r\n\n{HEALTH}", ECHO.len(), ECHO.len()));
        assert_eq!(
            (wire.reply().body, wire.reply().body, wire.reply().status),
            (ECHO.to_owned(), ECHO.to_owned(), 200)
        );
        wire.end();
        assert!(wire.closed());
    });
}

/// A request of any kind, and what its reply must be.
fn mixed(number: usize) -> (String, u16, Option<String>) {
    let id = 1 + number * 7_919 % 50_000;
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nhost: t\r\n\r\n");
    match number % 11 {
        0 => (get("/health"), 200, Some(r#"{"status":"ok"}"#.to_owned())),
        1 => (get(&format!("/users/{id}")), 200, Some(format!(r#"{{"id":{id},"name":"User {id}","#))),
        2 => (echo_by_length(), 200, Some(ECHO.to_owned())),
        3 => (echo_in_chunks(id % 40 + 1), 200, Some(ECHO.to_owned())),
        4 => (get("/nope"), 404, Some(r#"{"error":"not found"}"#.to_owned())),
        5 => (format!("{TO_ECHO}content-length: 5\r\n\r\n{{abcd"), 400, None),
        6 => (
            get(&format!("/users?page={}&limit=2", number + 1)),
            200,
            Some(format!(r#"{{"page":{},"limit":2,"#, number + 1)),
        ),
        7 => ("POST /health HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\n\r\nabc".to_owned(), 405, None),
        8 => (get("/cpu?n=1"), 200, Some(r#"{"n":1,"hash":"26e93d81"#.to_owned())),
        // A body that no route reads is read over.
        9 => (
            format!("GET /users/{id} HTTP/1.1\r\nhost: t\r\ncontent-length: {}\r\n\r\n{HEALTH}", HEALTH.len()),
            200,
            Some(format!(r#"{{"id":{id},"#)),
        ),
        _ => (
            format!(
                "POST /orders HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{ORDER}",
                ORDER.len()
            ),
            201,
            None,
        ),
    }
}

fn check_mixed(wire: &mut Wire, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let (request, status, start) = mixed(number);
        let reply = wire.reply();
        assert_eq!(reply.status, status, "{number}: {request}: {}", reply.body);
        assert!(reply.body.starts_with(&start.unwrap_or_default()), "{number}: {request}: {}", reply.body);
    }
}

#[test]
fn hundreds_of_requests_in_one_write_are_answered_in_order() {
    on_both_fronts(|served| {
        let all: String = (0..440).map(|number| mixed(number).0).collect();
        let mut wire = served.wire();
        thread::scope(|scope| {
            // Replies are read while requests are still written, as any client that sends so much must.
            let mut writer = wire.another_handle();
            scope.spawn(move || writer.send(&all));
            check_mixed(&mut wire, 0..440);
        });
        assert_eq!(wire.get("/health").status, 200);
    });
}

#[test]
fn a_bad_request_in_the_middle_is_answered_in_its_turn_and_is_the_last() {
    on_both_fronts(|served| {
        for bad in [
            "GET /health HTTP/1.1\r\nhost: t\r\nx : y\r\n\r\n".to_owned(),
            "GET /health HTTP/1.1\r\n\r\n".to_owned(),
            format!("{TO_ECHO}transfer-encoding: chunked\r\n\r\nzz\r\n"),
        ] {
            let before: String = (0..99).map(|number| mixed(number).0).collect();
            let after: String = (100..200).map(|number| mixed(number).0).collect();
            let mut wire = served.wire();
            wire.send(format!("{before}{bad}{after}"));
            check_mixed(&mut wire, 0..99);
            assert_eq!(wire.reply().status, 400, "{bad}");
            assert!(wire.closed(), "{bad}");
        }
    });
}

#[test]
fn continue_is_said_where_the_body_is_read() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for expect in ["100-continue", "100-Continue"] {
            let asked = wire.ask(format!("{TO_ECHO}expect: {expect}\r\ncontent-length: {}\r\n\r\n", ECHO.len()));
            assert_eq!((asked.status, asked.head.as_str()), (100, "HTTP/1.1 100 Continue"));
            assert_eq!(wire.ask(ECHO).body, ECHO);
            let chunks = echo_in_chunks(20);
            let (head, body) = chunks.split_once("\r\n\r\n").unwrap();
            assert_eq!(wire.ask(format!("{head}\r\nexpect: {expect}\r\n\r\n")).status, 100);
            assert_eq!(wire.ask(body).body, ECHO);
        }
        // Said once, however slowly the body comes.
        assert_eq!(
            wire.ask(format!("{TO_ECHO}expect: 100-continue\r\ncontent-length: {}\r\n\r\n", ECHO.len())).status,
            100
        );
        for byte in ECHO.as_bytes() {
            wire.send([*byte]);
        }
        assert_eq!(wire.reply().body, ECHO);
        // A body that is refused for what it holds was read.
        assert_eq!(wire.ask(format!("{TO_ECHO}expect: 100-continue\r\ncontent-length: 2\r\n\r\n")).status, 100);
        assert_eq!(wire.ask("{}").status, 422);
        assert_eq!(wire.get("/health").status, 200);
    });
}

#[test]
fn a_body_that_would_not_be_read_is_refused_before_it_is_sent() {
    on_both_fronts(|served| {
        let json = "content-type: application/json\r\n";
        for (request, headers, status) in [
            ("POST /nope", json, 404),
            ("POST /users/1", json, 405),
            ("PUT /orders", json, 405),
            ("GET /echo", json, 405),
            ("POST /orders", "", 415),
            ("POST /echo", "content-type: text/plain\r\n", 415),
        ] {
            for framing in ["content-length: 5", "transfer-encoding: chunked"] {
                let reply = served.wire().ask(format!(
                    "{request} HTTP/1.1\r\nhost: t\r\n{headers}expect: 100-continue\r\n{framing}\r\n\r\n"
                ));
                assert_eq!(reply.status, status, "{request} {framing}");
            }
        }
        let reply = served.wire().ask(format!("{TO_ECHO}expect: 100-continue\r\ncontent-length: 65537\r\n\r\n"));
        assert_eq!(reply.status, 413);
    });
}

/// hyper says it also where the body has come already, and where there is none: harmless, and allowed.
#[test]
fn continue_is_not_said_to_who_does_not_wait() {
    on_our_front(|served| {
        let mut wire = served.wire();
        let waiting = |length: usize| format!("{TO_ECHO}expect: 100-continue\r\ncontent-length: {length}\r\n\r\n");
        assert_eq!(wire.ask(format!("{}{ECHO}", waiting(ECHO.len()))).body, ECHO);
        assert_eq!(wire.ask(waiting(0)).status, 400);
        assert_eq!(wire.ask(health_with("expect: 100-continue\r\n")).status, 200);
        let (start, rest) = ECHO.split_at(1);
        wire.send(format!("{}{start}", waiting(ECHO.len())));
        assert_eq!(wire.ask(rest).body, ECHO);
        // HTTP/1.0 knows no interim replies.
        let old = waiting(ECHO.len()).replace("HTTP/1.1", "HTTP/1.0");
        let mut wire = served.wire();
        wire.send(old);
        assert_eq!(wire.ask(ECHO).body, ECHO);
        // Refused: the connection ends, whatever the client does with its body.
        let reply = last_reply(served, waiting(70_000));
        assert_eq!((reply.status, reply.header("connection")), (413, Some("close")));
        let mut wire = served.wire();
        assert_eq!(wire.ask(waiting(5).replace("/echo", "/nope")).status, 404);
        let _ = wire.try_send(HEALTH.as_bytes());
        assert!(wire.closed());
    });
}

#[test]
fn head_is_get_without_its_body() {
    on_both_fronts(|served| {
        let token = format!("authorization: Bearer {EXAMPLE_TOKEN}\r\n");
        let lines = |reply: &Reply| {
            let lines = reply.head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
            let mut lines: Vec<String> = lines.map(str::to_owned).collect();
            lines.sort();
            lines
        };
        let mut wire = served.wire();
        for target in [
            "/health",
            "/echo",
            "/me",
            "/users/4242",
            "/users?page=7&limit=20",
            "/orders",
            "/cpu?n=1",
            "/users/50001",
            "/users/abc",
            "/users?page=0",
            "/cpu",
            "/nope",
            "/",
        ] {
            for headers in ["", &token] {
                let rest = format!("{target} HTTP/1.1\r\nhost: t\r\n{headers}\r\n");
                let got = wire.ask(format!("GET {rest}"));
                wire.send(format!("HEAD {rest}"));
                let head = wire.reply_to_head();
                assert_eq!(lines(&head), lines(&got), "{target}");
                assert_eq!(head.header("content-length"), Some(got.body.len().to_string().as_str()), "{target}");
                assert!(head.header("date").is_some());
            }
        }
    });
}

/// A reply to HEAD has no body also where it ends the connection. hyper's own refusals have none in any case.
#[test]
fn head_has_no_body_even_where_it_is_refused() {
    on_our_front(|served| {
        let waiting = "host: t\r\nexpect: 100-continue\r\ncontent-length: 5\r\n";
        let long = "host: t\r\ncontent-length: 70000\r\n";
        let garbled = "host: t\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n";
        for (target, rest, status) in [
            ("/nope", waiting, 404),
            ("/echo", waiting, 405),
            ("/health", long, 413),
            ("/health", garbled, 400),
            ("/health", "", 400),
            ("/health", "host: t\r\nexpect: x\r\n", 417),
        ] {
            let mut wire = served.wire();
            wire.send(format!("HEAD {target} HTTP/1.1\r\n{rest}\r\n"));
            wire.end();
            assert_eq!(wire.reply_to_head().status, status, "{target} {rest}");
            assert!(wire.closed(), "a body after {target} {rest}");
        }
    });
}

#[test]
fn methods_a_path_does_not_have_are_405_with_those_it_has() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for (target, allow) in [
            ("/health", "GET,HEAD"),
            ("/echo", "POST"),
            ("/me", "GET,HEAD"),
            ("/users/1", "GET,HEAD"),
            ("/users/abc", "GET,HEAD"),
            ("/users", "GET,HEAD"),
            ("/orders", "POST"),
            ("/cpu", "GET,HEAD"),
        ] {
            let other = if allow == "POST" { "GET" } else { "POST" };
            for method in
                [other, "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "FOO", "get", "post", "M-SEARCH", "GETS"]
            {
                let reply = wire.ask(format!("{method} {target} HTTP/1.1\r\nhost: t\r\ncontent-length: 2\r\n\r\n{{}}"));
                assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {target}");
                assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{method} {target}");
            }
        }
        for method in ["OPTIONS", "PUT", "DELETE", "FOO", "GET", "POST"] {
            let reply = wire.ask(format!("{method} /nope HTTP/1.1\r\nhost: t\r\n\r\n"));
            assert_eq!(
                (reply.status, reply.header("allow"), reply.body.as_str()),
                (404, None, r#"{"error":"not found"}"#),
                "{method}"
            );
        }
        let reply = wire.ask("OPTIONS * HTTP/1.1\r\nhost: t\r\n\r\n");
        assert_eq!(reply.status, 404);
    });
}

#[test]
fn targets_may_name_the_host() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for (target, status) in [
            ("http://t/health", 200),
            ("HTTP://T:1/health?x=/y", 200),
            ("https://[::1]:3000/users/%31", 200),
            ("http://t/users?limit=101", 422),
            ("http://t", 404),
            ("http://t/", 404),
            ("http://t?x", 404),
            ("http://t//health", 404),
            ("*", 404),
        ] {
            assert_eq!(wire.get(target).status, status, "{target}");
        }
    });
}

/// hyper drops a fragment and refuses bytes beyond ASCII; both are outside of HTTP.
#[test]
fn targets_that_are_none_are_refused() {
    on_our_front(|served| {
        for target in ["/health#x", "/health?x#", "http://t/health#", "http://t#/health"] {
            assert_eq!(last_reply(served, format!("GET {target} HTTP/1.1\r\nhost: t\r\n\r\n")).status, 400, "{target}");
        }
        let mut wire = served.wire();
        for (target, status) in [
            ("health", 404),
            ("t:80", 404),
            ("?x", 404),
            ("users/1", 404),
            ("x/y://t/health", 404),
            ("/users/é", 422),
            ("/users/\"", 422),
        ] {
            assert_eq!(wire.get(target).status, status, "{target}");
        }
    });
}

#[test]
fn connections_are_kept_as_each_version_says() {
    on_both_fronts(|served| {
        for request in [
            "GET /health HTTP/1.0\r\n\r\n".to_owned(),
            "GET /health HTTP/1.0\r\nhost: t\r\nconnection: close\r\n\r\n".to_owned(),
            health_with("connection: close\r\n"),
            health_with("connection: x, Close\r\n"),
            health_with("connection: keep-alive\r\nconnection: close\r\n"),
        ] {
            let reply = last_reply(served, &request);
            assert_eq!((reply.status, reply.body.as_str()), (200, r#"{"status":"ok"}"#), "{request}");
            assert_ne!(reply.header("connection"), Some("keep-alive"), "{request}");
        }
        let mut wire = served.wire();
        for keep in ["keep-alive", "Keep-Alive", "x,keep-alive"] {
            let reply = wire.ask(format!("GET /health HTTP/1.0\r\nconnection: {keep}\r\n\r\n"));
            assert_eq!((reply.status, reply.header("connection")), (200, Some("keep-alive")), "{keep}");
        }
        for header in
            ["connection: keep-alive\r\n", "connection: upgrade\r\nupgrade: h2c\r\n", "connection: closed\r\n", ""]
        {
            let reply = wire.ask(health_with(header));
            assert_eq!((reply.status, reply.header("connection")), (200, None), "{header}");
        }
    });
}

/// hyper takes the end of a client's stream for its leaving, unless it is told otherwise.
#[test]
fn a_client_that_has_said_all_is_still_answered() {
    on_our_front(|served| {
        let all: String = (0..44).map(|number| mixed(number).0).collect();
        let mut wire = served.wire();
        wire.send(all);
        wire.end();
        check_mixed(&mut wire, 0..44);
        assert!(wire.closed());
        // In the middle of a request it is the client that broke off: there is nothing to answer.
        for half in [
            "",
            "GET /hea",
            &format!("{TO_ECHO}content-length: 5\r\n\r\n{{"),
            &format!("{TO_ECHO}transfer-encoding: chunked\r\n\r\n5\r\nab"),
        ] {
            let mut wire = served.wire();
            wire.send(half);
            wire.end();
            assert!(wire.closed(), "{half}");
        }
    });
}

/// hyper cannot answer before the body has been read: it would reset the connection under a client still writing.
#[test]
fn a_body_over_the_limit_is_refused_while_it_is_written() {
    on_our_front(|served| {
        for (headers, start) in
            [("content-length: 100000000\r\n\r\n", ""), ("transfer-encoding: chunked\r\n\r\n", "5f5e100\r\n")]
        {
            // Who waits is told as soon as it is clear.
            let mut wire = served.wire();
            wire.send(format!("{TO_ECHO}{headers}{start}{}", " ".repeat(64 * 1024 + 1)));
            let reply = wire.reply();
            assert_eq!((reply.status, reply.header("connection")), (413, Some("close")), "{headers}");
            // Who writes for ever can read the answer, and is cut off.
            let mut wire = served.wire();
            let mut writer = wire.another_handle();
            thread::scope(|scope| {
                let writing = scope.spawn(move || {
                    writer.send(format!("{TO_ECHO}{headers}{start}"));
                    let piece = vec![b' '; 64 * 1024];
                    while writer.try_send(&piece).is_ok() {}
                });
                assert_eq!(wire.reply().status, 413, "{headers}");
                writing.join().unwrap();
            });
        }
    });
}

/// The most memory the server has held, in KiB.
fn most_memory_kib(served: &Served) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", served.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a field of the status");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// A client that pipelines requests and reads no reply, until the server takes no more.
fn never_reading(served: &Served) -> TcpStream {
    /// More than the kernel holds for a connection in both directions, whatever its settings.
    const MOST_BYTES: usize = 64 * 1024 * 1024;
    /// Times in a row that nothing could be written, each after the worker has had a turn.
    const FULL: usize = 20;
    // Long replies, so that the way back is full after a few of them.
    let requests = "GET /users?limit=100 HTTP/1.1\r\nhost: t\r\n\r\n".repeat(1_000);
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.set_nonblocking(true).unwrap();
    let (mut sent, mut full) = (0, 0);
    while full < FULL {
        match stream.write(&requests.as_bytes()[sent % requests.len()..]) {
            Ok(count) => (sent, full) = (sent + count, 0),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                assert_eq!(served.wire().get("/health").status, 200);
                full += 1;
            }
        }
        assert!(sent < MOST_BYTES, "the server reads on and on");
    }
    stream
}

#[test]
fn clients_that_never_read_are_held_back() {
    const CLIENTS: u64 = 10;
    const MOST_KIB: u64 = 256;
    let database = TestDatabase::new();
    for front in ["own", "axum"] {
        let served = Served::start(database.url(), &["--workers", "1", "--http", front]);
        let mut wire = served.wire();
        for _ in 0..20 {
            assert_eq!(wire.get("/users?limit=100").status, 200);
        }
        let before = most_memory_kib(&served);
        let clients: Vec<TcpStream> = (0..CLIENTS).map(|_| never_reading(&served)).collect();
        let grown = most_memory_kib(&served).saturating_sub(before);
        assert!(grown < CLIENTS * MOST_KIB, "{front}: {grown} KiB for {CLIENTS} clients that do not read");
        assert_eq!(wire.get("/users/1").status, 200);
        drop(clients);
    }
}

/// hyper has no limit on the time in which a client takes no byte of a reply.
#[test]
fn clients_that_never_read_are_dropped() {
    let database = TestDatabase::new();
    let served = Served::start(database.url(), &["--workers", "1", "--http", "own", "--idle-time", "500ms"]);
    let mut stream = never_reading(&served);
    let gone = support::poll(Duration::from_secs(20), "the server to drop it", || {
        stream.write(b"x").err().filter(|error| error.kind() != ErrorKind::WouldBlock)
    });
    assert!(matches!(gone.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{gone}");
}

/// hyper's front has read the body away by then, or has reset the connection.
#[test]
fn a_client_that_stops_in_a_long_refused_body_is_dropped() {
    let database = TestDatabase::new();
    let served = Served::start(database.url(), &["--workers", "1", "--http", "own", "--body-time", "300ms"]);
    let mut wire = served.wire();
    // Enough for more reads in a row than the runtime gives a task in one turn.
    let start = format!("{TO_ECHO}content-length: 100000000\r\n\r\n{}", " ".repeat(4_000_000));
    assert_eq!(wire.ask(start).status, 413);
    let gone = support::poll(Duration::from_secs(10), "the server to drop it", || wire.try_send(b"x").err());
    assert!(matches!(gone.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{gone}");
}
