//! `GET /health`.

use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{empty, not_found, ok, refused, status};
use crate::parity::request::{bodiless, get};

const BODY: &str = r#"{"status":"ok"}"#;

pub(super) fn checks() -> Vec<Check> {
    vec![
        core("health-body-differs", "GET /health answers {\"status\":\"ok\"}").sends(get("/health"), ok(BODY)),
        core("health-answers-other-methods", "POST /health is 405, or 404 where a framework knows no 405")
            .sends(bodiless("POST", "/health").header("content-length", "0"), status(&[404, 405])),
        strict("health-query-changes-answer", "a query the route does not know changes nothing")
            .sends(get("/health?x=1"), ok(BODY)),
        strict("health-head-differs", "HEAD answers like GET, without the body")
            .sends(bodiless("HEAD", "/health"), empty(&[200]).with_header("content-type", "application/json")),
        strict("health-405-without-allow", "a method the path does not have is 405 and names those it has")
            .sends(bodiless("DELETE", "/health"), refused(&[405]).with_header("allow", "GET")),
        strict("health-options-without-allow", "OPTIONS is 405 and names the methods of the path")
            .sends(bodiless("OPTIONS", "/health"), refused(&[405]).with_header("allow", "GET")),
        strict("health-other-case-answered", "a path in other case has no route").sends(get("/HEALTH"), not_found()),
        strict("health-trailing-slash-answered", "a path with a trailing slash has no route")
            .sends(get("/health/"), not_found()),
        strict("health-double-slash-answered", "a path with a double slash has no route")
            .sends(get("//health"), not_found()),
    ]
}
