//! What a record already holds: which cells are finished, how often they were tried, whether a run may go on. Pure.

use std::collections::BTreeMap;

use super::plan::Cell;
use crate::contract::Route;
use crate::record::{Record, Run, Settings};

/// Windows of each cell so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attempts {
    tried: BTreeMap<Cell, u32>,
    /// With the life that the valid window belongs to.
    valid: BTreeMap<Cell, u32>,
    /// The last life's number.
    pub(super) lives: u32,
}

impl Attempts {
    pub(super) fn of(record: &Record) -> Self {
        let mut attempts = Self::default();
        for window in &record.windows {
            let Ok(route) = window.route.parse::<Route>() else { continue };
            let (round, connections) = (window.round, window.connections);
            let cell = Cell { round, server: window.server.clone(), route, connections };
            attempts.add(&cell, window.valid, window.life);
            attempts.lives = attempts.lives.max(window.life);
        }
        let lives = record.lives.iter().map(|life| life.life).max().unwrap_or(0);
        attempts.lives = attempts.lives.max(lives);
        attempts
    }

    /// Counts one more window; which one of its cell it is, from 1.
    pub(super) fn add(&mut self, cell: &Cell, valid: bool, life: u32) -> u32 {
        if valid {
            self.valid.insert(cell.clone(), life);
        }
        let tried = self.tried.entry(cell.clone()).or_insert(0);
        *tried += 1;
        *tried
    }

    /// A life ended and voids the windows it had on these routes.
    pub(super) fn void(&mut self, life: u32, routes: &[String]) {
        self.valid.retain(|cell, of| *of != life || !routes.iter().any(|route| route == cell.route.name()));
    }

    pub(super) fn tried(&self, cell: &Cell) -> u32 {
        self.tried.get(cell).copied().unwrap_or(0)
    }

    /// Has a valid window, or had its chances.
    pub(super) fn finished(&self, cell: &Cell, max_attempts: u32) -> bool {
        self.valid.contains_key(cell) || self.tried(cell) >= max_attempts
    }

    pub(super) fn cells_with_result(&self) -> usize {
        self.valid.len()
    }
}

/// Cells of a run, over all rounds.
pub(super) fn cells(settings: &Settings, run: &Run) -> usize {
    run.servers.len() * settings.routes.len() * settings.connections.len() * settings.rounds as usize
}

/// Servers that failed the gate or in one of their lives, in the run's order.
pub(super) fn failed_servers(record: &Record) -> Vec<String> {
    let refused = |name: &str| record.run.gates.get(name).is_some_and(|gate| !gate.passed);
    let died = |name: &str| record.lives.iter().any(|life| life.server == name && life.failure.is_some());
    let names = record.run.servers.iter().map(|server| server.name.clone());
    names.filter(|name| refused(name) || died(name)).collect()
}

/// What makes windows measured now another experiment than those in the record, in words; `None` where nothing does.
pub(super) fn difference(then: &Run, now: &Run) -> Option<String> {
    let changed =
        |what: &str, then: &str, now: &str| (then != now).then(|| format!("{what} was {then} and is {now} now"));
    let commit = |run: &Run| run.git_commit.clone().unwrap_or_else(|| "unknown".to_owned());
    let build = |run: &Run| if run.debug_build { "debug" } else { "release" };
    changed("headroom's version", &then.headroom_version, &now.headroom_version)
        .or_else(|| changed("the build", build(then), build(now)))
        .or_else(|| changed("the commit", &commit(then), &commit(now)))
        .or_else(|| changed("Postgres", &then.postgres.version, &now.postgres.version))
        .or_else(|| {
            (then.postgres.settings != now.postgres.settings).then(|| "Postgres has other settings now".to_owned())
        })
        .or_else(|| server_difference(then, now))
        .or_else(|| host_difference(then, now))
}

fn server_difference(then: &Run, now: &Run) -> Option<String> {
    let different = then.servers.iter().zip(&now.servers).find(|(then, now)| then != now);
    different.map(|(then, _)| format!("{} has another version or other properties now", then.name))
}

/// Depends on the shell that started the run and decides nothing that a window does not show.
const SHELL_FACTS: [&str; 2] = ["file_limit", "file_limit_hard"];

