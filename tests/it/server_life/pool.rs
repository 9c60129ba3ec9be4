//! Every slot taken, refused orders, and clients that leave while Postgres works for them.

use std::thread;

use super::{BACKENDS, BLOCKED, Session, assert_unavailable, row_start, wait_until};
use crate::served::Served;
use crate::support::TestDatabase;
use crate::wire::Wire;

const STORES: [&str; 3] = ["pipelined", "sqlx", "sqlx-held"];
const ONE_SLOT: [&str; 6] = ["--workers", "1", "--connections", "1", "--read-depth", "1"];

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: test\r\n\r\n")
}

/// A client whose request this server has read: with one worker, an answer to a later request shows that.
fn asked(served: &Served, id: i32) -> Wire {
    let mut wire = served.wire();
    wire.send(get(&format!("/users/{id}")));
    assert_eq!(served.wire().get("/health").status, 200);
    wire
}

#[test]
fn a_full_pool_lets_requests_wait_and_then_refuses_them() {
    let database = TestDatabase::new();
    for store in STORES {
        let served =
            Served::start(database.url(), &[&ONE_SLOT[..], &["--store", store, "--wait-time", "300ms"]].concat());
        let session = Session::connect(database.url());
        let lock = Session::locking("users", database.url());
        let mut first = asked(&served, 1);
        wait_until("the read to reach Postgres", || session.number(BLOCKED) == 1);
        let mut others: Vec<Wire> = (2..=6).map(|id| asked(&served, id)).collect();
        for other in &mut others {
            assert_unavailable(&other.reply());
        }
        assert_eq!(session.number(BLOCKED), 1, "{store}: no other has got through");
        drop(lock);
        assert!(first.reply().body.starts_with(&row_start(1)), "{store}");
        for (id, wire) in (2..).zip(&mut others) {
            assert!(wire.get(&format!("/users/{id}")).body.starts_with(&row_start(id)), "{store}");
        }
    }
}

#[test]
fn who_waits_is_served_when_the_slot_is_free() {
    let database = TestDatabase::new();
    for store in STORES {
        let served =
            Served::start(database.url(), &[&ONE_SLOT[..], &["--store", store, "--wait-time", "20s"]].concat());
        let lock = Session::locking("users", database.url());
        let mut waiting: Vec<Wire> = (1..=20).map(|id| asked(&served, id)).collect();
        assert!(waiting.iter_mut().all(Wire::is_silent), "{store}");
        drop(lock);
        for (id, wire) in (1..).zip(&mut waiting) {
            assert!(wire.reply().body.starts_with(&row_start(id)), "{store}");
        }
    }
}

#[test]
fn clients_that_vanish_while_postgres_is_held_up_leave_nothing_behind() {
    let database = TestDatabase::new();
    let session = Session::connect(database.url());
    for (store, front) in STORES.iter().flat_map(|store| [(*store, "own"), (*store, "axum")]) {
        let limits = ["--workers", "1", "--connections", "2", "--read-depth", "2", "--wait-time", "300ms"];
        let served = Served::start(database.url(), &[&limits[..], &["--store", store, "--http", front]].concat());
        let lock = Session::locking("users", database.url());
        for id in 1..=50 {
            drop(asked(&served, id));
        }
        wait_until("reads to be held up", || session.number(BLOCKED) > 0);
        assert_unavailable(&served.wire().get("/users/51"));
        let count = session.number(&format!("{BACKENDS} AND pid <> {}", lock.number("SELECT pg_backend_pid()::int8")));
        assert!(count <= 2, "{store} {front}: {count} connections while reads are held up");
        drop(lock);
        wait_until("reads to work", || served.wire().get("/users/1").status == 200);
        let mut wire = served.wire();
        for id in 1..=50 {
            assert!(wire.get(&format!("/users/{id}")).body.starts_with(&row_start(id)), "{store} {front}");
        }
        wait_until("no read to be held up", || session.number(BLOCKED) == 0);
        let count = session.number(BACKENDS);
        assert!(count <= 2, "{store} {front}: {count} connections");
    }
}

#[test]
fn a_short_wait_for_a_place_does_not_hurry_the_start() {
    let database = TestDatabase::new();
    for store in STORES {
        // Ten logins on one thread take longer than any one request may wait.
        let flags = ["--workers", "1", "--wait-time", "20ms", "--store", store];
        let served = Served::start(database.url(), &flags);
        wait_until("all connections to be open", || Session::connect(database.url()).number(BACKENDS) == 10);
        assert_eq!(served.wire().get("/users/1").status, 200, "{store}");
    }
}

#[test]
fn refused_orders_take_no_connection() {
    let database = TestDatabase::new();
    for store in STORES {
        let served = Served::start(database.url(), &[&ONE_SLOT[..], &["--store", store]].concat());
        let mut wire = served.wire();
        let order = |user: i32| format!(r#"{{"userId":{user},"amount":1.5,"currency":"USD"}}"#);
        for number in 0..50 {
            assert_eq!(wire.post("/orders", &order(50_001 + number)).status, 422, "{store}");
        }
        for number in 1..=20 {
            assert_eq!(wire.post("/orders", &order(number)).status, 201, "{store}");
        }
        assert_eq!(Session::connect(database.url()).number(BACKENDS), 1, "{store}");
    }
}

#[test]
fn after_aborted_reads_and_disconnects_every_client_gets_its_own_row() {
    const CLIENTS: i32 = 100;
    let database = TestDatabase::new();
    for (store, reads) in [("pipelined", 500), ("sqlx", 50), ("sqlx-held", 50)] {
        // Postgres also does what was aborted: on a busy host the others wait for that.
        let served = Served::start(database.url(), &["--workers", "2", "--store", store, "--wait-time", "1m"]);
        thread::scope(|scope| {
            for thread in 0..4 {
                let served = &served;
                scope.spawn(move || {
                    for step in 0..500 {
                        served.wire().send(get(&format!("/users/{}", 1 + thread * 500 + step)));
                    }
                });
            }
        });
        let storm: Vec<Wire> = (0..500).map(|_| served.wire()).collect();
        drop(storm);
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let served = &served;
                scope.spawn(move || {
                    let mut wire = served.wire();
                    for step in 0..reads {
                        let id = 1 + (client * 1_231 + step * 7_919) % 50_000;
                        let reply = wire.get(&format!("/users/{id}"));
                        assert!(reply.body.starts_with(&row_start(id)), "{store}: {id}: {}", reply.body);
                    }
                });
            }
        });
        let count = Session::connect(database.url()).number(BACKENDS);
        assert!(count == 10 || store != "pipelined" && count < 10, "{store}: {count} connections");
    }
}
