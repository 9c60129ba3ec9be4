//! tokio-postgres with many queries in flight on each connection: the ceiling.
//!
//! `slots` decides which connection carries a query, `link` keeps the connections up. A slot is free when Postgres has
//! answered, not when the caller has left: a query whose caller is gone is driven to its end by a task of its own.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::TryStreamExt as _;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, Row};

use super::{FOREIGN_KEY_VIOLATION, Opening, StoreError, StoredOrder, USER_BYTES, User, away};
use crate::server::amount::Amount;
use crate::server::config::Config;
use crate::server::timestamp::Timestamp;
use crate::server::validation::Order;

mod link;
mod slots;

use link::Link;
use slots::{Kind, Slots};

/// One worker's connections.
#[derive(Debug)]
pub(in crate::server) struct Store {
    slots: Arc<Slots>,
}

impl Store {
    /// Opens the first connection, and all others behind it; the three statements are prepared on each.
    pub(super) async fn connect(config: &Config, connections: usize) -> anyhow::Result<(Self, Opening)> {
        let (slots, opening) = link::connect(config, connections).await?;
        Ok((Self { slots }, opening))
    }

    pub(super) async fn user(&self, id: i32) -> Result<Option<Vec<u8>>, StoreError> {
        let slot = self.slots.take(Kind::Read).await?;
        let query = async move {
            let link = slot.link();
            let mut rows = pin!(link.client.query_raw(&link.user_by_id, [id]).await?);
            // Reads to the end of the answer: only then is the slot free.
            let mut found = None;
            while let Some(row) = rows.try_next().await? {
                user(&row)?.append(found.insert(Vec::with_capacity(USER_BYTES)));
            }
            Ok(found)
        };
        finish(query).await
    }

    pub(super) async fn users(&self, limit: i64, offset: i64, mut body: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        let slot = self.slots.take(Kind::Read).await?;
        let query = async move {
            let link = slot.link();
            let mut rows = pin!(link.client.query_raw(&link.user_page, [limit, offset]).await?);
            while let Some(row) = rows.try_next().await? {
                user(&row)?.append(&mut body);
            }
            Ok(body)
        };
        finish(query).await
    }

    pub(super) async fn insert(&self, order: &Order, created_at: Timestamp) -> Result<StoredOrder, StoreError> {
        let slot = self.slots.take(Kind::Insert).await?;
        let (user_id, currency) = (order.user_id, order.currency.clone());
        let cents = i64::try_from(order.amount.cents()).expect("amounts are below 10^12");
        let query = async move {
            let link = slot.link();
            let row = link.client.query_one(&link.insert_order, &[&user_id, &cents, &currency, &created_at]).await?;
            Ok(StoredOrder {
                id: row.try_get(0)?,
                user_id: row.try_get(1)?,
                amount: Amount::from_cents(row.try_get::<_, i64>(2)?.unsigned_abs()),
                currency: row.try_get(3)?,
                created_at: row.try_get(4)?,
            })
        };
        finish(query).await
    }

    pub(super) fn close(&self) {
        self.slots.close();
    }
}

fn user(row: &Row) -> Result<User<'_>, Error> {
    Ok(User {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        email: row.try_get(2)?,
        age: row.try_get(3)?,
        created_at: row.try_get(4)?,
    })
}

/// Awaits a query; when the caller is dropped meanwhile, a task takes the query over.
///
/// tokio-postgres does not cancel a dropped query: Postgres runs it, and its answer still passes through the connection.
/// Were the slot freed on drop, clients that vanish could put any number of queries on a connection.
fn finish<T: Send + 'static>(
    query: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> impl Future<Output = Result<T, StoreError>> + Send {
    Finish { query: Some(Box::pin(query)) }
}

type Query<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

struct Finish<T: Send + 'static> {
    query: Option<Query<T>>,
}

impl<T: Send + 'static> Future for Finish<T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let query = self.query.as_mut().expect("not polled after its answer");
        let answer = std::task::ready!(query.as_mut().poll(context));
        self.query = None;
        Poll::Ready(answer)
    }
}

impl<T: Send + 'static> Drop for Finish<T> {
    fn drop(&mut self) {
        if let (Some(query), Ok(runtime)) = (self.query.take(), tokio::runtime::Handle::try_current()) {
            // Owned by the connection: it ends when Postgres answers or the connection is lost.
            runtime.spawn(query);
        }
    }
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        match error.as_db_error() {
            Some(answer) if answer.code().code() == FOREIGN_KEY_VIOLATION => Self::UnknownUser,
            Some(answer) if away(answer.code().code()) => Self::Away,
            Some(answer) => Self::Unexpected(answer.message().to_owned()),
            // Not an answer of Postgres: the connection was closed under the query.
            None if error.is_closed()
                || std::error::Error::source(&error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>) =>
            {
                Self::Away
            }
            None => Self::Unexpected(error.to_string()),
        }
    }
}

impl<'a> FromSql<'a> for Timestamp {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self::from_postgres_us(i64::from_be_bytes(raw.try_into()?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }
}

impl ToSql for Timestamp {
    fn to_sql(&self, _: &Type, out: &mut bytes::BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.to_postgres_us().to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TIMESTAMPTZ
    }

    to_sql_checked!();
}
