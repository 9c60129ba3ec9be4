//! Walks through a plan: one life a turn, one cell after another, each until it has a valid window or no attempt left.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::Timing;
use super::cell::{self, Bench};
use super::plan::{Cell, Plan, Turn};
use super::resume::Attempts;
use super::server_life::{ServerLife, Start};
use crate::interrupt::Interrupt;
use crate::peer::Spec;
use crate::postgres::Database;
use crate::progress::Progress;
use crate::record::{Run, Window, Writer};
use crate::setup::Environment;

/// A server that did not come up in this many turns one after another is not started again: each try may last until its
/// ready timeout.
const MOST_FAILED_STARTS: u32 = 2;

/// All that a run holds on to.
pub(super) struct Session<'a> {
    environment: &'a Environment,
    specs: BTreeMap<String, Spec>,
    run: Run,
    timing: Timing,
    writer: Writer,
    database: Database,
    postmaster: Option<i32>,
    attempts: Attempts,
    failed_starts: BTreeMap<String, u32>,
    refused: BTreeSet<String>,
    progress: &'a dyn Progress,
    interrupt: &'a Interrupt,
    done: Duration,
    expected: Duration,
}

impl<'a> Session<'a> {
    #[expect(clippy::too_many_arguments, reason = "called once; a struct of the same fields would say nothing more")]
    pub(super) fn new(
        environment: &'a Environment,
        specs: Vec<Spec>,
        run: Run,
        writer: Writer,
        mut database: Database,
        attempts: Attempts,
        progress: &'a dyn Progress,
        interrupt: &'a Interrupt,
    ) -> anyhow::Result<Self> {
        let refused = run.gates.iter().filter(|(_, gate)| !gate.passed && gate.error.is_none());
        Ok(Self {
            environment,
            specs: specs.into_iter().map(|spec| (spec.name.clone(), spec)).collect(),
            timing: Timing::of(&run.settings),
            refused: refused.map(|(name, _)| name.clone()).collect(),
            run,
            writer,
            postmaster: database.postmaster_pid()?,
            database,
            attempts,
            failed_starts: BTreeMap::new(),
            progress,
            interrupt,
            done: Duration::ZERO,
            expected: Duration::ZERO,
        })
    }

    /// Measures everything in the plan.
    pub(super) fn measure(&mut self, plan: &Plan) -> anyhow::Result<()> {
        self.expected = plan.expected(&self.timing);
        self.progress.advance(Duration::ZERO, self.expected);
        let mut before = Duration::ZERO;
        for turn in &plan.turns {
            self.interrupt.check()?;
            if !self.given_up(&turn.server) {
                self.turn(turn)?;
            }
            // Whatever happened in it, the turn is over now.
            before += turn.expected(&self.timing);
            self.advance_to(before);
        }
        Ok(())
    }

    fn given_up(&self, server: &str) -> bool {
        self.refused.contains(server)
            || self.failed_starts.get(server).is_some_and(|&failed| failed >= MOST_FAILED_STARTS)
    }

    /// All cells of one server in one round. Every life ends the turn or takes an attempt from a cell, so their number is
    /// bounded by cells × attempts.
    fn turn(&mut self, turn: &Turn) -> anyhow::Result<()> {
        let max_attempts = self.run.settings.max_attempts;
        let mut cells: VecDeque<&Cell> = turn.cells.iter().collect();
        while !cells.is_empty() && !self.given_up(&turn.server) {
            self.interrupt.check()?;
            let Some(mut life) = self.start(turn)? else { return Ok(()) };
            let outcome = self.live(&mut life, &mut cells);
            // Also after an error: nothing is left running, and the record says how the life ended.
            let gate = self.run.gates.get(&turn.server);
            let mut row = life.end(gate, &self.run.settings.limits, &mut self.database);
            if self.interrupt.requested().is_some() {
                row.failure = None;
            }
            let appended = self.writer.append_life(&row);
            outcome?;
            appended?;
            for void in &row.voids {
                self.progress
                    .note(&format!("{} round {}: {}: {}", turn.server, turn.round, void.reason.name, void.reason.text));
                self.attempts.void(row.life, &void.routes);
            }
            // Also what this life had finished, and lost by how it ended.
            cells = turn.cells.iter().filter(|cell| !self.attempts.finished(cell, max_attempts)).collect();
        }
        Ok(())
    }

