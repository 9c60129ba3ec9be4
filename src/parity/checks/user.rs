//! `GET /users/{id}`.

use crate::contract::render_user;
use crate::dataset::{USERS, user};
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{any_refusal, empty, not_found, ok, status, unprocessable};
use crate::parity::request::{bodiless, get};
use crate::parity::values::Values;

/// Ids that are 422: id of the check, what it proves, the id in the path.
const REFUSED: &[(&str, &str, &str)] = &[
    ("user-accepts-letters", "abc is no id", "abc"),
    ("user-accepts-zero", "0 is no id", "0"),
    ("user-accepts-negative", "-1 is no id", "-1"),
    ("user-accepts-fraction", "1.5 is no id", "1.5"),
    ("user-accepts-int4-overflow", "2147483648 is no id, and no error of the database", "2147483648"),
];

/// Ids that are 422 where the pattern is written by hand.
const STRICTLY_REFUSED: &[(&str, &str, &str)] = &[
    ("user-accepts-leading-zero", "01 is no id, and not user 1", "01"),
    ("user-accepts-plus", "+1 is no id, and not user 1", "+1"),
    ("user-accepts-encoded-plus", "%2B1 is no id, and not user 1", "%2B1"),
    ("user-accepts-exponent", "1e3 is no id, and not user 1000", "1e3"),
    ("user-accepts-hex", "0x10 is no id, and not user 16", "0x10"),
    ("user-accepts-space", "%201 is no id, and not user 1", "%201"),
    ("user-accepts-trailing-letters", "1abc is no id, and not user 1", "1abc"),
    ("user-accepts-trailing-nul", "1%00 is no id, and not user 1", "1%00"),
    ("user-accepts-encoded-slash", "1%2F2 is one segment and no id", "1%2F2"),
    ("user-accepts-other-digits", "Arabic digits are no id", "%D9%A1"),
    ("user-accepts-int8-overflow", "9223372036854775808 is no id", "9223372036854775808"),
];

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let read = |id: u32| (get(format!("/users/{id}")), ok(render_user(&user(id))));
    let by_path = |path: &str| get(format!("/users/{path}"));
    let missing = format!("/users/{}", values.missing_user);
    let mut checks = vec![
        core("user-row-differs", "a user is the row of its id, byte for byte")
            .sends_all(values.users.map(read))
            .shows_data(),
        core("user-first-or-last-differs", "users 1 and 50000 exist")
            .sends_all([1, USERS, 4242].map(read))
            .shows_data(),
        core("user-missing-not-404", "an id without a row is 404")
            .sends_all([(get(missing), not_found()), (by_path("50001"), not_found())]),
        core("user-refuses-int4-max", "2147483647 is an id, without a row").sends(by_path("2147483647"), not_found()),
        core("user-forty-digits-not-refused", "forty digits are refused, by the router or by the route")
            .sends(by_path(&"9".repeat(40)), any_refusal()),
        core("user-malformed-escape-not-refused", "a malformed percent escape is 400, 404 or 422")
            .sends_all(["%zz", "%", "%FF"].map(|path| (by_path(path), status(&[400, 404, 422])))),
        core("user-answers-other-methods", "DELETE /users/1 is 405, or 404 where a framework knows no 405")
            .sends(bodiless("DELETE", "/users/1"), status(&[404, 405])),
        strict("user-refuses-encoded-digit", "%31 is user 1").sends(by_path("%31"), ok(render_user(&user(1)))),
        strict("user-head-differs", "HEAD answers like GET, without the body")
            .sends(bodiless("HEAD", "/users/1"), empty(&[200]).with_header("content-type", "application/json")),
        strict("user-trailing-slash-answered", "a path with a trailing slash has no route")
            .sends(by_path("1/"), not_found()),
        strict("user-other-case-answered", "a path in other case has no route").sends(get("/Users/1"), not_found()),
    ];
    let refused = |id, proves, path| (id, proves, by_path(path), unprocessable());
    checks.extend(REFUSED.iter().map(|&(id, proves, path)| {
        let (id, proves, request, expect) = refused(id, proves, path);
        core(id, proves).sends(request, expect)
    }));
    checks.extend(STRICTLY_REFUSED.iter().map(|&(id, proves, path)| {
        let (id, proves, request, expect) = refused(id, proves, path);
        strict(id, proves).sends(request, expect)
    }));
    checks
}
