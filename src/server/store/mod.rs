//! What the server asks of Postgres, and the two clients that can be asked.
//!
//! A store belongs to one worker: its connections are never shared between runtimes.

mod pipelined;
mod sqlx;

use serde::Serialize;
use thiserror::Error;
use tokio::task::JoinHandle;

use super::amount::Amount;
use super::config::{Config, StoreKind};
use super::error::{ApiError, complain};
use super::reply::append_text;
use super::timestamp::Timestamp;
use super::validation;

/// A row of `users`, in the key order of the contract, as it lies in the answer of Postgres.
#[derive(Debug)]
struct User<'a> {
    id: i32,
    name: &'a str,
    email: &'a str,
    age: i32,
    created_at: Timestamp,
}

/// Holds a user without growing.
const USER_BYTES: usize = 160;

impl User<'_> {
    /// Appends the user object, after a comma where another stands before it.
    ///
    /// Written by hand: a page has twenty of these, and the generic serialiser took a quarter of its instructions.
    fn append(&self, body: &mut Vec<u8>) {
        let start: &[u8] = if body.last() == Some(&b'}') { b",{\"id\":" } else { b"{\"id\":" };
        body.extend_from_slice(start);
        body.extend_from_slice(itoa::Buffer::new().format(self.id).as_bytes());
        body.extend_from_slice(b",\"name\":");
        append_text(body, self.name);
        body.extend_from_slice(b",\"email\":");
        append_text(body, self.email);
        body.extend_from_slice(b",\"age\":");
        body.extend_from_slice(itoa::Buffer::new().format(self.age).as_bytes());
        body.extend_from_slice(b",\"createdAt\":\"");
        body.extend_from_slice(&self.created_at.text());
        body.extend_from_slice(b"\"}");
    }
}

/// A row of `orders`, in the key order of the contract.
#[derive(Debug, Serialize)]
pub(super) struct StoredOrder {
    pub(super) id: i32,
    #[serde(rename = "userId")]
    pub(super) user_id: i32,
    pub(super) amount: Amount,
    pub(super) currency: String,
    #[serde(rename = "createdAt")]
    pub(super) created_at: Timestamp,
}

const USER_BY_ID: &str = "SELECT id, name, email, age, created_at FROM users WHERE id = $1";
const USER_PAGE: &str = "SELECT id, name, email, age, created_at FROM users ORDER BY id LIMIT $1 OFFSET $2";
/// Amounts travel as hundredths in `int8`, which both clients know; `numeric` is exact, so nothing is rounded twice.
const INSERT_ORDER: &str = "INSERT INTO orders (user_id, amount, currency, created_at) \
    VALUES ($1, $2::int8 * 0.01, $3, $4) \
    RETURNING id, user_id, (amount * 100)::int8, currency, created_at";

/// `SQLSTATE` of an insert whose user does not exist.
const FOREIGN_KEY_VIOLATION: &str = "23503";

/// Whether a `SQLSTATE` says that the connection or the whole server is going away: class 08 (connection exception) and
/// 57P (operator intervention: shutdown, crash, starting up); class 53 (out of connections or memory).
fn away(sqlstate: &str) -> bool {
    ["08", "53", "57P"].iter().any(|class| sqlstate.starts_with(class))
}

/// Why Postgres gave no answer.
#[derive(Debug, Error)]
pub(super) enum StoreError {
    /// No connection is up, or the one that carried the query was lost.
    #[error("Postgres cannot be reached")]
    Away,
    /// Every slot was taken for the whole wait, or too many waited already.
    #[error("too many requests wait for Postgres")]
    Full,
    /// An order for a user that does not exist.
    #[error("no such user")]
    UnknownUser,
    /// Postgres answered with an error nobody expects.
    #[error("Postgres answered {0}")]
    Unexpected(String),
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Away => Self::Unavailable("the database is away"),
            StoreError::Full => Self::Unavailable("too many requests wait for the database"),
            StoreError::UnknownUser => validation::unknown_user(),
            StoreError::Unexpected(detail) => {
                complain(&format!("Postgres answered {detail}"));
                Self::Internal("the database gave an answer nobody expected")
            }
        }
    }
}

/// One of the two clients.
#[derive(Debug)]
pub(super) enum Store {
    Pipelined(pipelined::Store),
    Sqlx(sqlx::Store),
}

/// The opening of the connections that a store does not need for its first answer.
pub(super) type Opening = JoinHandle<anyhow::Result<()>>;

impl Store {
    /// Can answer when it is there; the [`Opening`] fails when one of a worker's `connections` cannot be opened.
    pub(super) async fn connect(config: &Config, connections: usize) -> anyhow::Result<(Self, Opening)> {
        Ok(match config.store {
            StoreKind::Pipelined => {
                let (store, opening) = pipelined::Store::connect(config, connections).await?;
                (Self::Pipelined(store), opening)
            }
            StoreKind::Sqlx | StoreKind::SqlxHeld => {
                let store = sqlx::Store::connect(config, connections).await?;
                (Self::Sqlx(store), tokio::spawn(async { Ok(()) }))
            }
        })
    }

    /// The user with this id, as JSON.
    pub(super) async fn user(&self, id: i32) -> Result<Option<Vec<u8>>, StoreError> {
        match self {
            Self::Pipelined(store) => store.user(id).await,
            Self::Sqlx(store) => store.user(id).await,
        }
    }

    /// Appends `limit` users in order of their ids, after the first `offset`, as JSON with commas between.
    pub(super) async fn users(&self, limit: u32, offset: i64, mut body: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        body.reserve(USER_BYTES * limit as usize);
        match self {
            Self::Pipelined(store) => store.users(limit.into(), offset, body).await,
            Self::Sqlx(store) => store.users(limit.into(), offset, body).await,
        }
    }

    /// Inserts an order, committed on its own.
    pub(super) async fn insert(
        &self,
        order: &validation::Order,
        created_at: Timestamp,
    ) -> Result<StoredOrder, StoreError> {
        match self {
            Self::Pipelined(store) => store.insert(order, created_at).await,
            Self::Sqlx(store) => store.insert(order, created_at).await,
        }
    }

    /// Says goodbye to Postgres, so that no backend outlives the server.
    pub(super) async fn close(&self) {
        match self {
            Self::Pipelined(store) => store.close(),
            Self::Sqlx(store) => store.close().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a serialiser makes of a user.
    fn serialised(user: &User<'_>) -> String {
        #[derive(Serialize)]
        struct Plain<'a> {
            id: i32,
            name: &'a str,
            email: &'a str,
            age: i32,
            #[serde(rename = "createdAt")]
            created_at: Timestamp,
        }
        let &User { id, name, email, age, created_at } = user;
        serde_json::to_string(&Plain { id, name, email, age, created_at }).expect("it serialises")
    }

    #[test]
    fn users_are_written_as_a_serialiser_writes_them() {
        let created_at = Timestamp::from_postgres_us(753_315_200_123_000);
        for name in ["User 1", "", "a\"b", "back\\slash", "line\nbreak", "nul\0", "\u{1f}\u{7f}é😀", "\u{2028}"] {
            for number in [i32::MIN, -1, 0, 7, i32::MAX] {
                let user = User { id: number, name, email: name, age: number, created_at };
                let mut body = b"[".to_vec();
                user.append(&mut body);
                user.append(&mut body);
                let text = serialised(&user);
                assert_eq!(String::from_utf8(body).expect("UTF-8"), format!("[{text},{text}"));
            }
        }
    }
}
