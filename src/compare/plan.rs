//! In which order cells are measured, and how long that takes. Pure.
//!
//! Every server comes once a round, with all its cells in one life. The order of servers and that of routes and connections
//! rotate from round to round, so that no row always follows the same one.

use std::time::Duration;

use crate::contract::Route;
use crate::record::Settings;

use super::Timing;

/// A server × route × connections in a round.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) round: u32,
    pub(super) server: String,
    pub(super) route: Route,
    pub(super) connections: u32,
}

/// One server's part of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Turn {
    pub(super) round: u32,
    pub(super) server: String,
    pub(super) cells: Vec<Cell>,
}

/// All turns in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) turns: Vec<Turn>,
}

/// What a life costs besides its cells: start, idle memory, stop, counting statements.
const LIFE: Duration = Duration::from_secs(2);
/// What a cell costs besides warm-up, pause and window: two checkpoints, connecting, draining.
const CELL: Duration = Duration::from_millis(500);
/// Two resets of the orders table with `VACUUM FULL`.
const RESETS: Duration = Duration::from_secs(1);
/// `cpu` drains for long after warm-up and window: connections × service time.
const CPU_DRAINS: Duration = Duration::from_secs(4);

impl Plan {
    pub(super) fn of(settings: &Settings, servers: &[String]) -> Self {
        // Names come from `Options::resolve` or from a record that it made.
        let routes: Vec<Route> = settings.routes.iter().filter_map(|route| route.parse().ok()).collect();
        let mut turns = Vec::new();
        for round in 1..=settings.rounds {
            for server in rotated(servers, round) {
                let mut cells = Vec::new();
                for &route in rotated(&routes, round) {
                    for &connections in rotated(&settings.connections, round) {
                        cells.push(Cell { round, server: server.clone(), route, connections });
                    }
                }
                turns.push(Turn { round, server: server.clone(), cells });
            }
        }
        Self { turns }
    }

    /// What is left when the finished cells are taken out; turns without cells go too.
    pub(super) fn without(mut self, finished: impl Fn(&Cell) -> bool) -> Self {
        for turn in &mut self.turns {
            turn.cells.retain(|cell| !finished(cell));
        }
        self.turns.retain(|turn| !turn.cells.is_empty());
        self
    }

    pub(super) fn cells(&self) -> usize {
        self.turns.iter().map(|turn| turn.cells.len()).sum()
    }

    /// How long it takes when every window is valid at once.
    pub(super) fn expected(&self, timing: &Timing) -> Duration {
        self.turns.iter().map(|turn| turn.expected(timing)).sum()
    }
}

impl Turn {
    pub(super) fn expected(&self, timing: &Timing) -> Duration {
        let first = timing.first_warmup.saturating_sub(timing.warmup);
        self.cells.iter().map(|cell| cell.expected(timing)).sum::<Duration>() + LIFE + first
    }
}

impl Cell {
    pub(super) fn expected(&self, timing: &Timing) -> Duration {
        let more = match self.route {
            Route::Order => RESETS,
            Route::Cpu => CPU_DRAINS,
            _ => Duration::ZERO,
        };
        timing.warmup + timing.pause + timing.window + CELL + more
    }
}

/// The items from the round's own start on, then those before it.
fn rotated<T>(items: &[T], round: u32) -> impl Iterator<Item = &T> {
    let start = (round as usize - 1) % items.len().max(1);
    items[start..].iter().chain(&items[..start])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::record::sample;

    fn settings(rounds: u32, connections: &[u32]) -> Settings {
        let mut settings = sample::run(Vec::new(), &["health", "user", "order", "cpu"], "quick", rounds).settings;
        settings.connections = connections.to_vec();
        settings
    }

    fn servers() -> Vec<String> {
        ["native", "elysia", "express"].map(str::to_owned).to_vec()
    }

    #[test]
    fn every_cell_comes_once_a_round() {
        let plan = Plan::of(&settings(3, &[10, 100]), &servers());
        let cells: HashSet<&Cell> = plan.turns.iter().flat_map(|turn| &turn.cells).collect();
        assert_eq!((plan.cells(), cells.len()), (3 * 3 * 4 * 2, 3 * 3 * 4 * 2));
        assert!(
            plan.turns.iter().all(|turn| turn.cells.iter().all(|c| c.server == turn.server && c.round == turn.round))
        );
    }

    #[test]
    fn servers_and_routes_rotate() {
        let plan = Plan::of(&settings(4, &[100]), &servers());
        let order: Vec<&str> = plan.turns.iter().map(|turn| turn.server.as_str()).collect();
        assert_eq!(order[..3], ["native", "elysia", "express"]);
        assert_eq!(order[3..6], ["elysia", "express", "native"]);
        assert_eq!(order[9..], ["native", "elysia", "express"]);
        let routes: Vec<&str> = plan.turns[3].cells.iter().map(|cell| cell.route.name()).collect();
        assert_eq!(routes, ["user", "order", "cpu", "health"]);
        let firsts: Vec<&str> = plan.turns.iter().step_by(3).map(|turn| turn.cells[0].route.name()).collect();
        assert_eq!(firsts, ["health", "user", "order", "cpu"]);
    }

    #[test]
    fn over_as_many_rounds_as_servers_each_has_every_place() {
        let plan = Plan::of(&settings(3, &[100]), &servers());
        for place in 0..3 {
            let there: HashSet<&str> =
                plan.turns.iter().skip(place).step_by(3).map(|turn| turn.server.as_str()).collect();
            assert_eq!(there.len(), 3, "place {place}");
        }
    }

    #[test]
    fn what_is_finished_is_not_measured_again() {
        let whole = Plan::of(&settings(2, &[100]), &servers());
        let finished = |cell: &Cell| cell.round == 1 && (cell.server != "express" || cell.route == Route::User);
        let rest = whole.clone().without(finished);
        assert_eq!(rest.cells(), whole.cells() - 4 - 4 - 1);
        assert_eq!(rest.turns[0].server, "express");
        let left: Vec<&str> = rest.turns[0].cells.iter().map(|cell| cell.route.name()).collect();
        assert_eq!(left, ["health", "order", "cpu"]);
        assert!(whole.without(|_| true).turns.is_empty());
    }

    #[test]
    fn the_expected_time_is_that_of_the_turns() {
        let timing = Timing::of(&settings(1, &[100]));
        let plan = Plan::of(&settings(1, &[100]), &servers());
        assert_eq!(plan.expected(&timing), plan.turns[0].expected(&timing) * 3);
        // 4 cells of 2 s + 0.2 s + 4 s + 0.5 s, one with resets, one that drains, and a life.
        assert_eq!(plan.turns[0].expected(&timing), Duration::from_millis(4 * 6_700 + 1_000 + 4_000 + 2_000));
        let nothing = Plan { turns: Vec::new() };
        assert_eq!(nothing.expected(&timing), Duration::ZERO);
    }

    #[test]
    fn nothing_to_rotate_is_nothing() {
        assert_eq!(rotated::<u8>(&[], 5).count(), 0);
    }
}
