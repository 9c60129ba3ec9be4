//! sqlx and its pool, as a Rust team that knows it writes first: prepared statements, a pool that is full from the
//! start, no test of a connection before it is handed out.
//!
//! One query in flight on each connection. The pool adds a round trip whenever a connection goes back to it; `held`
//! holds the same connections without it, to show what that costs.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{
    PgArgumentBuffer, PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow, PgTypeInfo, PgValueFormat,
    PgValueRef,
};
use sqlx::{Connection as _, Decode, Encode, Postgres, Row as _, Type};

use super::{
    FOREIGN_KEY_VIOLATION, INSERT_ORDER, StoreError, StoredOrder, USER_BY_ID, USER_BYTES, USER_PAGE, User, away,
};
use crate::server::amount::Amount;
use crate::server::config::{Config, StoreKind};
use crate::server::timestamp::Timestamp;
use crate::server::validation::Order;

mod held;

use held::Held;

/// Longest wait for all connections to be opened when the server starts: some tens of milliseconds each, one after another.
const OPEN_TIME: Duration = Duration::from_secs(30);
/// How often the pool is asked whether they are.
const OPEN_POLL: Duration = Duration::from_millis(5);

/// One worker's connections.
#[derive(Debug)]
pub(in crate::server) enum Store {
    Pool(PgPool),
    Held(Arc<Held>),
}

impl Store {
    /// Opens all connections now: a pool that grows on demand would connect inside somebody's measurement.
    pub(super) async fn connect(config: &Config, connections: usize) -> anyhow::Result<Self> {
        let options = PgConnectOptions::from_str(&config.database_url).context("the database URL cannot be read")?;
        if config.store == StoreKind::SqlxHeld {
            return Ok(Self::Held(Held::connect(options, connections, config.limits.wait_time).await?));
        }
        let most = u32::try_from(connections).context("too many connections")?;
        // The pool tries until its time is up and then says only that; one connection of its own says what is wrong.
        PgConnection::connect_with(&options).await?.close().await?;
        let pool = PgPoolOptions::new()
            .min_connections(most)
            .max_connections(most)
            .test_before_acquire(false)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(config.limits.wait_time)
            .connect_lazy_with(options);
        // The pool opens its minimum in the background. Acquiring would put every login under a request's wait.
        let opening = async {
            while pool.num_idle() < connections {
                tokio::time::sleep(OPEN_POLL).await;
            }
        };
        let opened = tokio::time::timeout(OPEN_TIME, opening).await;
        opened.with_context(|| format!("Postgres did not let {connections} connections in within {OPEN_TIME:?}"))?;
        Ok(Self::Pool(pool))
    }

    pub(super) async fn user(&self, id: i32) -> Result<Option<Vec<u8>>, StoreError> {
        let query = sqlx::query(USER_BY_ID).bind(id);
        let row = match self {
            Self::Pool(pool) => query.fetch_optional(pool).await?,
            Self::Held(held) => held.run(async |connection| query.fetch_optional(connection).await).await?,
        };
        let Some(row) = row else { return Ok(None) };
        let mut body = Vec::with_capacity(USER_BYTES);
        user(&row)?.append(&mut body);
        Ok(Some(body))
    }

    pub(super) async fn users(&self, limit: i64, offset: i64, mut body: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        let query = sqlx::query(USER_PAGE).bind(limit).bind(offset);
        let rows = match self {
            Self::Pool(pool) => query.fetch_all(pool).await?,
            Self::Held(held) => held.run(async |connection| query.fetch_all(connection).await).await?,
        };
        for row in &rows {
            user(row)?.append(&mut body);
        }
        Ok(body)
    }

    pub(super) async fn insert(&self, order: &Order, created_at: Timestamp) -> Result<StoredOrder, StoreError> {
        let cents = i64::try_from(order.amount.cents()).expect("amounts are below 10^12");
        let query = sqlx::query(INSERT_ORDER).bind(order.user_id).bind(cents).bind(&order.currency).bind(created_at);
        let row = match self {
            Self::Pool(pool) => query.fetch_one(pool).await?,
            Self::Held(held) => held.run(async |connection| query.fetch_one(connection).await).await?,
        };
        Ok(StoredOrder {
            id: row.try_get(0)?,
            user_id: row.try_get(1)?,
            amount: Amount::from_cents(row.try_get::<i64, _>(2)?.unsigned_abs()),
            currency: row.try_get(3)?,
            created_at: row.try_get(4)?,
        })
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Pool(pool) => pool.close().await,
            Self::Held(held) => held.close().await,
        }
    }
}

fn user(row: &PgRow) -> Result<User<'_>, StoreError> {
    Ok(User {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        email: row.try_get(2)?,
        age: row.try_get(3)?,
        created_at: row.try_get(4)?,
    })
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::PoolTimedOut => Self::Full,
            sqlx::Error::Io(_) | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => {
                Self::Away
            }
            sqlx::Error::Database(answer) => match answer.code().as_deref() {
                Some(FOREIGN_KEY_VIOLATION) => Self::UnknownUser,
                Some(code) if away(code) => Self::Away,
                _ => Self::Unexpected(answer.message().to_owned()),
            },
            _ => Self::Unexpected(error.to_string()),
        }
    }
}

impl Type<Postgres> for Timestamp {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_name("TIMESTAMPTZ")
    }
}

impl Decode<'_, Postgres> for Timestamp {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        match value.format() {
            PgValueFormat::Binary => Ok(Self::from_postgres_us(<i64 as Decode<Postgres>>::decode(value)?)),
            PgValueFormat::Text => Err("timestamps are read in binary form only".into()),
        }
    }
}

impl Encode<'_, Postgres> for Timestamp {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<Postgres>>::encode(self.to_postgres_us(), buffer)
    }
}
