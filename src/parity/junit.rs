//! A verdict as `JUnit` XML, which continuous-integration services show check by check. Pure.

use std::fmt::Write as _;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Level, Outcome, Verdict};

/// One suite a level, one case a check; the class of a case is the route its id begins with.
///
/// # Errors
/// The verdict holds what XML cannot.
pub fn junit(verdict: &Verdict) -> anyhow::Result<String> {
    let mut report = Report::new("headroom parity");
    for (level, name) in [(Level::Core, "core"), (Level::Strict, "strict")] {
        let mut suite = TestSuite::new(name);
        suite.add_property(("seed", verdict.seed.to_string().as_str()));
        suite.add_test_cases(verdict.outcomes.iter().filter(|outcome| outcome.level == level).map(case));
        if !suite.test_cases.is_empty() {
            report.add_test_suite(suite);
        }
    }
    Ok(report.to_string()?)
}

fn case(outcome: &Outcome) -> TestCase {
    let status = match (&outcome.failure, &outcome.skipped) {
        (Some(failure), _) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(failure.as_str()).set_type("difference").set_description(described(outcome));
            status
        }
        (None, Some(skipped)) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(skipped.as_str());
            status
        }
        (None, None) => TestCaseStatus::success(),
    };
    let mut case = TestCase::new(outcome.id.as_str(), status);
    case.set_classname(outcome.id.split('-').next().unwrap_or_default());
    case
}

/// The sentence that was broken, then request and reply as they were.
fn described(outcome: &Outcome) -> String {
    let mut text = outcome.proves.clone();
    for (what, lines) in [("sent", &outcome.request), ("received", &outcome.reply)] {
        if let Some(lines) = lines {
            let _ = write!(text, "\n\n{what}:\n{lines}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample::mixed;
    use super::*;

    #[test]
    fn a_verdict_is_a_suite_for_each_level() {
        insta::assert_snapshot!("junit", junit(&mixed()).unwrap());
    }

    #[test]
    fn bytes_that_xml_cannot_hold_do_not_reach_it() {
        let mut verdict = mixed();
        verdict.outcomes[1].reply = Some(super::super::show::lines(b"\0\x1b<&]]>\xff"));
        let xml = junit(&verdict).unwrap();
        assert!(!xml.chars().any(|c| c.is_control() && c != '\n'), "{xml}");
        assert!(xml.contains("&lt;&amp;"), "{xml}");
    }
}
