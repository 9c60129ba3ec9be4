//! The reference server's life among others: a Postgres that goes away, clients that vanish, signals, limits of the host.
//!
//! - `away`: Postgres restarted, crashed and stopped under load, in a cluster of its own
//! - `pool`: every slot taken, refused orders, clients that leave; `url`: which database, told without the password
//! - `process`: signals, process 1, file handles, idle connections, kill -9; `hashing`: the `cpu` route at full tilt

mod away;
mod hashing;
mod ledger;
mod pool;
mod process;
mod url;

use std::time::Duration;

use crate::session::Session;
use crate::support;
use crate::wire::Reply;

/// Longest wait for anything the server should do within seconds, on a machine that is busy with other tests.
const SECONDS: Duration = Duration::from_secs(30);

/// Client backends of the database besides the one that asks.
const BACKENDS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()";

/// Statements of the database that wait for a lock.
const BLOCKED: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    support::poll(SECONDS, what, || condition().then_some(()));
}

/// The answer of a server that has no Postgres to ask, or no place to ask it.
fn assert_unavailable(reply: &Reply) {
    let (media_type, retry_after) = (reply.header("content-type"), reply.header("retry-after"));
    assert_eq!(
        (reply.status, media_type, retry_after),
        (503, Some("application/problem+json"), Some("1")),
        "{}{}",
        reply.head,
        reply.body
    );
    for inside in ["SELECT", "INSERT", "src/", "postgres://", "127.0.0.1", "SQLSTATE"] {
        assert!(!reply.body.contains(inside), "{}", reply.body);
    }
}

/// How the row of a user begins in a reply.
fn row_start(id: i32) -> String {
    format!(r#"{{"id":{id},"name":"User {id}","email":"user{id}@example.com","age":"#)
}
