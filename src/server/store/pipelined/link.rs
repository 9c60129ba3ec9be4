//! Keeps a worker's connections up: opens them, prepares the statements, opens a lost one again.

use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::try_join;
use tokio_postgres::{Client, Config as PgConfig, Connection, NoTls, Socket, Statement, tls::NoTlsStream};

use super::slots::{InFlight, Policy, Slots};
use crate::server::config::Config;
use crate::server::error::complain;
use crate::server::store::{INSERT_ORDER, Opening, USER_BY_ID, USER_PAGE};

/// Pauses between attempts to open a lost connection: a backend that was killed is replaced at once, a Postgres that is
/// away is asked a few times a second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);
/// Longest wait for one connection to be opened.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// A connection with its statements prepared.
pub(super) struct Link {
    pub(super) client: Client,
    pub(super) user_by_id: Statement,
    pub(super) user_page: Statement,
    pub(super) insert_order: Statement,
    pub(super) in_flight: InFlight,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").field("in_flight", &self.in_flight).finish_non_exhaustive()
    }
}

type Driver = Connection<Socket, NoTlsStream>;

/// Opens the first of `connections` and, behind it, the others; keeps each of them up until the store closes.
///
/// Postgres takes five milliseconds of CPU to start a backend, check the password and prepare: the first can answer while
/// the others are opened.
pub(super) async fn connect(config: &Config, connections: usize) -> anyhow::Result<(Arc<Slots>, Opening)> {
    let target = PgConfig::from_str(&config.database_url).context("the database URL cannot be read")?;
    let policy = Policy {
        spread: config.reads.spread.div_ceil(config.workers),
        depth: config.reads.depth,
        waiting: config.limits.waiting,
        wait_time: config.limits.wait_time,
    };
    let slots = Arc::new(Slots::new(connections, policy));
    open_and_keep(&target, &slots, 0).await?;
    let opening = tokio::spawn({
        let slots = Arc::clone(&slots);
        async move {
            // One after another: all at once would take the CPUs from the first requests.
            for place in 1..connections {
                open_and_keep(&target, &slots, place).await?;
            }
            Ok(())
        }
    });
    Ok((slots, opening))
}

async fn open_and_keep(target: &PgConfig, slots: &Arc<Slots>, place: usize) -> anyhow::Result<()> {
    let driver = match open(target.clone()).await {
        Ok((link, driver)) => {
            slots.up(place, Arc::new(link));
            driver
        }
        // Others of this worker answer already: it lives on, as when a connection is lost later.
        Err(error) if place > 0 && was_lost(&error) => tokio::spawn(async {}),
        Err(error) => return Err(error),
    };
    tokio::spawn(keep_up(target.clone(), Arc::clone(slots), place, driver));
    Ok(())
}

/// Whether a connection ended under its opening, rather than being refused.
fn was_lost(error: &anyhow::Error) -> bool {
    let Some(error) = error.downcast_ref::<tokio_postgres::Error>() else { return false };
    error.as_db_error().is_none_or(|answer| answer.code().code().starts_with("57P"))
}

/// Opens one connection and prepares its statements; the driver must be polled from then on.
async fn open(target: PgConfig) -> anyhow::Result<(Link, tokio::task::JoinHandle<()>)> {
    let connecting = async {
        let (client, driver) = target.connect(NoTls).await?;
        let driver = tokio::spawn(drive(driver));
        let (user_by_id, user_page, insert_order) =
            try_join!(client.prepare(USER_BY_ID), client.prepare(USER_PAGE), client.prepare(INSERT_ORDER))?;
        let link = Link { client, user_by_id, user_page, insert_order, in_flight: InFlight::default() };
        Ok((link, driver))
    };
    tokio::time::timeout(CONNECT_TIME, connecting).await.context("Postgres did not answer in time")?
}

/// Moves bytes until the connection ends: because the store let go of it, or because Postgres did.
async fn drive(driver: Driver) {
    // What was lost is told to every query in flight; there is nobody else to tell.
    let _ = driver.await;
}

/// Waits for a connection's end and opens it again, for as long as the store is open.
async fn keep_up(target: PgConfig, slots: Arc<Slots>, place: usize, mut driver: tokio::task::JoinHandle<()>) {
    loop {
        let _ = driver.await;
        if !slots.down(place) {
            return;
        }
        complain("a connection to Postgres was lost, opening it again");
        let mut pause = FIRST_PAUSE;
        driver = loop {
            if let Ok((link, driver)) = open(target.clone()).await {
                if !slots.up(place, Arc::new(link)) {
                    return;
                }
                break driver;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            if slots.is_closed() {
                return;
            }
        };
    }
}