    fn start(&mut self, turn: &Turn) -> anyhow::Result<Option<ServerLife>> {
        let rounds = self.run.settings.rounds;
        self.progress.step(&format!("round {} of {rounds}: starting {}", turn.round, turn.server));
        self.attempts.lives += 1;
        let spec = self.specs.get(&turn.server).expect("the plan is made of the servers of the run");
        let start = Start { environment: self.environment, spec, round: turn.round, number: self.attempts.lives };
        match ServerLife::start(start, &self.writer, &mut self.database, self.interrupt)? {
            Ok(life) => {
                self.failed_starts.remove(&turn.server);
                Ok(Some(life))
            }
            Err(row) => {
                self.writer.append_life(&row)?;
                *self.failed_starts.entry(turn.server.clone()).or_insert(0) += 1;
                let why = row.failure.map_or_else(String::new, |failure| failure.why);
                self.progress.note(&format!("{} did not start: {why}", turn.server));
                Ok(None)
            }
        }
    }

    /// Gate, then cells until they are finished or the server is gone.
    fn live(&mut self, life: &mut ServerLife, cells: &mut VecDeque<&Cell>) -> anyhow::Result<()> {
        let Some(server) = cells.front().map(|cell| cell.server.clone()) else { return Ok(()) };
        if !self.passes_gate(&server, life)? {
            return Ok(());
        }
        while let Some(&cell) = cells.front() {
            self.interrupt.check()?;
            let attempt = self.attempts.tried(cell) + 1;
            let bench = Bench {
                settings: &self.run.settings,
                timing: self.timing,
                postmaster: self.postmaster,
                interrupt: self.interrupt,
            };
            let window = cell::measure(&bench, cell, attempt, life, &mut self.database)?;
            if !window.valid {
                // A signal may have reached the server too: that is not the server's fault, and not a window.
                self.interrupt.check()?;
            }
            self.writer.append_window(&window)?;
            self.attempts.add(cell, window.valid, window.life);
            self.progress.step(&finished_cell(&window, self.run.settings.max_attempts));
            if self.attempts.finished(cell, self.run.settings.max_attempts) {
                cells.pop_front();
                self.advance_to(self.done + cell.expected(&self.timing));
            }
            if life.died.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Only on a server's first start; the verdict goes into `run.json`.
    fn passes_gate(&mut self, server: &str, life: &mut ServerLife) -> anyhow::Result<bool> {
        if self.run.gates.get(server).is_some_and(|gate| gate.passed) {
            return Ok(true);
        }
        self.progress.step(&format!("gate: {server}"));
        let gate = life.gate(&mut self.database, self.interrupt)?;
        let passed = gate.passed;
        if !passed {
            self.refused.insert(server.to_owned());
            self.progress.note(&format!("{server} did not pass the gate and is not measured"));
        }
        self.run.gates.insert(server.to_owned(), gate);
        self.writer.replace_run(&self.run)?;
        Ok(passed)
    }

    fn advance_to(&mut self, done: Duration) {
        self.done = done.min(self.expected);
        self.progress.advance(self.done, self.expected);
    }
}

/// One line a window.
fn finished_cell(window: &Window, max_attempts: u32) -> String {
    let Window { server, route, connections, round, attempt, .. } = window;
    let what = format!("round {round}: {server} {route} at {connections} connections");
    if window.valid {
        return match window.requests_per_s {
            Some(rate) => format!("{what}: {rate:.0} requests/s"),
            None => format!("{what}: done"),
        };
    }
    let reasons: Vec<&str> = window.invalid_reasons.iter().map(|reason| reason.name.as_str()).collect();
    let next = if *attempt < max_attempts { "measuring it again" } else { "no attempt left" };
    format!("{what}: void ({}), {next}", reasons.join(", "))
}
