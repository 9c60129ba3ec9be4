//! In which order cells are measured, and how long that takes. Pure.
//!
//! Every server comes once a round, with all its cells in one life. The orders of servers, routes and connections are
//! balanced over the rounds, so that nobody gains by whom it follows or by how warm the host is.

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
            for server in balanced(servers, round) {
                let mut cells = Vec::new();
                for &route in balanced(&routes, round) {
                    for &connections in balanced(&settings.connections, round) {
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

/// The order of a round, from 1: that of every second one is the order before it reversed, so that after an even number of
/// rounds each item came before each other one equally often. The odd ones step through a design of Williams (Australian
/// Journal of Scientific Research A 2, 1949): over `n` rounds of an even number of items, or `2n` of an odd one, each is
/// also in each place equally often, and directly after each other one.
fn balanced<T>(items: &[T], round: u32) -> Vec<&T> {
    let n = items.len();
    let (step, reversed) = ((round as usize - 1) / 2, round.is_multiple_of(2));
    // 0, 1, n − 1, 2, n − 2, …: every distance between neighbours occurs once.
    let zigzag = |place: usize| if place % 2 == 1 { place.div_ceil(2) } else { n - place / 2 };
    let mut order: Vec<&T> = (0..n).map(|place| &items[(zigzag(place) + step) % n]).collect();
    if reversed {
        order.reverse();
    }
    order
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
    fn every_second_round_reverses_the_one_before() {
        let plan = Plan::of(&settings(4, &[100]), &servers());
        let order: Vec<&str> = plan.turns.iter().map(|turn| turn.server.as_str()).collect();
        assert_eq!(order[..6], ["native", "elysia", "express", "express", "elysia", "native"]);
        assert_eq!(order[6..], ["elysia", "express", "native", "native", "express", "elysia"]);
        let firsts: Vec<&str> = plan.turns.iter().step_by(3).map(|turn| turn.cells[0].route.name()).collect();
        assert_eq!(firsts, ["health", "order", "user", "cpu"]);
    }

    /// How often each item came before each other one, and directly before it, over these rounds.
    fn counts(items: usize, rounds: u32) -> [Vec<Vec<u32>>; 2] {
        let numbers: Vec<usize> = (0..items).collect();
        let mut counts = [vec![vec![0; items]; items], vec![vec![0; items]; items]];
        for order in (1..=rounds).map(|round| balanced(&numbers, round)) {
            for (place, &&first) in order.iter().enumerate() {
                order[place + 1..].iter().for_each(|&&later| counts[0][first][later] += 1);
                order[place + 1..].iter().take(1).for_each(|&&next| counts[1][first][next] += 1);
            }
        }
        counts
    }

    #[test]
    fn each_server_comes_before_each_other_one_equally_often() {
        for items in 2..=9 {
            for rounds in 1..=20 {
                let [before, _] = counts(items, rounds);
                for (a, b) in (0..items).flat_map(|a| (0..a).map(move |b| (a, b))) {
                    let apart = before[a][b].abs_diff(before[b][a]);
                    assert_eq!(apart, rounds % 2, "{a} and {b} of {items} after {rounds} rounds");
                }
            }
        }
    }

    #[test]
    fn over_a_whole_design_each_has_every_place_and_every_predecessor_equally_often() {
        for items in 2..=9usize {
            let rounds = u32::try_from(if items.is_multiple_of(2) { items } else { 2 * items }).unwrap();
            let [_, directly] = counts(items, rounds);
            let wanted = if items.is_multiple_of(2) { 1 } else { 2 };
            for (a, b) in (0..items).flat_map(|a| (0..items).map(move |b| (a, b))).filter(|(a, b)| a != b) {
                assert_eq!(directly[a][b], wanted, "{a} directly before {b} of {items}");
            }
            let numbers: Vec<usize> = (0..items).collect();
            for place in 0..items {
                let mut there = vec![0; items];
                (1..=rounds).for_each(|round| there[*balanced(&numbers, round)[place]] += 1);
                assert!(there.iter().all(|&times| times == wanted), "place {place} of {items}: {there:?}");
            }
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
        assert_eq!(left, ["health", "cpu", "order"]);
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
    fn nothing_to_order_is_nothing() {
        assert!(balanced::<u8>(&[], 5).is_empty());
    }
}
