//! sqlx's connections without its pool: handed out first come first served, and given back without a round trip.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::Semaphore;

use crate::server::store::StoreError;

/// One worker's connections.
#[derive(Debug)]
pub(in crate::server) struct Held {
    options: PgConnectOptions,
    wait_time: Duration,
    /// One permit for each connection.
    places: Semaphore,
    /// Those nobody uses; `None` for one that was lost and is opened again by whoever comes next.
    idle: Mutex<Vec<Option<PgConnection>>>,
}

impl Held {
    pub(super) async fn connect(
        options: PgConnectOptions,
        connections: usize,
        wait_time: Duration,
    ) -> Result<Self, sqlx::Error> {
        let mut idle = Vec::new();
        for _ in 0..connections {
            idle.push(Some(PgConnection::connect_with(&options).await?));
        }
        Ok(Self { options, wait_time, places: Semaphore::new(connections), idle: Mutex::new(idle) })
    }

    /// Runs a query on the next free connection.
    pub(super) async fn run<T>(
        &self,
        query: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let place = tokio::time::timeout(self.wait_time, self.places.acquire()).await;
        let _place = place.map_err(|_| StoreError::Full)?.map_err(|_| StoreError::Away)?;
        let mut taken = Taken { held: self, connection: self.take() };
        // Out of its place while it is used: a caller that leaves half-way leaves no connection behind, but a gap.
        let mut connection = match taken.connection.take() {
            Some(connection) => connection,
            None => PgConnection::connect_with(&self.options).await.map_err(|_| StoreError::Away)?,
        };
        let outcome = query(&mut connection).await;
        let is_sound = matches!(&outcome, Ok(_) | Err(sqlx::Error::Database(_) | sqlx::Error::RowNotFound));
        taken.connection = is_sound.then_some(connection);
        Ok(outcome?)
    }

    /// Says goodbye on every connection.
    pub(super) async fn close(&self) {
        self.places.close();
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in idle.into_iter().flatten() {
            // One that is gone already has nothing to say.
            let _ = connection.close().await;
        }
    }

    fn take(&self) -> Option<PgConnection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop().flatten()
    }
}

/// Gives a connection, or the gap it left, back.
struct Taken<'h> {
    held: &'h Held,
    connection: Option<PgConnection>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.held.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.connection.take());
    }
}
