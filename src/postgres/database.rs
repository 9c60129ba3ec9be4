//! A marked database: what is done to it between windows, and what is counted in it.
//!
//! Everything that is only read is read in transactions that are rolled back, so that this session adds nothing to the
//! number of committed transactions.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use procfs::process::all_processes;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::seed::{self, State};
use super::session::{Session, quoted};
use super::target::ADMIN_APPLICATION;
use super::{Setting, StoredOrder};
use crate::dataset::ORDERS;
use crate::interrupt::POLL;

/// A rewrite of the orders of a long insert run on a slow disk.
const REWRITE_WAIT: Duration = Duration::from_mins(3);

/// Writing out what a window left in memory, at most `shared_buffers`.
const CHECKPOINT_WAIT: Duration = Duration::from_mins(2);

/// The checkpointer publishes its counts right after it answered.
const PUBLISH_WAIT: Duration = Duration::from_secs(10);
const PUBLISH_POLL: Duration = Duration::from_millis(2);

/// A server that was stopped takes its sessions with it at once; one that is ending statements may need a moment.
const SESSIONS_WAIT: Duration = Duration::from_secs(10);

/// Other sessions of this database; not the harness's own, which hold no server's work.
const OTHER_SESSIONS: &str = "FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND coalesce(backend_type, 'client backend') = 'client backend'";

/// Settings that a measurement rests on, recorded even where they have their default value.
const ALWAYS_RECORDED: [&str; 10] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "wal_level",
    "max_connections",
    "shared_buffers",
    "autovacuum",
    "jit",
    "data_checksums",
];

/// Settings that say where this cluster lies, not how it works.
const NEVER_RECORDED: [&str; 7] = [
    "data_directory",
    "config_file",
    "hba_file",
    "ident_file",
    "external_pid_file",
    "port",
    "default_text_search_config",
];

/// A marked database, for administration and counts.
#[derive(Debug)]
pub struct Database {
    session: Session,
}

impl Database {
    /// Connects; refuses, before any statement that changes something, a database without the marker.
    pub fn connect(url: &str) -> anyhow::Result<Self> {
        let mut session = Session::connect(url)?;
        let target = session.target.to_string();
        match seed::state(&mut session)? {
            State::Complete => Ok(Self { session }),
            State::Unfinished => bail!("{target} is headroom's but was never seeded to the end: prepare it again"),
            State::Empty => bail!("{target} is empty: prepare it first, or use the private database"),
            State::Foreign => bail!(
                "{target} is not headroom's (it has no table headroom_marker), and nothing was changed in it: \
                 use the private database (`headroom postgres url` prints it) or give an empty one"
            ),
        }
    }

    /// Orders above the seed deleted, sequence set back, `VACUUM (FULL, ANALYZE) orders`.
    pub fn reset_orders(&mut self) -> anyhow::Result<()> {
        // A session left in a transaction would hold the table, and this one, for good.
        self.session.execute("limit waiting for locks", REWRITE_WAIT, "SET lock_timeout = '15s'")?;
        let sql = format!(
            "DELETE FROM orders WHERE id > {ORDERS};
             SELECT setval(pg_get_serial_sequence('orders', 'id'), {ORDERS});"
        );
        self.session.execute("delete the orders above the seed", REWRITE_WAIT, &sql)?;
        self.session.execute("rewrite orders", REWRITE_WAIT, "VACUUM (FULL, ANALYZE) orders")?;
        let count = self.order_count()?;
        ensure!(
            count == u64::from(ORDERS),
            "{} holds {count} of the {ORDERS} seeded orders: recreate it with `headroom postgres reset`",
            self.session.target
        );
        Ok(())
    }

