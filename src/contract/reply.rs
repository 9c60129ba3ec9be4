//! What a server owes for a request of the load: whole bodies where they are fixed, fields where the server adds some.

use serde_json::Value;

use crate::dataset::{ORDERS, User};

/// The reply a request must get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// This body, byte for byte.
    Exact(Vec<u8>),
    /// An accepted order: a new id, the fields of the request, a time of the server's clock.
    Order {
        /// As sent.
        user_id: u32,
        /// Two decimals, as the server must answer it.
        amount: String,
        /// As sent.
        currency: &'static str,
    },
}

impl Expected {
    /// How every good body begins, as far as it can be known: a row's id, a page's number.
    pub fn start(&self) -> Option<&[u8]> {
        let Self::Exact(body) = self else { return None };
        let comma = body.iter().position(|&byte| byte == b',')?;
        Some(&body[..=comma])
    }

    /// Compares a reply's body.
    ///
    /// # Errors
    /// Says in one line what differs.
    pub fn check(&self, body: &[u8]) -> Result<(), String> {
        match self {
            Self::Exact(expected) if expected == body => Ok(()),
            Self::Exact(expected) => Err(format!("expected {}, got {}", clip(expected), clip(body))),
            Self::Order { user_id, amount, currency } => check_order(body, *user_id, amount, currency),
        }
    }
}

/// The user object of the contract, byte for byte.
pub fn render_user(user: &User) -> String {
    let User { id, name, email, age, created_at_s } = user;
    format!(r#"{{"id":{id},"name":"{name}","email":"{email}","age":{age},"createdAt":"{}"}}"#, timestamp(*created_at_s))
}

/// UTC with exactly three decimals and `Z`.
fn timestamp(seconds: i64) -> String {
    let at = jiff::Timestamp::from_second(seconds).expect("seconds of the dataset are in range");
    at.strftime("%Y-%m-%dT%H:%M:%S.000Z").to_string()
}

fn check_order(body: &[u8], user_id: u32, amount: &str, currency: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what} in the order reply {}", clip(body)));
    let Ok(reply) = serde_json::from_slice::<Value>(body) else { return wrong("no JSON") };
    let Some(id) = reply["id"].as_i64() else { return wrong("no integer id") };
    let Some(created_at) = reply["createdAt"].as_str() else { return wrong("no createdAt") };
    if id <= i64::from(ORDERS) {
        return wrong("an id of a seeded order");
    }
    // Rebuilt from its own fields, the body must come out the same: key order, spacing and types in one comparison.
    let rebuilt = format!(
        r#"{{"id":{id},"userId":{user_id},"amount":"{amount}","currency":"{currency}","createdAt":"{created_at}"}}"#
    );
    if rebuilt.as_bytes() != body {
        return wrong("a wrong field");
    }
    let shape = created_at.len() == 24 && created_at.ends_with('Z') && created_at.as_bytes()[19] == b'.';
    if !shape || created_at.parse::<jiff::Timestamp>().is_err() {
        return wrong("a createdAt that is not UTC with three decimals");
    }
    Ok(())
}

fn clip(bytes: &[u8]) -> String {
    const SHOWN: usize = 200;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    if bytes.len() > SHOWN { format!("{text}… ({} bytes)", bytes.len()) } else { text.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset;

    #[test]
    fn user_4242_is_rendered_as_the_contract_prints_it() {
        assert_eq!(
            render_user(&dataset::user(4242)),
            r#"{"id":4242,"name":"User 4242","email":"user4242@example.com","age":36,"createdAt":"2023-11-14T23:24:01.000Z"}"#
        );
    }

    #[test]
    fn an_order_reply_is_checked_to_the_byte() {
        let expected = Expected::Order { user_id: 4242, amount: "19.99".to_owned(), currency: "USD" };
        let good =
            r#"{"id":200001,"userId":4242,"amount":"19.99","currency":"USD","createdAt":"2026-01-02T03:04:05.678Z"}"#;
        assert_eq!(expected.check(good.as_bytes()), Ok(()));
        for (from, to) in [
            ("200001", "200000"),
            ("4242", "4243"),
            (r#""19.99""#, "19.99"),
            ("USD", "EUR"),
            (".678Z", "Z"),
            (r#""id":200001,"#, r#""id": 200001,"#),
            ("200001", r#""200001""#),
        ] {
            assert!(expected.check(good.replace(from, to).as_bytes()).is_err(), "{from} → {to} was accepted");
        }
    }
}
