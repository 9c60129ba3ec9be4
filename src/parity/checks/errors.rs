//! Paths without a route, and what holds for every error reply. Runs last: it judges what the others have seen.

use crate::parity::Level;
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{not_found, problem, status};
use crate::parity::request::{bodiless, get, post};
use crate::parity::session::{Fault, Seen};
use crate::parity::values::Values;

/// Replies quoted in one failure.
const QUOTED: usize = 2;

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let random = format!("/{}", values.missing_user);
    let below_user = format!("/users/{}/orders", values.users[0]);
    vec![
        core("path-unknown-not-404", "a path without a route is 404 with the same body as an unknown id")
            .sends_all(["/", "/nope", "/order", &random, &below_user].map(|path| (get(path), not_found()))),
        core("path-unknown-post-not-404", "a path without a route is 404 for POST too")
            .sends(post("/nope", values.echo()), not_found()),
        core("path-wrong-method-answered", "a method a path does not have is 405 or 404, and no route").sends_all([
            (get("/echo"), status(&[404, 405])),
            (get("/orders"), status(&[404, 405])),
            (bodiless("DELETE", "/me"), status(&[404, 405])),
            (bodiless("DELETE", "/cpu?n=1"), status(&[404, 405])),
        ]),
        strict("path-405-without-allow", "a method a path does not have is 405 and names those it has").sends_all([
            (get("/echo"), status(&[405]).with_header("allow", "POST")),
            (get("/orders"), status(&[405]).with_header("allow", "POST")),
            (bodiless("DELETE", "/users"), status(&[405]).with_header("allow", "GET")),
            (bodiless("PUT", "/users/1"), status(&[405]).with_header("allow", "GET")),
        ]),
        strict("problem-of-echo-not-rfc-9457", "422 is application/problem+json with an entry for each field").sends(
            post("/echo", r#"{"name":"","email":"nowhere","age":-1,"tags":[]}"#),
            problem(&[422], &["status", "title", "name", "email", "age"]),
        ),
        strict(
            "problem-of-query-not-rfc-9457",
            "422 of a query is application/problem+json with an entry for each key",
        )
        .sends(get("/users?page=0&limit=0"), problem(&[422], &["page", "limit"])),
        strict("problem-of-syntax-not-rfc-9457", "400 is application/problem+json")
            .sends(post("/echo", "{"), problem(&[400], &["status", "title"])),
        core("error-shows-internals", "no error shows SQL, a path or a stack")
            .runs(|session| judge(&session.leaks, Level::Core)),
        core("client-mistake-answered-500", "no client mistake is answered 500")
            .runs(|session| judge(&session.server_errors, Level::Core)),
        strict("strict-error-shows-internals", "no error to a strict check shows SQL, a path or a stack")
            .runs(|session| judge(&session.leaks, Level::Strict)),
        strict("strict-mistake-answered-500", "no mistake of a strict check is answered 500")
            .runs(|session| judge(&session.server_errors, Level::Strict)),
    ]
}

fn judge(seen: &[Seen], level: Level) -> Result<(), Fault> {
    let found: Vec<&str> = seen.iter().filter(|seen| seen.level == level).map(|seen| seen.text.as_str()).collect();
    if found.is_empty() {
        return Ok(());
    }
    let quoted = found.iter().take(QUOTED).copied().collect::<Vec<_>>().join("; and ");
    Err(Fault::Differs(format!("expected none, got {}: {quoted}", found.len())))
}
