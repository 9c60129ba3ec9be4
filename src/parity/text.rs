//! A verdict as text for a terminal: what failed first, then one line that sums up. Pure.

use std::fmt::Write as _;

use super::{Count, Level, Outcome, Verdict};

/// Checks named of a failure that many share.
const NAMED: usize = 3;
/// Failures told at length without `verbose`: a server that misses a whole route fails hundreds of checks.
const TOLD: usize = 20;

/// Failures first, in the order they were met, the first of them at length; with `verbose` all of them and every other
/// check after them; the verdict last.
pub fn text(verdict: &Verdict, verbose: bool) -> String {
    let mut text = String::new();
    // Strict differences are noise while the server does not pass.
    let core_only = !verbose && !verdict.passed();
    let mut more = 0;
    let mut told: Vec<&str> = Vec::new();
    for outcome in &verdict.outcomes {
        let Some(failure) = outcome.failure.as_deref().filter(|failure| !told.contains(failure)) else { continue };
        // Only what was not run shares its text: once is enough for all of them.
        let alike: Vec<&Outcome> = verdict.outcomes.iter().filter(|other| other.failure == outcome.failure).collect();
        if core_only && outcome.level == Level::Strict {
            continue;
        }
        if told.len() >= TOLD && !verbose {
            more += alike.len();
            continue;
        }
        told.push(failure);
        if alike.len() == 1 || verbose {
            for outcome in alike {
                entry(&mut text, "FAILED", outcome, Some(failure));
                if verbose || outcome.level == Level::Core {
                    exchange(&mut text, outcome);
                }
            }
        } else {
            let named = alike.iter().take(NAMED).map(|outcome| outcome.id.as_str()).collect::<Vec<_>>().join(", ");
            let more = alike.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(text, "FAILED  {} checks {failure}\n        {named}{more}", alike.len());
        }
    }
    if more > 0 {
        let _ = writeln!(text, "FAILED  {more} checks more, by route: {}; --verbose shows them", by_route(verdict));
    }
    if verbose {
        for outcome in verdict.outcomes.iter().filter(|outcome| outcome.failure.is_none()) {
            let word = if outcome.skipped.is_some() { "skipped" } else { "passed" };
            entry(&mut text, word, outcome, outcome.skipped.as_deref());
        }
    }
    let word = match (verdict.left_out, verdict.passed()) {
        (1.., _) => "not asked",
        (0, true) => "passed",
        (0, false) => "NOT passed",
    };
    let _ = writeln!(text, "gate {word}: {}", summary(verdict));
    text
}

/// `health 0 of 3, echo 71 of 71`: checks failed, by the first word of their ids; strict ones count once core passes.
fn by_route(verdict: &Verdict) -> String {
    let mut routes: Vec<(&str, usize, usize)> = Vec::new();
    let counts = |outcome: &&Outcome| verdict.passed() || outcome.level == Level::Core;
    for outcome in verdict.outcomes.iter().filter(counts) {
        let route = outcome.id.split('-').next().unwrap_or_default();
        let place = routes.iter().position(|(name, ..)| *name == route).unwrap_or_else(|| {
            routes.push((route, 0, 0));
            routes.len() - 1
        });
        routes[place].1 += usize::from(outcome.failure.is_some());
        routes[place].2 += 1;
    }
    routes.iter().map(|(name, failed, all)| format!("{name} {failed} of {all}")).collect::<Vec<_>>().join(", ")
}

/// `78 of 78 core checks passed, 41 of 45 strict`, and what else a reader must know.
fn summary(verdict: &Verdict) -> String {
    let (core, strict) = (verdict.count(Level::Core), verdict.count(Level::Strict));
    let mut line = format!("{} of {} core checks passed", core.passed, core.passed + core.failed);
    if verdict.left_out > 0 {
        let _ = write!(line, " ({} left out)", verdict.left_out);
    }
    if strict != Count::default() {
        let _ = write!(line, ", {} of {} strict", strict.passed, strict.passed + strict.failed);
    }
    let skipped = core.skipped + strict.skipped;
    if skipped > 0 {
        let _ = write!(line, ", {skipped} skipped");
    }
    let _ = write!(line, "; seed {}", verdict.seed);
    if verdict.orders_stored > 0 {
        let _ = write!(line, ", {} orders stored", verdict.orders_stored);
    }
    line
}

fn entry(text: &mut String, word: &str, outcome: &Outcome, detail: Option<&str>) {
    let _ = writeln!(text, "{word:<7} {:<6} {} [{}]", outcome.level.name(), outcome.proves, outcome.id);
    if let Some(detail) = detail {
        let _ = writeln!(text, "        {detail}");
    }
}

/// Request and reply as they were.
fn exchange(text: &mut String, outcome: &Outcome) {
    for (sign, lines) in [('>', &outcome.request), ('<', &outcome.reply)] {
        for line in lines.iter().flat_map(|lines| lines.lines()) {
            let _ = writeln!(text, "{}", format!("          {sign} {line}").trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::{mixed, outcome};
    use super::*;

    #[test]
    fn failures_come_first_and_a_summary_last() {
        insta::assert_snapshot!("verdict_short", text(&mixed(), false));
    }

    #[test]
    fn verbose_names_every_check() {
        insta::assert_snapshot!("verdict_verbose", text(&mixed(), true));
    }

    #[test]
    fn what_was_not_run_is_told_once() {
        let mut verdict = mixed();
        for id in ["order-a", "order-b", "order-c", "order-d", "order-e"] {
            verdict.outcomes.push(outcome(id, Level::Core, Some("not run: the server stopped answering"), None));
        }
        insta::assert_snapshot!("verdict_not_run", text(&verdict, false));
    }

    #[test]
    fn a_clean_verdict_is_one_line() {
        let mut verdict = mixed();
        verdict.outcomes.retain(|outcome| outcome.failure.is_none() && outcome.skipped.is_none());
        verdict.orders_stored = 0;
        assert_eq!(text(&verdict, false), "gate passed: 1 of 1 core checks passed, 1 of 1 strict; seed 7\n");
    }
}
