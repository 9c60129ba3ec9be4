//! The reference server: starting, stopping, its limits, and its life with Postgres. What it answers is the gate's to say.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use nix::sys::signal::Signal;

use headroom::postgres::Database;

use crate::served::{Served, command, on_both_fronts};
use crate::session::Session;
use crate::support::{self, TestDatabase};
use crate::wire::Wire;

const ORDER: &str = r#"{"userId":4242,"amount":19.99,"currency":"USD"}"#;
const ECHO: &str = r#"{"name":"Jane Doe","email":"jane@example.com","age":30,"tags":["a","b"]}"#;

/// The one line on stderr of a server that must refuse to start.
fn refusal(database_url: &str, arguments: &[&str]) -> String {
    let output = command(database_url, arguments).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(stderr.lines().count(), 1, "one line: {stderr}");
    stderr
}

#[test]
fn what_cannot_work_is_refused_in_one_line() {
    let nowhere = "postgres://user:hidden@127.0.0.1:1/none";
    assert!(refusal(nowhere, &["--workers", "11"]).contains("--workers 11"));
    assert!(refusal(nowhere, &["--connections", "0"]).contains("--connections 0"));
    assert!(refusal(nowhere, &["--listen", "0.0.0.0:0"]).contains("JWT_SECRET"));
    let away = refusal(nowhere, &[]);
    assert!(away.contains("DATABASE_URL") && !away.contains("hidden"), "{away}");
    let garbled = refusal("not a url with pass:word@", &[]);
    assert!(garbled.contains("database URL") && !garbled.contains("word@"), "{garbled}");
    for store in ["pipelined", "sqlx"] {
        let away = refusal(nowhere, &["--store", store]);
        assert!(away.contains("efused"), "{store}: {away}");
    }
}

#[test]
fn a_taken_port_is_named() {
    let database = TestDatabase::new();
    let served = Served::start(database.url(), &["--workers", "1"]);
    let taken = served.address.to_string();
    let text = refusal(database.url(), &["--listen", &taken]);
    assert!(text.contains(&taken) && text.contains("--listen"), "{text}");
}

