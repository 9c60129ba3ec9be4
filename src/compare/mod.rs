//! Gate → warm-up → rotated rounds → record. Formats nothing: the report is made from the record.
//!
//! One run measures every cell (server × route × connections) once a round. `plan` decides in which order, `session` walks
//! through it, `server_life` starts, gates and stops servers, `cell` measures one window and `accounting` says what it cost
//! and what speaks against it. Everything measured goes into the record at once, so that a run can end at any moment.

mod accounting;
mod cell;
mod facts;
mod options;
mod plan;
mod planned;
mod resume;
mod server_life;
mod session;
mod suite;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use options::{Options, Profile, results_folder};
pub use planned::Planned;
pub use suite::Suite;

use crate::host::HostCpu;
use crate::interrupt::Interrupt;
use crate::peer;
use crate::postgres::{self, Database};
use crate::progress::Progress;
use crate::record::{Limits, Record, Run, Settings, Writer};
use crate::setup::{self, MeasureLock};
use plan::Plan;
use resume::Attempts;
use session::Session;

/// How a run ended that was not interrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The record's folder.
    pub dir: PathBuf,
    /// Cells asked for, over all rounds.
    pub cells: usize,
    /// Cells without a valid window, those of failed servers included.
    pub cells_without_result: usize,
    /// Servers that failed the gate, did not start or died, by name.
    pub failed_servers: Vec<String>,
}

impl Finished {
    /// No server failed, and something was measured. Single void cells are the host's doing: the report names them.
    pub fn good(&self) -> bool {
        self.cells_without_result < self.cells && self.failed_servers.is_empty()
    }
}

/// Sets up what is missing, then measures.
///
/// # Errors
/// [`crate::interrupt::Interrupted`] after a signal, with everything finished in the record and nothing left running; one line otherwise.
pub fn run(options: &Options, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Finished> {
    let outcome = prepare_and_measure(options, progress, interrupt);
    // Whatever broke after a signal (an npm that got it too, a server) is the signal's doing.
    if outcome.is_err() {
        interrupt.check()?;
    }
    outcome
}

fn prepare_and_measure(options: &Options, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Finished> {
    // Whatever can be refused is refused before anything is installed or started.
    let before = options.resume.as_deref().map(Record::read).transpose()?;
    let Planned { settings, servers: specs, dir, .. } = Planned::after(options, before.as_ref())?;

    let home = postgres::default_home();
    let _lock = MeasureLock::take(&home)?;
    let environment = setup::prepare(&options.setup, progress, interrupt)?;
    for ended in peer::sweep(&environment.home) {
        progress.note(&ended);
    }
    for spec in &specs {
        let log = environment.home.join(format!("build-{}.log", spec.name));
        peer::build(spec, &environment.bench, &log, progress, interrupt)?;
    }
    let mut database = Database::connect(&environment.database_url)?;
    let now = facts::describe(&specs, settings, &environment, &mut database)?;
    let (writer, run, plan, attempts) = if before.is_some() {
        reopen(&dir, &now)?
    } else {
        let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
        let plan = Plan::of(&now.settings, &names);
        (Writer::create(&dir, &now)?, now, plan, Attempts::default())
    };
    if run.debug_build {
        progress.note("this is a debug build: its native rows are no ceiling, measure with `cargo run --release`");
    }
    progress.note(&format!("measuring {} cells into {}", plan.cells(), dir.display()));
    warn_of_others(&run.settings.limits, progress, interrupt)?;
    let mut session = Session::new(&environment, specs, run, writer, database, attempts, progress, interrupt)?;
    let outcome = session.measure(&plan);
    progress.finish();
    finish(outcome, &dir, progress)
}

/// Looks at the host while nothing of ours runs: better said now than after a table of void windows.
fn warn_of_others(limits: &Limits, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<()> {
    const LOOK: Duration = Duration::from_secs(1);
    let Ok(before) = HostCpu::sample() else { return Ok(()) };
    interrupt.sleep(LOOK)?;
    let shares = HostCpu::sample().ok().and_then(|after| after.shares_since(before));
    if let Some(shares) = shares.filter(|shares| shares.busy > limits.max_foreign_cpu_share) {
        progress.note(&format!(
            "other processes use {:.0} % of this host now: windows in which they use more than {:.0} % will be void, end them first",
            shares.busy * 100.0,
            limits.max_foreign_cpu_share * 100.0
        ));
    }
    Ok(())
}

/// Opens an interrupted record and plans what it lacks.
fn reopen(dir: &Path, now: &Run) -> anyhow::Result<(Writer, Run, Plan, Attempts)> {
    let (writer, record) = Writer::resume(dir)?;
    if let Some(difference) = resume::difference(&record.run, now) {
        anyhow::bail!("{} cannot be continued: {difference}; start a new run instead", dir.display());
    }
    let attempts = Attempts::of(&record);
    let names: Vec<String> = record.run.servers.iter().map(|server| server.name.clone()).collect();
    let plan = Plan::of(&record.run.settings, &names)
        .without(|cell| attempts.finished(cell, record.run.settings.max_attempts));
    let mut run = record.run;
    run.resumed_at.push(now.started_at);
    writer.replace_run(&run)?;
    Ok((writer, run, plan, attempts))
}

/// Whatever happened, the record is read back: the summary says what is on disk.
fn finish(outcome: anyhow::Result<()>, dir: &Path, progress: &dyn Progress) -> anyhow::Result<Finished> {
    let record = Record::read(dir);
    if let Err(error) = outcome {
        if let Ok(record) = &record {
            let (measured, all) =
                (Attempts::of(record).cells_with_result(), resume::cells(&record.run.settings, &record.run));
            progress.note(&format!(
                "{measured} of {all} cells are measured and kept: continue with `headroom compare --resume {}`",
                dir.display()
            ));
        }
        return Err(error);
    }
    let record = record?;
    let attempts = Attempts::of(&record);
    let cells = resume::cells(&record.run.settings, &record.run);
    Ok(Finished {
        dir: dir.to_owned(),
        cells,
        cells_without_result: cells - attempts.cells_with_result(),
        failed_servers: resume::failed_servers(&record),
    })
}

/// Settings that every part of a run looks at, as durations.
#[derive(Debug, Clone, Copy)]
struct Timing {
    warmup: Duration,
    first_warmup: Duration,
    window: Duration,
    pause: Duration,
}

impl Timing {
    fn of(settings: &Settings) -> Self {
        let duration = Duration::from_secs_f64;
        Self {
            warmup: duration(settings.warmup_s),
            first_warmup: duration(settings.first_warmup_s),
            window: duration(settings.window_s),
            pause: duration(settings.pause_s),
        }
    }
}
