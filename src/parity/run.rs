//! Runs the checks in order and bounds the whole: core first, orders only once the data is known to be the contract's,
//! and nothing more once a server has stopped answering.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::check::{Check, Kind};
use super::client::{Connection, Transcript};
use super::session::{Fault, Session};
use super::values::Values;
use super::{Level, Options, Outcome, Verdict, checks};
use crate::interrupt::Interrupt;

/// Checks in a row without a reply after which the server is asked whether it lives.
const SILENT_IN_A_ROW: u32 = 3;
/// For the whole run, whatever the timeout of a reply: a good server needs two to five seconds.
const RUN_LIMIT: Duration = Duration::from_mins(1);

/// Why checks that may store orders are not run.
const NO_WRITES: &str = "not run: the reads did not prove that the data behind the server is the contract's, \
    and a check may store orders; repair the reads, or give --allow-writes where the data may be changed";
const STOPPED: &str = "not run: the server stopped answering";
const OUT_OF_TIME: &str = "not run: the gate had used its 60 s; the server answers too slowly";

/// What of the gate to run, and with which values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scope {
    /// Of the values: a verdict names its own, so that a run can be repeated.
    pub seed: u64,
    /// The strict checks too; they gate nothing and take most of the time.
    pub strict: bool,
}

/// Runs every check, with values of a new seed.
///
/// The orders it stores stay: whoever measures next resets the database.
///
/// # Errors
/// The gate could not run at all: no connection, an interrupt, or a database that failed while being read.
pub fn run(options: Options<'_>, interrupt: &Interrupt) -> anyhow::Result<Verdict> {
    run_scope(options, Scope { seed: rand::random(), strict: true }, interrupt)
}

/// Runs the checks of this scope.
///
/// # Errors
/// As [`run`].
pub fn run_scope(options: Options<'_>, scope: Scope, interrupt: &Interrupt) -> anyhow::Result<Verdict> {
    run_only(options, scope, &[], interrupt)
}

/// Runs the checks of this scope that one of `only` names: an id, or its first words; none names all. Checks that may
/// store orders bring the reads along that show whose data is behind the server.
///
/// # Errors
/// As [`run`], and a name that no check has.
pub fn run_only(options: Options<'_>, scope: Scope, only: &[String], interrupt: &Interrupt) -> anyhow::Result<Verdict> {
    let Scope { seed, strict } = scope;
    interrupt.check()?;
    let (address, allow_writes) = (options.address, options.allow_writes);
    if let Err(refused) = Connection::open(address, options.timeout) {
        bail!("{refused}: start the server, or give the address it listens on");
    }
    let values = Values::from_seed(seed);
    let mut checks = checks::all(&values, &options.jwt_secret);
    let core = |checks: &[Check]| checks.iter().filter(|check| check.level == Level::Core).count();
    let all = core(&checks);
    checks.retain(|check| strict || check.level == Level::Core);
    select(&mut checks, only)?;
    let left_out = all - core(&checks);
    // Stable: within a level the order of the tables stays. A strict check may upset a server, so it waits.
    checks.sort_by_key(|check| check.level == Level::Strict);
    let session = Session::new(options, values);
    let mut run = Run { session, allow_writes, started: Instant::now(), silent: 0, proofs: Proofs::default() };
    let mut outcomes = Vec::with_capacity(checks.len());
    for check in &checks {
        interrupt.check()?;
        let (failure, skipped) = match run.one(check) {
            Ok(()) => (None, None),
            Err(Fault::Differs(text) | Fault::Silent(text)) => (Some(text), None),
            Err(Fault::Skipped(why)) => (None, Some(why.to_owned())),
            Err(Fault::Gate(error)) => return Err(error).with_context(|| format!("failed to run {}", check.id)),
        };
        let (id, proves) = (check.id.to_owned(), check.proves.to_owned());
        let shown = failure.as_ref().and_then(|_| run.session.transcript()).map(Transcript::shown);
        let (request, reply) = shown.unzip();
        outcomes.push(Outcome { id, level: check.level, proves, failure, request, reply, skipped });
    }
    Ok(Verdict { seed, left_out, orders_stored: run.session.stored, outcomes })
}

/// Refuses a name that no check has, before anything is connected to.
///
/// # Errors
/// Names it.
pub fn ensure_named(only: &[String]) -> anyhow::Result<()> {
    select(&mut checks::all(&Values::from_seed(0), ""), only)
}

/// A check goes by its id and by the first words of it: `order-refuses` names all that begin so.
pub fn is_named(id: &str, name: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Keeps the checks that one of `only` names, and what those need.
fn select(checks: &mut Vec<Check>, only: &[String]) -> anyhow::Result<()> {
    if only.is_empty() {
        return Ok(());
    }
    if let Some(unknown) = only.iter().find(|name| !checks.iter().any(|check| is_named(check.id, name))) {
        bail!("no check is called {unknown:?}: `headroom parity --list` names them; an id or its first words will do");
    }
    let asked = |check: &Check| only.iter().any(|name| is_named(check.id, name));
    let writes = checks.iter().any(|check| check.kind == Kind::Writes && asked(check));
    checks.retain(|check| asked(check) || (writes && check.kind == Kind::ShowsData));
    Ok(())
}

struct Run<'a> {
    session: Session<'a>,
    allow_writes: bool,
    started: Instant,
    silent: u32,
    proofs: Proofs,
}

/// Outcomes of the reads that show whose data is behind the server.
#[derive(Debug, Default)]
struct Proofs {
    good: u32,
    bad: u32,
}

impl Run<'_> {
    fn one(&mut self, check: &Check) -> Result<(), Fault> {
        if self.silent >= SILENT_IN_A_ROW {
            return Err(Fault::Silent(STOPPED.to_owned()));
        }
        if self.started.elapsed() > RUN_LIMIT {
            return Err(Fault::Silent(OUT_OF_TIME.to_owned()));
        }
        if check.kind == Kind::Writes {
            self.may_write()?;
        }
        self.session.begin(check.level);
        let result = check.run(&mut self.session);
        self.silent = if matches!(result, Err(Fault::Silent(_))) { self.silent + 1 } else { 0 };
        // Checks of odd framing may all be met with silence by a server that is well: it is asked before it is given up.
        if self.silent == SILENT_IN_A_ROW && self.session.server_answers() {
            self.silent = 0;
        }
        if check.kind == Kind::ShowsData {
            if result.is_ok() { self.proofs.good += 1 } else { self.proofs.bad += 1 }
        }
        result
    }

    /// Orders go only into data that is the contract's. A known database carries its marker, so one read that came
    /// from such data is enough there; without it every read must have.
    fn may_write(&mut self) -> Result<(), Fault> {
        let Proofs { good, bad } = self.proofs;
        let known = self.session.database.is_some();
        let proven = if known { good > 0 } else { good > 0 && bad == 0 };
        if !proven && !self.allow_writes {
            return Err(Fault::Differs(NO_WRITES.to_owned()));
        }
        if let (Some(database), None) = (self.session.database.as_mut(), self.session.orders_before) {
            self.session.orders_before = Some(database.order_count().map_err(Fault::Gate)?);
        }
        Ok(())
    }
}
