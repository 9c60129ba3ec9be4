//! The tables of checks, in the order they are run. One file a route; errors and the wire have their own.

mod concurrent;
mod cpu;
mod echo;
mod echo_json;
mod errors;
mod health;
mod list;
mod me;
mod me_refused;
mod order;
mod order_refused;
mod order_stored;
mod user;
mod wire;

use super::check::Check;
use super::values::Values;

/// All checks of a run. Reads come before orders: they show whose data is behind the server.
pub(super) fn all(values: &Values, secret: &str) -> Vec<Check> {
    [
        health::checks(),
        echo::checks(values),
        echo_json::checks(values),
        user::checks(values),
        list::checks(values),
        me::checks(values, secret),
        me_refused::checks(values, secret),
        cpu::checks(values),
        order::checks(values),
        order_refused::checks(values),
        concurrent::checks(),
        order_stored::checks(),
        wire::checks(),
        errors::checks(values),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::contract::BENCH_SECRET;
    use crate::parity::Level;

    fn all_checks() -> Vec<Check> {
        all(&Values::from_seed(1), BENCH_SECRET)
    }

    #[test]
    fn ids_are_unique_and_kebab_case() {
        let mut seen = HashSet::new();
        for check in all_checks() {
            let kebab = check.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            assert!(kebab && check.id.contains('-'), "{}", check.id);
            assert!(seen.insert(check.id), "{} twice", check.id);
        }
    }

    #[test]
    fn every_check_says_what_it_proves_in_one_sentence() {
        for check in all_checks() {
            assert!(check.proves.len() > 5 && !check.proves.ends_with('.'), "{}: {}", check.id, check.proves);
            assert!(!check.proves.contains('\n'), "{}", check.id);
        }
    }

    #[test]
    fn the_gate_is_as_wide_as_the_contract() {
        let checks = all_checks();
        let of = |level| checks.iter().filter(|check| check.level == level).count();
        assert!(
            of(Level::Core) >= 75 && of(Level::Strict) >= 40,
            "{} core, {} strict",
            of(Level::Core),
            of(Level::Strict)
        );
    }

    #[test]
    fn every_check_that_posts_an_order_is_marked_as_a_write() {
        use crate::parity::check::{Kind, Steps};
        for check in all_checks() {
            let Steps::Exchanges(exchanges) = &check.steps else { continue };
            let posts = exchanges.iter().any(|(request, _)| request.is_order());
            assert!(!posts || check.kind == Kind::Writes, "{} posts orders unasked", check.id);
        }
    }
}
