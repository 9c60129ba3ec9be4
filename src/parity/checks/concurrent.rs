//! Many requests at once: each gets its own reply.

use crate::contract::{render_user, token};
use crate::dataset::user;
use crate::parity::check::{Check, core};
use crate::parity::client::Connection;
use crate::parity::expect::{Expect, ok};
use crate::parity::request::{Request, get};
use crate::parity::session::{Fault, Session};

use super::me::bearer;
use super::order::accepted;

pub(super) fn checks() -> Vec<Check> {
    vec![
        core("user-rows-mixed-under-concurrency", "120 users asked for at once each come back as their own row")
            .runs(many_users),
        core("me-rows-mixed-under-concurrency", "120 tokens used at once each get their own user").runs(many_tokens),
        core("order-fields-mixed-under-concurrency", "20 orders posted at once each keep their own fields and id")
            .runs(many_orders)
            .writes(),
    ]
}

fn many_users(session: &mut Session<'_>) -> Result<(), Fault> {
    let ids = session.values.concurrent_users.clone();
    at_once(session, ids.into_iter().map(|id| (get(format!("/users/{id}")), ok(render_user(&user(id))))))
}

fn many_tokens(session: &mut Session<'_>) -> Result<(), Fault> {
    let ids = session.values.concurrent_users.clone();
    let secret = session.secret.clone();
    let token = |id| bearer(&token::for_user(id, &secret));
    at_once(session, ids.into_iter().map(|id| (token(id), ok(render_user(&user(id))))))
}

fn many_orders(session: &mut Session<'_>) -> Result<(), Fault> {
    let before = session.confirmed.len();
    let orders = session.values.concurrent_orders.clone();
    at_once(session, orders.into_iter().map(accepted))?;
    let mut ids: Vec<i32> = session.confirmed[before..].iter().map(|order| order.id).collect();
    let posted = ids.len();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() == posted {
        return Ok(());
    }
    Err(Fault::Differs(format!("expected {posted} different ids for {posted} orders, got {}", ids.len())))
}

/// Sends each request on a connection of its own before the first reply is read: all are in flight together.
fn at_once(session: &mut Session<'_>, exchanges: impl Iterator<Item = (Request, Expect)>) -> Result<(), Fault> {
    let exchanges: Vec<(Request, Expect)> = exchanges.collect();
    let mut connections = exchanges.iter().map(|_| session.open()).collect::<Result<Vec<Connection>, Fault>>()?;
    for (connection, (request, _)) in connections.iter_mut().zip(&exchanges) {
        let bytes = request.encode(session.host());
        session.send_on(connection, &bytes);
    }
    // Every reply is read, so that every confirmed order is known; the first difference is the one reported.
    let mut result = Ok(());
    for (connection, (request, expect)) in connections.iter_mut().zip(&exchanges) {
        match session.receive_on(connection, request, expect) {
            Err(silent @ Fault::Silent(_)) => return Err(silent),
            received => result = result.and(received.map(|_| ())),
        }
    }
    result
}
