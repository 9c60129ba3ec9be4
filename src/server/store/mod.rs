//! What the server asks of Postgres, and the two clients that can be asked.
//!
//! A store belongs to one worker: its connections are never shared between runtimes.

mod pipelined;
mod sqlx;

use serde::Serialize;
use thiserror::Error;

use super::amount::Amount;
use super::config::{Config, StoreKind};
use super::error::{ApiError, complain};
use super::timestamp::Timestamp;
use super::validation;

/// A row of `users`, in the key order of the contract.
#[derive(Debug, Serialize)]
pub(super) struct User {
    pub(super) id: i32,
    pub(super) name: String,
    pub(super) email: String,
    pub(super) age: i32,
    #[serde(rename = "createdAt")]
    pub(super) created_at: Timestamp,
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

impl Store {
    /// Opens all `connections` of a worker; fails when one of them cannot be opened.
    pub(super) async fn connect(config: &Config, connections: usize) -> anyhow::Result<Self> {
        Ok(match config.store {
            StoreKind::Pipelined => Self::Pipelined(pipelined::Store::connect(config, connections).await?),
            StoreKind::Sqlx => Self::Sqlx(sqlx::Store::connect(config, connections).await?),
        })
    }

    /// The user with this id.
    pub(super) async fn user(&self, id: i32) -> Result<Option<User>, StoreError> {
        match self {
            Self::Pipelined(store) => store.user(id).await,
            Self::Sqlx(store) => store.user(id).await,
        }
    }

    /// `limit` users in order of their ids, after the first `offset`.
    pub(super) async fn users(&self, limit: i64, offset: i64) -> Result<Vec<User>, StoreError> {
        match self {
            Self::Pipelined(store) => store.users(limit, offset).await,
            Self::Sqlx(store) => store.users(limit, offset).await,
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
