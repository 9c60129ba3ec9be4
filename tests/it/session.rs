//! A session of the test's own with Postgres, beside the server's.

use tokio_postgres::NoTls;

/// A session of the test's own. What it has open ends when it is dropped.
pub(crate) struct Session {
    runtime: tokio::runtime::Runtime,
    client: tokio_postgres::Client,
}

impl Session {
    pub(crate) fn connect(url: &str) -> Self {
        Self::try_connect(url).expect("Postgres lets the test in")
    }

    pub(crate) fn try_connect(url: &str) -> Result<Self, tokio_postgres::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }

    /// A session that holds a table which nobody else can read until the session is dropped.
    pub(crate) fn locking(table: &str, url: &str) -> Self {
        let session = Self::connect(url);
        session.run(&format!("BEGIN; LOCK TABLE {table}"));
        session
    }

    pub(crate) fn run(&self, sql: &str) {
        self.runtime.block_on(self.client.batch_execute(sql)).expect("the statements run");
    }

    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.try_number(sql).expect("a number")
    }

    pub(crate) fn try_number(&self, sql: &str) -> Result<i64, tokio_postgres::Error> {
        self.runtime.block_on(self.client.query_one(sql, &[]))?.try_get(0)
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<tokio_postgres::Row> {
        self.runtime.block_on(self.client.query(sql, &[])).expect("rows")
    }
}