    /// `CHECKPOINT`, and it is counted: a later change of [`Database::checkpoints`] is another one.
    pub fn checkpoint(&mut self) -> anyhow::Result<()> {
        let before = self.checkpoints()?;
        self.session
            .execute("run CHECKPOINT", CHECKPOINT_WAIT, "CHECKPOINT")
            .context("a checkpoint needs a superuser or the role pg_checkpoint: `GRANT pg_checkpoint TO …`")?;
        // The checkpointer answers first and publishes its count a moment later.
        let deadline = Instant::now() + PUBLISH_WAIT;
        while self.checkpoints()? == before {
            if Instant::now() >= deadline {
                bail!("{} never counted the checkpoint that was asked for", self.session.target);
            }
            std::thread::sleep(PUBLISH_POLL);
        }
        Ok(())
    }

    /// Checkpoints begun since the cluster started (timed + requested): a change inside a window voids it.
    pub fn checkpoints(&mut self) -> anyhow::Result<u64> {
        let view = self.session.peek_one(
            "look for the checkpoint counts",
            "SELECT to_regclass('pg_catalog.pg_stat_checkpointer') IS NOT NULL AS split",
        )?;
        // Moved to a view of their own in Postgres 17.
        let sql = if view.try_get("split")? {
            "SELECT num_timed + num_requested AS found FROM pg_stat_checkpointer"
        } else {
            "SELECT checkpoints_timed + checkpoints_req AS found FROM pg_stat_bgwriter"
        };
        self.count("count checkpoints", sql)
    }

    /// Client backends on this database, without those of the harness.
    pub fn client_backends(&mut self) -> anyhow::Result<u32> {
        let sql =
            format!("SELECT count(*) AS found {OTHER_SESSIONS} AND application_name <> {}", quoted(ADMIN_APPLICATION));
        let count = self.count("count sessions", &sql)?;
        u32::try_from(count).context("more sessions than there can be")
    }

    /// Waits (bounded) until no other session is left on this database, then `xact_commit` from `pg_stat_database`.
    ///
    /// Sessions publish what they counted when they end, before they leave the list of sessions.
    pub fn transactions(&mut self) -> anyhow::Result<u64> {
        let deadline = Instant::now() + SESSIONS_WAIT;
        loop {
            let left = self.client_backends()?;
            if left == 0 {
                break;
            }
            if Instant::now() >= deadline {
                bail!(
                    "{left} other sessions are still connected to {} after {} s, so its transactions cannot be \
                     counted: end the programs that hold them",
                    self.session.target,
                    SESSIONS_WAIT.as_secs()
                );
            }
            std::thread::sleep(POLL);
        }
        let sql = "SELECT xact_commit AS found FROM pg_stat_database WHERE datname = current_database()";
        self.count("count transactions", sql)
    }

    /// Reads an order back.
    pub fn order(&mut self, id: i32) -> anyhow::Result<Option<StoredOrder>> {
        let sql = format!(
            "SELECT id, user_id, amount::text AS amount, currency::text AS currency,
                    (extract(epoch FROM created_at) * 1000000)::bigint AS created_at_us
             FROM orders WHERE id = {id}"
        );
        let rows = self.session.peek("read an order", &sql)?;
        rows.first().map(stored_order).transpose()
    }

    /// Rows in `orders`.
    pub fn order_count(&mut self) -> anyhow::Result<u64> {
        self.count("count orders", "SELECT count(*) AS found FROM orders")
    }

    /// Process id of the postmaster when the server runs on this host and can be seen in `/proc`, for its CPU time.
    ///
    /// Found through this session's own backend, whose title names the client's address and port: true for the private
    /// cluster, for a local one, and for one in a container whose processes this host sees.
    pub fn postmaster_pid(&mut self) -> anyhow::Result<Option<i32>> {
        let row = self.session.peek_one(
            "find the server's process",
            "SELECT pg_backend_pid() AS pid, host(inet_client_addr()) AS address, inet_client_port() AS port",
        )?;
        let pid: i32 = row.try_get("pid")?;
        let peer: (Option<String>, Option<i32>) = (row.try_get("address")?, row.try_get("port")?);
        Ok(match peer {
            (Some(address), Some(port)) => parent_of_backend(&format!(" {address}({port})"), None),
            _ => parent_of_backend(" [local]", Some(pid)),
        })
    }

