//! Schema, rows and marker: what makes a database headroom's. The formulas here are the second statement of `dataset`;
//! `check` holds both against each other.

use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{bail, ensure};
use sqlx::Row;
use sqlx::migrate::Migrator;

use super::binaries::MIN_MAJOR;
use super::session::{READ_WAIT, Session};
use crate::dataset::{self, ORDERS, USERS};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

static MIGRATIONS: Migrator = sqlx::migrate!();

/// Version of the rows, as stored in the marker.
const SEED_FORMAT: i32 = 1;

/// Filling takes two seconds on a laptop; a slow disk under load gets its time.
const FILL_WAIT: Duration = Duration::from_mins(3);

/// What is in a database, as far as headroom cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nobody's: no table at all.
    Empty,
    /// Ours, but its preparation never came to its end.
    Unfinished,
    /// Ours, seeded.
    Complete,
    /// Somebody else's.
    Foreign,
}

/// Looks at a database, changing nothing.
pub(super) fn state(session: &mut Session) -> anyhow::Result<State> {
    check_version(session)?;
    let found = session.peek_one(
        "look for the marker",
        "SELECT to_regclass('headroom_marker') IS NOT NULL AS marked,
                to_regclass('_sqlx_migrations') IS NOT NULL AS migrated",
    )?;
    if found.try_get("marked")? {
        return read_marker(session);
    }
    // Relations that a person or program made, without those that belong to an extension.
    let relations = session.peek_one(
        "look for tables",
        "SELECT count(*) AS found FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
           AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'
           AND c.relname <> '_sqlx_migrations'
           AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
                           AND d.deptype = 'e')",
    )?;
    if relations.try_get::<i64, _>("found")? != 0 {
        return Ok(State::Foreign);
    }
    // Our own preparation makes this table first; with rows in it, it is the history of some other program.
    if found.try_get("migrated")? {
        let applied = session.peek_one("read the migrations", "SELECT count(*) AS found FROM _sqlx_migrations")?;
        if applied.try_get::<i64, _>("found")? != 0 {
            return Ok(State::Foreign);
        }
    }
    Ok(State::Empty)
}

fn check_version(session: &mut Session) -> anyhow::Result<()> {
    let row = session.peek_one(
        "read the version",
        "SELECT current_setting('server_version_num')::int / 10000 AS major, current_setting('server_version') AS version",
    )?;
    let (major, version): (i32, String) = (row.try_get("major")?, row.try_get("version")?);
    ensure!(
        u32::try_from(major).is_ok_and(|major| major >= MIN_MAJOR),
        "{} runs postgres {version}: headroom needs {MIN_MAJOR} or newer, whose counts are exact",
        session.target
    );
    Ok(())
}

fn read_marker(session: &mut Session) -> anyhow::Result<State> {
    let rows = session.peek("read the marker", "SELECT format, seed FROM headroom_marker")?;
    let Some(row) = rows.first() else { return Ok(State::Unfinished) };
    let (format, seed): (i32, String) = (row.try_get("format")?, row.try_get("seed")?);
    ensure!(
        format == SEED_FORMAT,
        "{} was prepared by another version of headroom (format {format}, this one needs {SEED_FORMAT}): \
         give an empty database",
        session.target
    );
    Ok(if seed == "complete" { State::Complete } else { State::Unfinished })
}

/// Fills an empty or half-prepared database: schema, marker, rows, statistics; then checks it.
pub(super) fn fill(session: &mut Session, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    progress.step("seeding 50,000 users and 200,000 orders");
    session.run("create the schema", READ_WAIT, interrupt, async |connection| {
        MIGRATIONS.run_direct(None, connection, false).await
    })?;
    session.execute_until("fill the tables", FILL_WAIT, interrupt, &fill_sql())?;
    // Frozen, so that no later window pays for what the first reader of a fresh row has to do.
    session.execute_until("vacuum users", FILL_WAIT, interrupt, "VACUUM (FREEZE, ANALYZE) users")?;
    session.execute_until("vacuum orders", FILL_WAIT, interrupt, "VACUUM (FREEZE, ANALYZE) orders")?;
    if let Some(fault) = check(session)? {
        bail!("{} was seeded wrongly: {fault}", session.target);
    }
    let done = "UPDATE headroom_marker SET seed = 'complete'";
    session.execute_until("mark the database as complete", READ_WAIT, interrupt, done)
}

/// One transaction: the rows are there in full or not at all.
fn fill_sql() -> String {
    format!(
        // The foreign key is not looked up for every order where the role may leave that out: `check` proves the rows, and
        // seeding is what people wait for at their first start.
        "SELECT set_config('session_replication_role', 'replica', true) WHERE current_setting('is_superuser') = 'on';
         TRUNCATE users, orders;
         INSERT INTO users (id, name, email, age, created_at)
         SELECT k, 'User ' || k, 'user' || k || '@example.com', 18 + (k * 7919) % 60, to_timestamp(1700000000 + (k - 1))
         FROM generate_series(1::bigint, {USERS}) AS k;
         INSERT INTO orders (id, user_id, amount, currency, created_at)
         SELECT k, 1 + (k * 48271) % 50000, ((k * 69621) % 50000) / 100.0,
                (ARRAY['USD', 'EUR', 'GBP'])[1 + k % 3], to_timestamp(1710000000 + 5 * k)
         FROM generate_series(1::bigint, {ORDERS}) AS k;
         SELECT setval(pg_get_serial_sequence('users', 'id'), {USERS});
         SELECT setval(pg_get_serial_sequence('orders', 'id'), {ORDERS});"
    )
}

