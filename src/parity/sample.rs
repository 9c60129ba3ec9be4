//! Verdicts for tests.

use super::{Level, Outcome, Verdict};

/// An outcome; a failure has an exchange.
pub(super) fn outcome(id: &str, level: Level, failure: Option<&str>, skipped: Option<&str>) -> Outcome {
    let proves = format!("what {id} proves");
    Outcome {
        id: id.to_owned(),
        level,
        proves,
        failure: failure.map(str::to_owned),
        request: failure.map(|_| "GET /users/0 HTTP/1.1\nhost: h\n".to_owned()),
        reply: failure.map(|_| "HTTP/1.1 404 Not Found\n\n{}".to_owned()),
        skipped: skipped.map(str::to_owned),
    }
}

/// Passed, failed and skipped checks of both levels.
pub(super) fn mixed() -> Verdict {
    Verdict {
        seed: 7,
        left_out: 0,
        orders_stored: 31,
        outcomes: vec![
            outcome("health-body-differs", Level::Core, None, None),
            outcome(
                "user-accepts-zero",
                Level::Core,
                Some(r#"expected status 422, got 404 with {"error":"not found"}; sent GET /users/0"#),
                None,
            ),
            outcome("order-not-stored-as-answered", Level::Core, None, Some("the database is not known")),
            outcome("user-accepts-leading-zero", Level::Strict, None, None),
            outcome("health-other-case-answered", Level::Strict, Some("expected status 404, got 200"), None),
        ],
    }
}
