//! sqlx's connections without its pool: handed out first come first served, and given back without a round trip.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::server::store::StoreError;

/// One worker's connections.
#[derive(Debug)]
pub(in crate::server) struct Held {
    options: PgConnectOptions,
    wait_time: Duration,
    /// One permit for each connection.
    places: Arc<Semaphore>,
    /// Those nobody uses; `None` for one that was lost and is opened again by whoever comes next.
    idle: Mutex<Vec<Option<PgConnection>>>,
}

impl Held {
    pub(super) async fn connect(
        options: PgConnectOptions,
        connections: usize,
        wait_time: Duration,
    ) -> Result<Arc<Self>, sqlx::Error> {
        let mut idle = Vec::new();
        for _ in 0..connections {
            idle.push(Some(PgConnection::connect_with(&options).await?));
        }
        Ok(Arc::new(Self { options, wait_time, places: Arc::new(Semaphore::new(connections)), idle: Mutex::new(idle) }))
    }

    /// Runs a query on the next free connection.
    pub(super) async fn run<T>(
        self: &Arc<Self>,
        query: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
    ) -> Result<T, StoreError> {
        let place = tokio::time::timeout(self.wait_time, Arc::clone(&self.places).acquire_owned()).await;
        let place = place.map_err(|_| StoreError::Full)?.map_err(|_| StoreError::Away)?;
        let connection = self.take();
        let mut taken = Taken { held: Arc::clone(self), place: Some(place), connection, is_busy: false };
        let connection = match &mut taken.connection {
            Some(connection) => connection,
            gap => {
                let opened = PgConnection::connect_with(&self.options).await.map_err(|_| StoreError::Away)?;
                gap.insert(opened)
            }
        };
        taken.is_busy = true;
        let outcome = query(connection).await;
        taken.is_busy = false;
        if !matches!(&outcome, Ok(_) | Err(sqlx::Error::Database(_) | sqlx::Error::RowNotFound)) {
            taken.connection = None;
        }
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

    fn give_back(&self, connection: Option<PgConnection>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}

/// Gives a connection, or the gap it left, back, and then its place.
struct Taken {
    held: Arc<Held>,
    place: Option<OwnedSemaphorePermit>,
    connection: Option<PgConnection>,
    /// A query has been sent and its answer has not been read to the end.
    is_busy: bool,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let (held, place) = (Arc::clone(&self.held), self.place.take());
        let unread = if self.is_busy { self.connection.take() } else { None };
        let (Some(mut connection), Ok(runtime)) = (unread, tokio::runtime::Handle::try_current()) else {
            held.give_back(self.connection.take());
            return;
        };
        // The caller has left, Postgres still works. Were its connection closed now, clients that vanish could put any
        // number of sessions to work. The task is owned by the connection: it ends when Postgres answers or is lost.
        runtime.spawn(async move {
            let is_sound = connection.ping().await.is_ok();
            held.give_back(is_sound.then_some(connection));
            drop(place);
        });
    }
}