#[test]
fn both_stores_behind_both_fronts_serve_all_routes_with_any_number_of_workers() {
    let database = TestDatabase::new();
    for arguments in [
        ["--http", "own", "--store", "pipelined", "--workers", "1"],
        ["--http", "own", "--store", "pipelined", "--workers", "10"],
        ["--http", "axum", "--store", "pipelined", "--workers", "2"],
        ["--http", "own", "--store", "sqlx", "--workers", "2"],
        ["--http", "axum", "--store", "sqlx-held", "--workers", "1"],
        ["--http", "axum", "--store", "sqlx", "--workers", "3"],
    ] {
        let served = Served::start(database.url(), &arguments);
        let mut wire = served.wire();
        assert_eq!(wire.get("/health").body, r#"{"status":"ok"}"#);
        assert_eq!(wire.get("/users/4242").status, 200);
        assert_eq!(wire.get("/users/50001").status, 404);
        assert_eq!(wire.get("/users?limit=100").status, 200);
        assert_eq!(wire.post("/echo", ECHO).body, ECHO);
        assert_eq!(wire.post("/orders", ORDER).status, 201);
        assert_eq!(wire.post("/orders", &ORDER.replace("4242", "50001")).status, 422);
        assert_eq!(wire.get("/cpu?n=1").status, 200);
        wait_until(10, "all connections to be open", || backends(&database) == 10);
    }
}

#[test]
fn sigterm_lets_requests_in_flight_finish() {
    let database = TestDatabase::new();
    let served = Served::start(database.url(), &["--workers", "1"]);
    let mut idle = served.wire();
    assert_eq!(idle.get("/health").status, 200);
    let mut busy = served.wire();
    busy.send("GET /cpu?n=100000 HTTP/1.1\r\nhost: test\r\n\r\n");
    // One worker reads its connections in turn: an answer to a later request shows that the first one was read.
    assert_eq!(served.wire().get("/health").status, 200);
    served.signal(Signal::SIGTERM);
    assert_eq!(busy.reply().status, 200);
    assert!(idle.closed());
    let (status, stderr) = served.wait();
    assert_eq!(status.code(), Some(0), "{stderr}");
    wait_until(5, "its sessions to end", || backends(&database) == 0);
}

#[test]
fn a_second_signal_ends_at_once() {
    let database = TestDatabase::new();
    let served = Served::start(database.url(), &["--workers", "1"]);
    // Enough hashing to outlast any wait of this test.
    let mut clients: Vec<Wire> = (0..64).map(|_| served.wire()).collect();
    for client in &mut clients {
        client.send("GET /cpu?n=1000000 HTTP/1.1\r\nhost: test\r\n\r\n");
    }
    // One worker reads its connections in turn: an answer to a later request shows that the others were read.
    assert_eq!(served.wire().get("/health").status, 200);
    served.signal(Signal::SIGINT);
    wait_until(5, "the listener to close", || std::net::TcpStream::connect(served.address).is_err());
    served.signal(Signal::SIGINT);
    let (status, _) = served.wait();
    assert_eq!((status.code(), status.signal()), (Some(130), None));
}

#[test]
fn a_body_over_the_limit_is_413_and_can_be_read() {
    on_both_fronts(|served| {
        let big = vec![b' '; 3_000_000];
        let mut wire = served.wire();
        wire.send(format!(
            "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            big.len()
        ));
        wire.send(&big);
        assert_eq!(wire.reply().status, 413);

        let mut wire = served.wire();
        wire.send(
            "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        for piece in big.chunks(10_000) {
            wire.send(format!("{:x}\r\n", piece.len()));
            wire.send(piece);
            wire.send("\r\n");
        }
        wire.send("0\r\n\r\n");
        assert_eq!(wire.reply().status, 413);

        // At the limit it is read: blanks around a good body.
        let padded = format!("{}{ECHO}", " ".repeat(64 * 1024 - ECHO.len()));
        assert_eq!(served.wire().post("/echo", &padded).status, 200);
        assert_eq!(served.wire().post("/echo", &format!(" {padded}")).status, 413);
    });
}

#[test]
fn odd_requests_get_answers_of_our_own_shape() {
    on_both_fronts(|served| {
        let mut wire = served.wire();
        for target in ["/users/%FF", "/users/%zz", "/users/%", "/users/1%00", "/users/1%2F2"] {
            let reply = wire.get(target);
            assert_eq!(
                (reply.status, reply.header("content-type")),
                (422, Some("application/problem+json")),
                "{target}"
            );
        }
        assert!(wire.get("/users/%31").body.starts_with(r#"{"id":1,"#));
        let token = format!("authorization: Bearer {}\r\n", headroom::contract::EXAMPLE_TOKEN);
        for (headers, status) in
            [(token.clone(), 200), (format!("{token}{token}"), 401), (format!("{token}authorization: x\r\n"), 401)]
        {
            wire.send(format!("GET /me HTTP/1.1\r\nhost: t\r\n{headers}\r\n"));
            assert_eq!(wire.reply().status, status, "{headers}");
        }
        wire.send(format!(
            "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n{ECHO}",
            ECHO.len()
        ));
        assert_eq!(wire.reply().status, 415);
    });
}

#[test]
fn a_killed_backend_is_replaced() {
    for store in ["pipelined", "sqlx", "sqlx-held"] {
        let database = TestDatabase::new();
        let served = Served::start(database.url(), &["--workers", "2", "--store", store]);
        assert_eq!(served.wire().get("/users/1").status, 200);
        terminate_backends(&database);
        wait_until(10, "reads to work again", || {
            let mut wire = served.wire();
            (0..20).all(|_| wire.get("/users/1").status == 200)
        });
        // The pipelined store opens every connection again; sqlx's pool opens them as they are asked for.
        if store == "pipelined" {
            wait_until(10, "ten connections", || backends(&database) == 10);
        }
        assert!(backends(&database) <= 10);
    }
}

/// Client backends of the server under test.
fn backends(database: &TestDatabase) -> u32 {
    Database::connect(database.url()).expect("a marked database").client_backends().expect("a count")
}

fn wait_until(seconds: u64, what: &str, mut condition: impl FnMut() -> bool) {
    support::poll(Duration::from_secs(seconds), what, || condition().then_some(()));
}

/// Ends every session of the database but the one that asks.
fn terminate_backends(database: &TestDatabase) {
    Session::connect(database.url()).rows(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid()",
    );
}
