//! `POST /orders`: orders that are accepted.

use crate::parity::check::{Check, core, strict};
use crate::parity::expect::{Expect, created};
use crate::parity::request::{Request, post, post_as};
use crate::parity::session::{Fault, Session, now_ms};
use crate::parity::values::{OrderValues, Values};

/// How far the server's clock may be from this host's: enough for two hosts that set theirs by the network.
const CLOCK_MS: i64 = 60_000;
/// A clock of whole seconds shows itself once this many orders agree; one of milliseconds does so by chance 1 in 10^9.
const CLOCK_SAMPLES: usize = 3;

/// Amounts as JSON and as they must be answered: id, what it proves, JSON, answer.
const AMOUNTS: &[(&str, &str, &str, &str)] = &[
    ("order-rounds-tie-to-even", "0.125 is a tie and goes up", "0.125", "0.13"),
    ("order-rounds-tie-down", "0.375 is a tie and goes up", "0.375", "0.38"),
    ("order-rounds-decimal-text", "1.005 is below the tie as a double", "1.005", "1.00"),
    ("order-rounds-decimal-text-down", "2.675 is below the tie as a double", "2.675", "2.67"),
    ("order-rounds-away-from-double", "8.345 is above the tie as a double", "8.345", "8.35"),
    ("order-truncates-amount", "0.999 is 1.00", "0.999", "1.00"),
    ("order-answers-negative-zero", "-0 is 0.00", "-0", "0.00"),
    ("order-refuses-amount-zero", "amount may be 0", "0", "0.00"),
    ("order-refuses-largest-amount", "amount may be 9999999999.99", "9999999999.99", "9999999999.99"),
    ("order-drops-decimals", "a whole amount is answered with two decimals", "5", "5.00"),
    ("order-drops-last-zero", "an amount of one decimal is answered with two", "7.5", "7.50"),
    ("order-refuses-exponent", "1.5e3 is the number 1500", "1.5e3", "1500.00"),
];

pub(super) fn checks(values: &Values) -> Vec<Check> {
    let mut checks = vec![
        core("order-reply-differs", "an order comes back with its id, fields and time, byte for byte")
            .sends_all([accepted(values.order)]),
        core("order-currency-refused", "USD, EUR and GBP are accepted")
            .sends_all(["USD", "EUR", "GBP"].map(|currency| accepted(OrderValues { currency, ..values.order }))),
        core("order-user-id-bounds-refused", "the first and the last user may order")
            .sends_all([1, 50_000].map(|user_id| accepted(OrderValues { user_id, ..values.order }))),
        core("order-refuses-charset", "a charset parameter of the content type is accepted").sends(
            post_as("application/json; charset=utf-8", "/orders", values.order.body()),
            accepted(values.order).1,
        ),
        core("order-replayed", "the same body posted again is another order").runs(posted_twice),
        core("order-ids-not-increasing", "ids of orders posted one after the other increase").runs(ids_increase),
    ];
    checks.extend(AMOUNTS.iter().map(|&(id, proves, json, answer)| {
        let body = format!(r#"{{"userId":{},"amount":{json},"currency":"EUR"}}"#, values.users[0]);
        core(id, proves).sends(post("/orders", body), created(values.users[0], answer, "EUR"))
    }));
    checks.push(core("order-clock-differs", "createdAt is the time of the order, within a minute").runs(clock_is_now));
    checks.push(
        core("order-clock-of-whole-seconds", "createdAt comes from a clock of milliseconds")
            .runs(clock_has_milliseconds),
    );
    let taken = |extra: &str| post("/orders", values.order.body().replacen('{', extra, 1));
    checks.push(
        strict("order-takes-id-or-time-of-client", "id and createdAt of the body are unknown keys")
            .sends(taken(r#"{"id":7,"createdAt":"2001-01-01T00:00:00.000Z","extra":1,"#), accepted(values.order).1),
    );
    checks.push(
        strict("order-refuses-integer-with-point", "7.0 is the integer 7")
            .sends(post("/orders", r#"{"userId":7.0,"amount":1,"currency":"USD"}"#), created(7, "1.00", "USD")),
    );
    checks.into_iter().map(Check::writes).collect()
}

/// The request of an order and the reply it must get.
pub(super) fn accepted(order: OrderValues) -> (Request, Expect) {
    (post("/orders", order.body()), created(order.user_id, order.amount(), order.currency))
}

fn posted_twice(session: &mut Session<'_>) -> Result<(), Fault> {
    let ids = post_several(session, 2)?;
    if ids[0] == ids[1] {
        return Err(Fault::Differs(format!("expected two orders for the same body, got {} twice", ids[0])));
    }
    Ok(())
}

fn ids_increase(session: &mut Session<'_>) -> Result<(), Fault> {
    let ids = post_several(session, 4)?;
    if ids.is_sorted_by(|earlier, later| earlier < later) {
        return Ok(());
    }
    Err(Fault::Differs(format!("expected increasing ids for orders posted one after the other, got {ids:?}")))
}

fn post_several(session: &mut Session<'_>, count: usize) -> Result<Vec<i32>, Fault> {
    let (request, expect) = accepted(session.values.order);
    let before = session.confirmed.len();
    for _ in 0..count {
        session.exchange(&request, &expect)?;
    }
    Ok(session.confirmed[before..].iter().map(|order| order.id).collect())
}

fn clock_is_now(session: &mut Session<'_>) -> Result<(), Fault> {
    let (request, expect) = accepted(session.values.order);
    session.exchange(&request, &expect)?;
    let created_at_ms = session.confirmed.last().expect("the exchange confirmed one").created_at_ms;
    let off = created_at_ms - now_ms();
    if off.abs() <= CLOCK_MS {
        return Ok(());
    }
    Err(Fault::Differs(format!("expected a createdAt of now, got one {off} ms from this host's clock")))
}

/// Looks at every order confirmed so far.
fn clock_has_milliseconds(session: &mut Session<'_>) -> Result<(), Fault> {
    let (request, expect) = accepted(session.values.order);
    while session.confirmed.len() < CLOCK_SAMPLES {
        session.exchange(&request, &expect)?;
    }
    if session.confirmed.iter().any(|order| order.created_at_ms % 1000 != 0) {
        return Ok(());
    }
    Err(Fault::Differs(format!("all of {} orders were answered with .000Z", session.confirmed.len())))
}
