//! `POST /orders`: orders that are refused.

use super::order::accepted;
use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{refused, unprocessable};
use crate::parity::request::{Request, post, post_as, post_untyped};
use crate::parity::session::{Fault, Session};
use crate::parity::values::Values;

/// Bodies that are valid JSON and break one rule: id, what it proves, body.
const REFUSED: &[(&str, &str, &str)] = &[
    ("order-accepts-missing-user-id", "userId is required", r#"{"amount":19.99,"currency":"USD"}"#),
    ("order-accepts-missing-amount", "amount is required", r#"{"userId":7,"currency":"USD"}"#),
    ("order-defaults-missing-currency", "currency is required and has no default", r#"{"userId":7,"amount":19.99}"#),
    ("order-accepts-empty-object", "an object without the fields is 422", "{}"),
    ("order-accepts-array-body", "a body that is JSON but no object is 422", "[]"),
    ("order-accepts-null-user-id", "userId is not nullable", r#"{"userId":null,"amount":19.99,"currency":"USD"}"#),
    ("order-accepts-null-amount", "amount is not nullable", r#"{"userId":7,"amount":null,"currency":"USD"}"#),
    ("order-accepts-null-currency", "currency is not nullable", r#"{"userId":7,"amount":19.99,"currency":null}"#),
    ("order-coerces-user-id-string", "\"7\" is not 7", r#"{"userId":"7","amount":19.99,"currency":"USD"}"#),
    ("order-coerces-amount-string", "\"19.99\" is not 19.99", r#"{"userId":7,"amount":"19.99","currency":"USD"}"#),
    ("order-coerces-amount-boolean", "true is not 1", r#"{"userId":7,"amount":true,"currency":"USD"}"#),
    ("order-coerces-currency-number", "a number is no currency", r#"{"userId":7,"amount":19.99,"currency":1}"#),
    ("order-accepts-user-id-zero", "userId is at least 1", r#"{"userId":0,"amount":19.99,"currency":"USD"}"#),
    ("order-accepts-user-id-negative", "userId is not negative", r#"{"userId":-1,"amount":19.99,"currency":"USD"}"#),
    ("order-accepts-user-id-fraction", "userId is an integer", r#"{"userId":1.5,"amount":19.99,"currency":"USD"}"#),
    (
        "order-accepts-user-id-int4-overflow",
        "userId is at most 2147483647",
        r#"{"userId":2147483648,"amount":19.99,"currency":"USD"}"#,
    ),
    ("order-accepts-negative-amount", "amount is not negative", r#"{"userId":7,"amount":-0.01,"currency":"USD"}"#),
    (
        "order-accepts-amount-above",
        "amount is at most 9999999999.99",
        r#"{"userId":7,"amount":10000000000,"currency":"USD"}"#,
    ),
    (
        "order-accepts-amount-rounded-above",
        "an amount that would round to 10000000000.00 is above the range",
        r#"{"userId":7,"amount":9999999999.995,"currency":"USD"}"#,
    ),
    ("order-accepts-huge-amount", "1e300 is above the range", r#"{"userId":7,"amount":1e300,"currency":"USD"}"#),
    ("order-accepts-other-currency", "JPY is no currency here", r#"{"userId":7,"amount":19.99,"currency":"JPY"}"#),
    ("order-accepts-lower-case-currency", "usd is not USD", r#"{"userId":7,"amount":19.99,"currency":"usd"}"#),
    ("order-accepts-empty-currency", "an empty currency is none", r#"{"userId":7,"amount":19.99,"currency":""}"#),
    (
        "order-accepts-padded-currency",
        "spaces are part of a currency",
        r#"{"userId":7,"amount":19.99,"currency":"USD "}"#,
    ),
    (
        "order-accepts-nul-in-currency",
        "NUL in a currency is refused before the database sees it",
        r#"{"userId":7,"amount":19.99,"currency":"US\u0000"}"#,
    ),
];

/// Bodies that are 400 or 422: id, what it proves, body.
const EITHER: &[(&str, &str, &str)] = &[
    ("order-empty-body-accepted", "an empty body is 400 or 422", ""),
    ("order-null-body-accepted", "a bare null is 400 or 422", "null"),
    ("order-infinite-amount-accepted", "1e400 is 400 or 422", r#"{"userId":7,"amount":1e400,"currency":"USD"}"#),
    (
        "order-forty-digit-user-id-accepted",
        "forty digits are refused as userId",
        r#"{"userId":9999999999999999999999999999999999999999,"amount":1,"currency":"USD"}"#,
    ),
];

/// Bodies that are not JSON: id, what it proves, body.
const NOT_JSON: &[(&str, &str, &str)] = &[
    ("order-malformed-json-not-400", "a body that is no JSON is 400", "{"),
    ("order-nan-not-400", "NaN is no JSON", r#"{"userId":7,"amount":NaN,"currency":"USD"}"#),
    (
        "order-leading-zero-not-400",
        "a number with a leading zero is no JSON",
        r#"{"userId":7,"amount":019.99,"currency":"USD"}"#,
    ),
];

const GOOD: &str = r#"{"userId":7,"amount":19.99,"currency":"USD"}"#;
const UNTYPED: &[u16] = &[400, 415, 422];
/// Refused by the database rather than by a rule, in a row: more than the ten connections a server may have.
const UNKNOWN_USERS: usize = 25;

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for (table, statuses) in [(REFUSED, &[422][..]), (EITHER, &[400, 422]), (NOT_JSON, &[400])] {
        checks.extend(
            table.iter().map(|&(id, proves, body)| core(id, proves).sends(post("/orders", body), refused(statuses))),
        );
    }
    checks.push(
        core("order-accepts-missing-content-type", "an order without a content type is refused")
            .sends(post_untyped("/orders", GOOD), refused(UNTYPED)),
    );
    checks.push(
        core("order-accepts-text-plain", "an order of another content type is refused")
            .sends(post_as("text/plain", "/orders", GOOD), refused(UNTYPED)),
    );
    checks.push(core("order-refused-yet-stored", "no refused order leaves a row").runs(refused_orders_leave_no_row));
    checks.push(
        strict("order-unknown-user-not-422", "an order of a user that does not exist is 422")
            .sends(unknown_user(values), unprocessable()),
    );
    checks.push(
        strict("order-stuck-after-refusals", "orders the database refuses cost no connection").runs(still_accepts),
    );
    checks.into_iter().map(Check::writes).collect()
}

fn unknown_user(values: &Values) -> Request {
    post("/orders", format!(r#"{{"userId":{},"amount":19.99,"currency":"USD"}}"#, values.missing_user))
}

/// Sends every refused body again and counts rows around all of them; only where the count moved, around each.
fn refused_orders_leave_no_row(session: &mut Session<'_>) -> Result<(), Fault> {
    let bodies = || [REFUSED, EITHER, NOT_JSON].concat().into_iter().map(|(_, _, body)| post("/orders", body));
    let before = rows(session)?;
    for request in bodies() {
        send_uncompared(session, &request)?;
    }
    if rows(session)? == before {
        return Ok(());
    }
    for request in bodies() {
        let before = rows(session)?;
        let status = send_uncompared(session, &request)?;
        if rows(session)? != before {
            let shown = request.shown();
            return Err(Fault::Differs(format!("expected no new row, got one; answered {status}; sent {shown}")));
        }
    }
    Err(Fault::Differs("expected no new row, got some for all refused orders together".to_owned()))
}

fn rows(session: &mut Session<'_>) -> Result<u64, Fault> {
    let database =
        session.database.as_mut().ok_or(Fault::Skipped("rows are counted only where the database is known"))?;
    database.order_count().map_err(Fault::Gate)
}

fn send_uncompared(session: &mut Session<'_>, request: &Request) -> Result<u16, Fault> {
    let mut connection = session.idle_connection()?;
    let bytes = request.encode(session.host());
    session.send_on(&mut connection, &bytes);
    session.reply_on(&mut connection, request).map(|reply| reply.status)
}

fn still_accepts(session: &mut Session<'_>) -> Result<(), Fault> {
    let request = unknown_user(&session.values);
    for _ in 0..UNKNOWN_USERS {
        session.exchange(&request, &unprocessable())?;
    }
    let (request, expect) = accepted(session.values.order);
    session.exchange(&request, &expect).map(|_| ())
}