/// Names the fact, since a host has many. A fact that only one version of the program reads is no difference.
fn host_difference(then: &Run, now: &Run) -> Option<String> {
    let facts = then.host.as_object()?.iter().filter(|(name, _)| !SHELL_FACTS.contains(&name.as_str()));
    let mut pairs = facts.filter_map(|(name, then)| Some((name, then, now.host.get(name.as_str())?)));
    let (name, then, now) = pairs.find(|(_, then, now)| then != now)?;
    Some(format!("the host's {name} was {then} and is {now} now"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::plan::Plan;
    use crate::record::sample::{life, native, peer, record, run, window};
    use crate::record::{Cores, Reason, Window};

    fn a_run() -> Run {
        let servers = vec![
            native("native", "tokio-postgres", Cores::One),
            peer("express-node", "node", "express", "postgres.js"),
        ];
        run(servers, &["health", "user"], "quick", 2)
    }

    fn names(run: &Run) -> Vec<String> {
        run.servers.iter().map(|server| server.name.clone()).collect()
    }

    fn rest(record: &Record) -> Vec<(u32, String, &'static str)> {
        let attempts = Attempts::of(record);
        let plan = Plan::of(&record.run.settings, &names(&record.run));
        let plan = plan.without(|cell| attempts.finished(cell, record.run.settings.max_attempts));
        plan.turns.into_iter().flat_map(|turn| turn.cells).map(|c| (c.round, c.server, c.route.name())).collect()
    }

    fn void(mut window: Window, attempt: u32) -> Window {
        window.attempt = attempt;
        window.invalidate(&Reason::new("foreign_cpu", "9 %"));
        window
    }

    #[test]
    fn a_resumed_plan_is_the_plan_minus_the_finished_cells() {
        let windows = vec![
            window("native", "health", 1, 60_000.0),
            window("native", "user", 1, 60_000.0),
            // One chance left, then none.
            void(window("express-node", "health", 1, 20_000.0), 1),
            void(window("express-node", "user", 1, 20_000.0), 1),
            void(window("express-node", "user", 1, 20_000.0), 2),
            window("express-node", "health", 2, 20_000.0),
        ];
        let record = record(a_run(), windows, vec![life("native", 1, 1), life("express-node", 1, 4)]);
        let native = "native".to_owned();
        let express = "express-node".to_owned();
        assert_eq!(
            rest(&record),
            [(1, express.clone(), "health"), (2, express, "user"), (2, native.clone(), "user"), (2, native, "health")]
        );
        let attempts = Attempts::of(&record);
        assert_eq!((attempts.lives, attempts.cells_with_result(), cells(&record.run.settings, &record.run)), (4, 3, 8));
    }

    #[test]
    fn attempts_count_on_where_the_record_stopped() {
        let record = record(a_run(), vec![void(window("native", "user", 1, 6.0), 1)], Vec::new());
        let mut attempts = Attempts::of(&record);
        let cell = Cell { round: 1, server: "native".to_owned(), route: Route::User, connections: 100 };
        assert_eq!((attempts.tried(&cell), attempts.add(&cell, true, 1)), (1, 2));
        assert!(attempts.finished(&cell, 9));
    }

    #[test]
    fn a_life_that_broke_a_rule_gives_its_cells_back() {
        let mut attempts = Attempts::default();
        let cell = |route| Cell { round: 1, server: "express-node".to_owned(), route, connections: 100 };
        for (route, life) in [(Route::Health, 1), (Route::User, 1), (Route::List, 2)] {
            attempts.add(&cell(route), true, life);
        }
        attempts.void(1, &["user".to_owned(), "list".to_owned()]);
        let finished = [Route::Health, Route::User, Route::List].map(|route| attempts.finished(&cell(route), 2));
        assert_eq!(finished, [true, false, true]);
        attempts.add(&cell(Route::User), true, 3);
        attempts.void(3, &["user".to_owned()]);
        assert!(attempts.finished(&cell(Route::User), 2), "it had its chances");
        assert_eq!(attempts.cells_with_result(), 2);
    }

    type Change = (fn(&mut Run), &'static str);

    #[test]
    fn an_unchanged_surrounding_can_be_continued_and_a_changed_one_is_named() {
        let then = a_run();
        let mut now = a_run();
        (now.started_at, now.gates) = (crate::record::sample::at(9_999), BTreeMap::new());
        assert_eq!(difference(&then, &now), None);
        let changes: [Change; 6] = [
            (|run| run.headroom_version = "0.2.0".to_owned(), "headroom's version was 0.1.0 and is 0.2.0 now"),
            (|run| run.git_commit = None, "is unknown now"),
            (|run| run.postgres.version = "17.11".to_owned(), "Postgres was 17.10 and is 17.11 now"),
            (|run| run.postgres.settings.clear(), "other settings"),
            (
                |run| drop(run.servers[1].versions.insert("node".to_owned(), "26.11".to_owned())),
                "express-node has another",
            ),
            (|run| run.host["cpus_allowed"] = 4.into(), "cpus_allowed was 2 and is 4 now"),
        ];
        for (change, expected) in changes {
            let mut other = now.clone();
            change(&mut other);
            let found = difference(&then, &other).unwrap();
            assert!(found.contains(expected), "{found}");
        }
    }

    #[test]
    fn failed_servers_are_named_once() {
        let mut record = record(a_run(), Vec::new(), vec![life("native", 1, 1)]);
        assert!(failed_servers(&record).is_empty());
        record.run.gates.get_mut("express-node").unwrap().passed = false;
        assert_eq!(failed_servers(&record), ["express-node"]);
    }
}
