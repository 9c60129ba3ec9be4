//! One connection with a blocking face: the harness is synchronous, sqlx is not.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::runtime::{Builder, Runtime};

use super::target::Target;
use crate::interrupt::{Interrupt, POLL};

/// A name that has to be resolved, a host that does not answer: a person waits no longer than this for the error.
pub(super) const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// Reads of a few rows or a count.
pub(super) const READ_WAIT: Duration = Duration::from_secs(30);

/// Saying goodbye to a server that may be gone.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// A connection and the runtime it lives on.
pub(super) struct Session {
    // Before the runtime, which its socket is registered with.
    connection: Option<PgConnection>,
    runtime: Runtime,
    pub(super) target: Target,
}

impl Session {
    /// Connects, at most for `limit`.
    pub(super) fn open(target: &Target, limit: Duration) -> Result<Self, sqlx::Error> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connection = runtime.block_on(async {
            tokio::time::timeout(limit, target.options.connect())
                .await
                .unwrap_or_else(|_| Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())))
        })?;
        Ok(Self { connection: Some(connection), runtime, target: target.clone() })
    }

    /// Connects to the database of a URL, with the error for people.
    pub(super) fn connect(url: &str) -> anyhow::Result<Self> {
        let target = Target::parse(url)?;
        Self::open(&target, CONNECT_WAIT).map_err(|error| anyhow!("{}", target.explain(&error)))
    }

    /// Runs `work` on the connection, at most for `limit`; a signal ends it early. Whenever it does not come to its end the
    /// connection is closed, since it may be in the middle of an answer.
    pub(super) fn run<T, E: Into<anyhow::Error>>(
        &mut self,
        what: &str,
        limit: Duration,
        interrupt: &Interrupt,
        work: impl AsyncFnOnce(&mut PgConnection) -> Result<T, E>,
    ) -> anyhow::Result<T> {
        let target = &self.target;
        let Some(connection) = &mut self.connection else {
            bail!("failed to {what} in {target}: the connection was lost earlier");
        };
        let outcome = self.runtime.block_on(async {
            tokio::select! {
                done = work(connection) => Some(done.map_err(Into::into)),
                () = tokio::time::sleep(limit) => None,
                stopped = signalled(interrupt) => Some(Err(stopped.into())),
            }
        });
        match outcome {
            Some(Err(error)) if error.is::<crate::interrupt::Interrupted>() => {
                self.connection = None;
                Err(error)
            }
            Some(outcome) => outcome.with_context(|| format!("failed to {what} in {target}")),
            None => {
                self.connection = None;
                bail!("failed to {what} in {target}: it took longer than {} s", limit.as_secs())
            }
        }
    }

    /// Executes statements that change something.
    pub(super) fn execute(&mut self, what: &str, limit: Duration, sql: &str) -> anyhow::Result<()> {
        self.execute_until(what, limit, &Interrupt::default(), sql)
    }

    /// Executes statements that change something, unless a signal comes first.
    pub(super) fn execute_until(
        &mut self,
        what: &str,
        limit: Duration,
        interrupt: &Interrupt,
        sql: &str,
    ) -> anyhow::Result<()> {
        self.run(what, limit, interrupt, async |connection| {
            sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.map(|_| ())
        })
    }

    /// Reads rows in a transaction that can change nothing and is rolled back: it does not count among the committed
    /// transactions of the database, which are compared with the requests sent. The columns come as text.
    pub(super) fn peek(&mut self, what: &str, sql: &str) -> anyhow::Result<Vec<PgRow>> {
        let sql = format!("BEGIN READ ONLY; {sql}; ROLLBACK");
        let outcome = self.run(what, READ_WAIT, &Interrupt::default(), async |connection| {
            sqlx::raw_sql(AssertSqlSafe(sql)).fetch_all(connection).await
        });
        if outcome.is_err() {
            // The failed transaction is still open.
            let _ = self.execute("roll back", READ_WAIT, "ROLLBACK");
        }
        outcome
    }

    /// The one row of such a read.
    pub(super) fn peek_one(&mut self, what: &str, sql: &str) -> anyhow::Result<PgRow> {
        let rows = self.peek(what, sql)?;
        rows.into_iter().next().with_context(|| format!("failed to {what} in {}: no row came back", self.target))
    }
}

/// Returns once a signal has asked to stop.
async fn signalled(interrupt: &Interrupt) -> crate::interrupt::Interrupted {
    loop {
        if let Some(interrupted) = interrupt.requested() {
            return interrupted;
        }
        tokio::time::sleep(POLL).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            // The server then ends the session at once, so that whoever counts sessions next does not see this one.
            let _ = self.runtime.block_on(async { tokio::time::timeout(CLOSE_WAIT, connection.close()).await });
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Session({})", self.target)
    }
}

/// Doubles the quotes of a value inside `'…'`.
pub(super) fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "''"))
}