/// Rows that are compared one by one: both ends, the contract's examples and some in between.
const SPOT_USERS: [u32; 8] = [1, 2, 121, 122, 123, 124, 4242, USERS];
const SPOT_ORDERS: [u32; 6] = [1, 2, 3, 77_777, 199_999, ORDERS];

/// Compares the seeded rows with `dataset`; `Some(what differs)`. Changes nothing, takes some 50 ms.
///
/// Orders above the seed are not looked at: they are what a run inserted.
pub(super) fn check(session: &mut Session) -> anyhow::Result<Option<String>> {
    // Nothing here may fail on a damaged database: a missing table is an answer.
    let tables = session.peek_one(
        "look for the tables",
        "SELECT to_regclass('users') IS NOT NULL AND to_regclass('orders') IS NOT NULL
            AND to_regclass('orders_user_id_idx') IS NOT NULL AS present",
    )?;
    if !tables.try_get::<bool, _>("present")? {
        return Ok(Some("a table or index is missing".to_owned()));
    }
    let (actual, expected) = (stored(session)?, computed());
    Ok(expected
        .iter()
        .zip(&actual)
        .find(|(expected, actual)| expected != actual)
        .map(|((what, expected), (_, actual))| format!("{what} is {actual}, not {expected}")))
}

type Facts = Vec<(String, String)>;

/// What the database says about its rows.
fn stored(session: &mut Session) -> anyhow::Result<Facts> {
    let sums = session.peek_one(
        "check the rows",
        &format!(
            "SELECT * FROM (SELECT count(*)::text AS users, coalesce(sum(age), 0)::text AS ages,
                        coalesce(sum(length(name) + length(email)), 0)::text AS text_length,
                        coalesce(sum(extract(epoch FROM created_at))::bigint, 0)::text AS user_times FROM users) u,
                 (SELECT count(*)::text AS orders, coalesce(sum(amount), 0)::text AS amounts,
                        coalesce(sum(user_id), 0)::text AS owners,
                        (count(*) FILTER (WHERE currency = 'USD'))::text AS dollars,
                        coalesce(sum(extract(epoch FROM created_at))::bigint, 0)::text AS order_times
                  FROM orders WHERE id <= {ORDERS}) o"
        ),
    )?;
    let columns =
        ["users", "ages", "text_length", "user_times", "orders", "amounts", "owners", "dollars", "order_times"];
    let mut facts = Facts::new();
    for name in columns {
        facts.push((name.to_owned(), sums.try_get(name)?));
    }
    let spots = session.peek(
        "check some rows",
        &format!(
            "SELECT * FROM (SELECT 'user ' || id AS what,
                    concat_ws('|', name, email, age, extract(epoch FROM created_at)::bigint) AS fact
             FROM users WHERE id IN ({}) ORDER BY id) u
             UNION ALL SELECT * FROM (SELECT 'order ' || id,
                    concat_ws('|', user_id, amount, currency, extract(epoch FROM created_at)::bigint)
             FROM orders WHERE id IN ({}) ORDER BY id) o",
            list(&SPOT_USERS),
            list(&SPOT_ORDERS)
        ),
    )?;
    for row in spots {
        facts.push((row.try_get("what")?, row.try_get("fact")?));
    }
    Ok(facts)
}

/// The same from `dataset`, worked out once a process: every acquisition checks.
fn computed() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(compute)
}

fn compute() -> Facts {
    let cents = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
    let (mut ages, mut text_length, mut user_times) = (0_u64, 0_usize, 0_i64);
    for user in (1..=USERS).map(dataset::user) {
        ages += u64::from(user.age);
        text_length += user.name.len() + user.email.len();
        user_times += user.created_at_s;
    }
    let (mut amounts_cents, mut owners, mut dollars, mut order_times) = (0_u64, 0_u64, 0_u64, 0_i64);
    for order in (1..=ORDERS).map(dataset::order) {
        amounts_cents += order.amount_cents;
        owners += u64::from(order.user_id);
        dollars += u64::from(order.currency == "USD");
        order_times += order.created_at_s;
    }
    let mut facts: Facts = [
        ("users", USERS.to_string()),
        ("ages", ages.to_string()),
        ("text_length", text_length.to_string()),
        ("user_times", user_times.to_string()),
        ("orders", ORDERS.to_string()),
        ("amounts", cents(amounts_cents)),
        ("owners", owners.to_string()),
        ("dollars", dollars.to_string()),
        ("order_times", order_times.to_string()),
    ]
    .map(|(what, value)| (what.to_owned(), value))
    .into();
    for user in SPOT_USERS.map(dataset::user) {
        let row = format!("{}|{}|{}|{}", user.name, user.email, user.age, user.created_at_s);
        facts.push((format!("user {}", user.id), row));
    }
    for order in SPOT_ORDERS.map(dataset::order) {
        let amount = cents(order.amount_cents);
        let row = format!("{}|{amount}|{}|{}", order.user_id, order.currency, order.created_at_s);
        facts.push((format!("order {}", order.id), row));
    }
    facts
}

fn list(ids: &[u32]) -> String {
    ids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Makes a database of one's own ready: an empty one is filled, a prepared one checked and its orders reset.
/// Any other is refused before a statement that changes something.
pub fn prepare(url: &str, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    let mut session = Session::connect(url)?;
    match state(&mut session)? {
        State::Foreign => bail!(
            "{} has tables that are not headroom's, and nothing was changed in it: give an empty database",
            session.target
        ),
        State::Empty | State::Unfinished => fill(&mut session, progress, interrupt),
        State::Complete => {
            if let Some(fault) = check(&mut session)? {
                bail!("{} is damaged ({fault}): drop it and give an empty database", session.target);
            }
            drop(session);
            super::Database::connect(url)?.reset_orders()
        }
    }
}
