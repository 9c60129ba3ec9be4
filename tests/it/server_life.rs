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

use tokio_postgres::NoTls;

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

/// A session of the test's own. What it has open ends when it is dropped.
struct Session {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Session {
    fn connect(url: &str) -> Self {
        Self::try_connect(url).expect("Postgres lets the test in")
    }

    fn try_connect(url: &str) -> Result<Self, tokio_postgres::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }

    /// A session that holds a table which nobody else can read until the session is dropped.
    fn locking(table: &str, url: &str) -> Self {
        let session = Self::connect(url);
        session.run(&format!("BEGIN; LOCK TABLE {table}"));
        session
    }

    fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).expect("the statements run");
    }

    fn number(&self, sql: &str) -> i64 {
        self.try_number(sql).expect("a number")
    }

    fn try_number(&self, sql: &str) -> Result<i64, tokio_postgres::Error> {
        self.runtime.block_on(self.client.query_one(sql, &[]))?.try_get(0)
    }

    fn rows(&self, sql: &str) -> Vec<tokio_postgres::Row> {
        self.runtime.block_on(self.client.query(sql, &[])).expect("rows")
    }
}

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
