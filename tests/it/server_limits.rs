//! The limits of the reference server, each with its flag.

use std::time::Duration;

use crate::served::Served;
use crate::session::Session;
use crate::support::{self, TestDatabase};

const ECHO: &str = r#"{"name":"Jane Doe","email":"jane@example.com","age":30,"tags":["a","b"]}"#;

fn served(database: &TestDatabase, flags: &[&str]) -> Served {
    Served::start(database.url(), &[&["--workers", "1"], flags].concat())
}

#[test]
fn a_silent_connection_is_closed() {
    let database = TestDatabase::new();
    for front in ["own", "axum"] {
        let served = served(&database, &["--idle-time", "200ms", "--http", front]);
        assert!(served.wire().closed(), "{front}: before a request");
        let mut wire = served.wire();
        assert_eq!(wire.get("/health").status, 200);
        assert!(wire.closed(), "{front}: after one");
    }
}

#[test]
fn a_request_that_does_not_end_is_408() {
    let database = TestDatabase::new();
    let served = served(&database, &["--head-time", "200ms", "--body-time", "200ms"]);
    let body = format!("POST /echo HTTP/1.1\r\nhost: t\r\ncontent-length: {}\r\n\r\n{{", ECHO.len());
    let chunks = "POST /echo HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab".to_owned();
    for half in ["GET /hea".to_owned(), "GET /health HTTP/1.1\r\nhost: t\r\n".to_owned(), body, chunks] {
        let mut wire = served.wire();
        assert_eq!(wire.get("/health").status, 200);
        wire.send(&half);
        let reply = wire.reply();
        assert_eq!((reply.status, reply.header("connection")), (408, Some("close")), "{half}");
        assert!(wire.closed(), "{half}");
    }
}

#[test]
fn a_dribbled_head_does_not_gain_time() {
    let database = TestDatabase::new();
    let served = served(&database, &["--head-time", "300ms"]);
    let mut wire = served.wire();
    // Every byte is news, but the limit counts from the first.
    let refused = support::poll(Duration::from_secs(10), "the server to give up", || wire.try_send(b"x").err());
    assert!(
        matches!(refused.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset),
        "{refused}"
    );
}

#[test]
fn head_and_body_have_their_sizes() {
    let database = TestDatabase::new();
    for front in ["own", "axum"] {
        let served = served(&database, &["--max-head", "8192", "--max-body", "100", "--http", front]);
        assert_eq!(served.wire().post("/echo", ECHO).status, 200);
        assert_eq!(served.wire().post("/echo", &format!("{}{ECHO}", " ".repeat(100))).status, 413);
        let mut wire = served.wire();
        wire.send(format!("GET /health HTTP/1.1\r\nhost: t\r\nx: {}\r\n\r\n", "y".repeat(8_192)));
        assert_eq!(wire.reply().status, 431, "{front}");
    }
}

#[test]
fn connections_beyond_the_most_wait_for_one_to_close() {
    let database = TestDatabase::new();
    let served = served(&database, &["--max-connections", "2"]);
    let (mut first, mut second) = (served.wire(), served.wire());
    assert_eq!((first.get("/health").status, second.get("/health").status), (200, 200));
    let mut third = served.wire();
    third.send("GET /health HTTP/1.1\r\nhost: t\r\n\r\n");
    // The two still are served, and the third is not before one of them leaves.
    assert_eq!((first.get("/health").status, second.get("/health").status), (200, 200));
    assert!(third.is_silent());
    drop(first);
    assert_eq!(third.reply().status, 200);
}

#[test]
fn a_request_that_postgres_does_not_answer_in_time_is_503() {
    let database = TestDatabase::new();
    for front in ["own", "axum"] {
        for store in ["pipelined", "sqlx", "sqlx-held"] {
            let served = served(&database, &["--request-time", "300ms", "--http", front, "--store", store]);
            let mut wire = served.wire();
            let lock = Session::locking("users", database.url());
            let reply = wire.get("/users/1");
            assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{front} {store}");
            assert!(reply.body.contains("too long"), "{}", reply.body);
            drop(lock);
            support::poll(Duration::from_secs(10), "reads to work", || {
                (wire.get("/users/1").status == 200).then_some(())
            });
        }
    }
}
