//! `POST /orders`: what the database holds afterwards. Runs only where it is known.

use crate::parity::check::{Check, core};
use crate::parity::session::{Fault, Session};
use crate::postgres::StoredOrder;

const UNKNOWN: Fault = Fault::Skipped("orders are read back only where the database is known");

pub(super) fn checks() -> Vec<Check> {
    vec![
        core("order-not-stored-as-answered", "every order is stored as it was answered, its time in milliseconds too")
            .runs(stored_as_answered)
            .writes(),
        core("order-count-differs", "each accepted order is one row, and nothing else is").runs(one_row_each).writes(),
    ]
}

fn stored_as_answered(session: &mut Session<'_>) -> Result<(), Fault> {
    let Some(database) = session.database.as_mut() else { return Err(UNKNOWN) };
    if session.confirmed.is_empty() {
        return Err(Fault::Differs("no order was accepted, so none could be read back".to_owned()));
    }
    for order in &session.confirmed {
        let expected = StoredOrder {
            id: order.id,
            user_id: i32::try_from(order.fields.user_id).expect("users have small ids"),
            amount: order.fields.amount.clone(),
            currency: order.fields.currency.to_owned(),
            created_at_us: order.created_at_ms * 1000,
        };
        match database.order(order.id).map_err(Fault::Gate)? {
            Some(stored) if stored == expected => {}
            Some(stored) => return Err(Fault::Differs(format!("expected the row {expected:?}, got {stored:?}"))),
            None => return Err(Fault::Differs(format!("expected the row {expected:?}, got none"))),
        }
    }
    Ok(())
}

fn one_row_each(session: &mut Session<'_>) -> Result<(), Fault> {
    let (Some(database), Some(before)) = (session.database.as_mut(), session.orders_before) else {
        return Err(UNKNOWN);
    };
    let rows = database.order_count().map_err(Fault::Gate)?.saturating_sub(before);
    if rows == session.stored as u64 {
        return Ok(());
    }
    let stored = session.stored;
    Err(Fault::Differs(format!("expected {stored} new rows for {stored} replies of 201, got {rows}")))
}