    /// Every setting that differs from the default, and those a measurement rests on.
    pub fn settings(&mut self) -> anyhow::Result<Vec<Setting>> {
        let list = |names: &[&str]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        // What this session set for itself is no setting of the server.
        let sql = format!(
            "SELECT name, current_setting(name) AS value FROM pg_settings
             WHERE name IN ({}) OR (name NOT IN ({}) AND setting IS DISTINCT FROM boot_val
               AND source NOT IN ('default', 'client', 'session', 'override', 'environment variable'))
             ORDER BY name",
            list(&ALWAYS_RECORDED),
            list(&NEVER_RECORDED)
        );
        let rows = self.session.peek("read the settings", &sql)?;
        rows.iter().map(|row| Ok(Setting { name: row.try_get("name")?, value: row.try_get("value")? })).collect()
    }

    /// Server version, `17.10`.
    pub fn version(&mut self) -> anyhow::Result<String> {
        let row = self.session.peek_one("read the version", "SELECT current_setting('server_version') AS version")?;
        let version: String = row.try_get("version")?;
        // Distributions add their own: `15.14 (Debian 15.14-0+deb12u1)`.
        Ok(version.split_whitespace().next().unwrap_or_default().to_owned())
    }

    fn count(&mut self, what: &str, sql: &str) -> anyhow::Result<u64> {
        let row = self.session.peek_one(what, sql)?;
        let found: i64 = row.try_get("found").with_context(|| format!("failed to {what}"))?;
        u64::try_from(found).with_context(|| format!("failed to {what}: {found} is negative"))
    }
}

fn stored_order(row: &PgRow) -> anyhow::Result<StoredOrder> {
    Ok(StoredOrder {
        id: row.try_get("id")?,
        user_id: row.try_get("user_id")?,
        amount: row.try_get("amount")?,
        currency: row.try_get("currency")?,
        created_at_us: row.try_get("created_at_us")?,
    })
}

/// The parent of the process whose title ends as a backend's with this peer does, if both are Postgres's.
fn parent_of_backend(peer: &str, pid: Option<i32>) -> Option<i32> {
    let processes = all_processes().ok()?;
    for process in processes.flatten() {
        if pid.is_some_and(|pid| pid != process.pid()) {
            continue;
        }
        let Ok(title) = process.cmdline() else { continue };
        if !is_backend_title(&title.join(" "), peer) {
            continue;
        }
        let parent = process.stat().ok()?.ppid;
        // The postmaster keeps the name of its program.
        let name = procfs::process::Process::new(parent).ok()?.stat().ok()?.comm;
        return ["postgres", "postmaster"].contains(&name.as_str()).then_some(parent);
    }
    None
}

/// `postgres: headroom: user database 127.0.0.1(54321) idle`, with or without the cluster's name.
fn is_backend_title(title: &str, peer: &str) -> bool {
    let title = format!("{} ", title.trim_end());
    title.starts_with("postgres: ") && title.contains(&format!("{peer} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_known_by_its_peer() {
        let peer = " 127.0.0.1(54321)";
        assert!(is_backend_title("postgres: headroom: headroom headroom 127.0.0.1(54321) idle", peer));
        assert!(is_backend_title("postgres: u d 127.0.0.1(54321)", peer));
        assert!(!is_backend_title("postgres: u d 127.0.0.1(5432) idle", peer));
        assert!(!is_backend_title("postgres: u d 27.127.0.0.1(54321) idle", peer));
        assert!(!is_backend_title("vim postgres: u d 127.0.0.1(54321) idle", peer));
        assert!(is_backend_title("postgres: u d [local] idle", " [local]"));
    }
}
