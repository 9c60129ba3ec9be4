//! Orders of which each can be told from every other: what was sent, what was acknowledged, and what is in the table.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use super::Session;
use crate::wire::Reply;

/// Ids up to here are the seed's.
const SEEDED: i32 = 200_000;

/// Every order that was sent, by its amount in hundredths, with the id that was answered.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    next: AtomicI64,
    sent: Mutex<HashMap<i64, Option<i32>>>,
}

/// The user an amount belongs to.
fn user_of(cents: i64) -> i64 {
    1 + cents % 50_000
}

impl Ledger {
    /// A new order, as a body; counted as sent from here on.
    pub(super) fn order(&self) -> (i64, String) {
        let cents = self.next.fetch_add(1, Ordering::Relaxed);
        self.sent.lock().unwrap().insert(cents, None);
        let (whole, hundredths) = (cents / 100, cents % 100);
        let body = format!(r#"{{"userId":{},"amount":{whole}.{hundredths:02},"currency":"EUR"}}"#, user_of(cents));
        (cents, body)
    }

    /// Notes an order that was answered 201.
    pub(super) fn acknowledge(&self, cents: i64, reply: &Reply) {
        let stored: serde_json::Value = serde_json::from_str(&reply.body).expect("JSON");
        let id = stored["id"].as_i64().and_then(|id| i32::try_from(id).ok()).expect("an id");
        assert_eq!(stored["userId"], user_of(cents), "{}", reply.body);
        self.sent.lock().unwrap().insert(cents, Some(id));
    }

    pub(super) fn acknowledged(&self) -> usize {
        self.sent.lock().unwrap().values().flatten().count()
    }

    /// Every acknowledged order is there exactly once under its id, and none is there that was not sent.
    pub(super) fn check(&self, url: &str) {
        let sql = format!("SELECT id, user_id, (amount * 100)::int8 FROM orders WHERE id > {SEEDED}");
        let rows = Session::connect(url).rows(&sql);
        let sent = self.sent.lock().unwrap();
        let mut found = HashMap::new();
        for row in &rows {
            let (id, user_id, cents): (i32, i32, i64) = (row.get(0), row.get(1), row.get(2));
            let answered = sent.get(&cents).unwrap_or_else(|| panic!("order {id} of {cents} was never sent"));
            assert_eq!(i64::from(user_id), user_of(cents), "order {id}");
            assert!(answered.is_none_or(|answered| answered == id), "{cents} was answered {answered:?} and is {id}");
            assert_eq!(found.insert(cents, id), None, "{cents} is there twice");
        }
        for (cents, answered) in sent.iter() {
            assert!(
                answered.is_none() || found.get(cents) == answered.as_ref(),
                "{cents} was acknowledged and is lost"
            );
        }
    }
}
