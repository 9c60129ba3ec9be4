//! The databases of the private cluster: the seed, made once and closed; the main one and those of tests, copied from it.

use std::time::Duration;

use anyhow::{bail, ensure};
use sqlx::Row;

use super::cluster::Main;
use super::owner::Owner;
use super::seed::{self, State};
use super::session::{Session, quoted};
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// What the peers and the server work on.
pub(super) const MAIN: &str = "headroom";

/// Where every other database is copied from. Nobody may connect to it.
const SEED: &str = "headroom_seed";

/// The seed while it is being made: its right name says that it is complete.
const SEED_UNFINISHED: &str = "headroom_seed_new";

/// Always there, for statements about databases.
const MAINTENANCE: &str = "postgres";

/// Marks databases that may be dropped when their maker is gone.
const TEMPORARY: &str = "headroom: temporary";

/// Copying 40 MB of tables or dropping them, which runs a checkpoint.
const COPY_WAIT: Duration = Duration::from_mins(2);

/// Longest name Postgres keeps.
const NAME_BYTES: usize = 63;

/// Makes the seed and the main database ready. Under the start lock.
pub(super) fn ensure(
    owner: &Owner,
    main: Main,
    others: &[String],
    progress: &dyn Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut admin = Session::connect(&owner.url(MAINTENANCE))?;
    if others.is_empty() {
        drop_leftovers(&mut admin, interrupt)?;
    }
    if !is_usable(&mut admin, SEED)? {
        make_seed(owner, &mut admin, progress, interrupt)?;
    }
    let present = is_usable(&mut admin, MAIN)?;
    let fault = match (main, present) {
        (Main::Recreated, _) => Some("a fresh one was asked for".to_owned()),
        (Main::Checked, false) => Some("it is missing".to_owned()),
        (Main::Checked, true) => main_fault(owner)?,
    };
    let Some(fault) = fault else { return Ok(()) };
    if present && !others.is_empty() {
        bail!(
            "the private database must be made anew ({fault}) but {} others use it (process {}): end them first",
            others.len(),
            others.join(", ")
        );
    }
    if present && main == Main::Checked {
        progress.note(&format!("the private database is damaged ({fault}) and is made anew"));
    }
    progress.step("copying the database from its seed");
    drop_any(&mut admin, MAIN, interrupt)?;
    copy_seed(&mut admin, MAIN, interrupt)
}

/// What is wrong with the main database.
fn main_fault(owner: &Owner) -> anyhow::Result<Option<String>> {
    let mut session = Session::connect(&owner.url(MAIN))?;
    match seed::state(&mut session) {
        Ok(State::Complete) => seed::check(&mut session),
        Ok(_) => Ok(Some("its marker is gone".to_owned())),
        Err(error) => Ok(Some(error.to_string())),
    }
}

/// Whether a database exists and was not left half-dropped by a crash, which Postgres notes as a limit of -2.
fn is_usable(admin: &mut Session, name: &str) -> anyhow::Result<bool> {
    let sql = format!("SELECT datconnlimit <> -2 AS usable FROM pg_database WHERE datname = {}", quoted(name));
    let rows = admin.peek("look for a database", &sql)?;
    Ok(rows.first().map(|row| row.try_get("usable")).transpose()?.unwrap_or(false))
}

/// Builds the seed under another name and renames it when it is checked and closed.
fn make_seed(owner: &Owner, admin: &mut Session, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    drop_any(admin, SEED_UNFINISHED, interrupt)?;
    drop_any(admin, SEED, interrupt)?;
    let create = format!("CREATE DATABASE {SEED_UNFINISHED} TEMPLATE template0");
    admin.execute_until("create the seed", COPY_WAIT, interrupt, &create)?;
    seed::fill(&mut Session::connect(&owner.url(SEED_UNFINISHED))?, progress, interrupt)?;
    // A session in it, even a curious one, would stop copies from being made.
    for sql in [
        format!("ALTER DATABASE {SEED_UNFINISHED} WITH ALLOW_CONNECTIONS false"),
        format!("ALTER DATABASE {SEED_UNFINISHED} RENAME TO {SEED}"),
    ] {
        admin.execute_until("finish the seed", COPY_WAIT, interrupt, &sql)?;
    }
    Ok(())
}

fn drop_any(admin: &mut Session, name: &str, interrupt: &Interrupt) -> anyhow::Result<()> {
    admin.execute_until(
        &format!("drop {name}"),
        COPY_WAIT,
        interrupt,
        &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
    )
}

fn copy_seed(admin: &mut Session, name: &str, interrupt: &Interrupt) -> anyhow::Result<()> {
    // Through the log: copying files would run two checkpoints, in somebody's window.
    let sql = format!("CREATE DATABASE {name} TEMPLATE {SEED} STRATEGY wal_log");
    admin.execute_until(&format!("create {name}"), COPY_WAIT, interrupt, &sql)
}

/// Temporary databases whose makers are gone, since nobody else holds a share.
fn drop_leftovers(admin: &mut Session, interrupt: &Interrupt) -> anyhow::Result<()> {
    let sql = format!(
        "SELECT datname::text AS name FROM pg_database WHERE shobj_description(oid, 'pg_database') = {}",
        quoted(TEMPORARY)
    );
    for row in admin.peek("look for temporary databases", &sql)? {
        let name: String = row.try_get("name")?;
        if check_name(&name).is_ok() {
            drop_any(admin, &name, interrupt)?;
        }
    }
    Ok(())
}

/// Copies the seed under a name that can be dropped again.
pub(super) fn create_temporary(owner: &Owner, name: &str) -> anyhow::Result<String> {
    check_name(name)?;
    let calm = Interrupt::default();
    let mut admin = Session::connect(&owner.url(MAINTENANCE))?;
    copy_seed(&mut admin, name, &calm)?;
    let comment = format!("COMMENT ON DATABASE {name} IS {}", quoted(TEMPORARY));
    admin.execute("mark a database as temporary", COPY_WAIT, &comment)?;
    Ok(owner.url(name))
}

pub(super) fn drop_temporary(owner: &Owner, name: &str) -> anyhow::Result<()> {
    check_name(name)?;
    drop_any(&mut Session::connect(&owner.url(MAINTENANCE))?, name, &Interrupt::default())
}

/// Names that need no quotes in SQL or in a URL, and are none of the cluster's own.
fn check_name(name: &str) -> anyhow::Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_');
    ensure!(
        starts_well && name.len() <= NAME_BYTES && name.bytes().all(plain),
        "{name:?} is no name for a database here: lower-case letters, digits and _, at most {NAME_BYTES}"
    );
    let reserved = [MAIN, SEED, SEED_UNFINISHED, MAINTENANCE, "template0", "template1"];
    ensure!(!reserved.contains(&name), "{name:?} is one of the cluster's own databases: take another name");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_not_the_clusters_own() {
        for name in ["test_1", "_x", "a"] {
            check_name(name).unwrap();
        }
        let long = "a".repeat(NAME_BYTES + 1);
        for name in
            ["", "1a", "A", "a-b", "a\"b", "a;b", "ü", "headroom", "headroom_seed", "postgres", "template1", &long]
        {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
