//! The contract's statements, pipelined over the connections of a server, without HTTP around them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use futures_util::TryStreamExt as _;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement as Prepared};

/// Users that the data holds.
const USERS: i32 = 50_000;
/// Pages that the load asks for.
const PAGES: i64 = 20;
const PAGE_ROWS: i64 = 20;
const CURRENCY: &str = "USD";
/// Reads in flight on one connection before the next is used, as in the reference server.
const READ_DEPTH: usize = 32;
/// A step through the ids that visits all of them in no order Postgres could guess.
const STRIDE: i32 = 7_919;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statement {
    /// A user by primary key.
    User,
    /// A page of twenty users.
    List,
    /// An order inserted, committed on its own.
    Order,
}

impl Statement {
    /// The reference server's own text: a floor of other statements would be a floor of something else.
    fn sql(self) -> &'static str {
        match self {
            Self::User => "SELECT id, name, email, age, created_at FROM users WHERE id = $1",
            Self::List => "SELECT id, name, email, age, created_at FROM users ORDER BY id LIMIT $1 OFFSET $2",
            Self::Order => {
                "INSERT INTO orders (user_id, amount, currency, created_at) \
                 VALUES ($1, $2::int8 * 0.01, $3, $4) \
                 RETURNING id, user_id, (amount * 100)::int8, currency, created_at"
            }
        }
    }
}

/// How it is asked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The database, which must hold the contract's data.
    pub url: String,
    /// Which statement.
    pub statement: Statement,
    /// Connections in all.
    pub connections: usize,
    /// Statements in flight in all; each is followed by the next as soon as it is answered.
    pub in_flight: usize,
    /// Time before the window.
    pub warmup: Duration,
    /// The time that is counted.
    pub window: Duration,
}

/// What a window came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Statements answered in the window.
    pub statements: u64,
    /// Length of the window, as it was.
    pub elapsed: Duration,
}

/// Runs on one thread; `edge` is called as the window begins and as it ends, to sample whatever is to be counted.
///
/// # Errors
/// Names what Postgres refused.
pub fn run(config: &Config, edge: impl FnMut()) -> anyhow::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(config, edge))
}

async fn measure(config: &Config, mut edge: impl FnMut()) -> anyhow::Result<Outcome> {
    let mut links = Vec::new();
    for _ in 0..config.connections.max(1) {
        let (client, connection) = tokio_postgres::connect(&config.url, NoTls).await.context("cannot connect")?;
        tokio::spawn(connection);
        let prepared = client.prepare(config.statement.sql()).await.context("cannot prepare the statement")?;
        links.push(Arc::new((client, prepared)));
    }
    let (answered, stops) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let asking: Vec<_> = (0..config.in_flight.max(1))
        .map(|place| {
            let link = match config.statement {
                // Commits of one connection run one after another.
                Statement::Order => place % links.len(),
                Statement::User | Statement::List => (place / READ_DEPTH).min(links.len() - 1),
            };
            let seed = i32::try_from(place).unwrap_or(0);
            let (link, answered, stops) = (Arc::clone(&links[link]), Arc::clone(&answered), Arc::clone(&stops));
            tokio::spawn(ask(link, config.statement, seed, answered, stops))
        })
        .collect();
    tokio::time::sleep(config.warmup).await;
    edge();
    let (start, before) = (Instant::now(), answered.load(Ordering::Relaxed));
    tokio::time::sleep(config.window).await;
    let statements = answered.load(Ordering::Relaxed) - before;
    let elapsed = start.elapsed();
    edge();
    stops.store(true, Ordering::Relaxed);
    for task in asking {
        task.await.context("a task of the floor ended early")??;
    }
    Ok(Outcome { statements, elapsed })
}

async fn ask(
    link: Arc<(Client, Prepared)>,
    statement: Statement,
    seed: i32,
    answered: Arc<AtomicU64>,
    stops: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let (client, prepared) = &*link;
    let mut id = seed * 1_231 % USERS;
    while !stops.load(Ordering::Relaxed) {
        id = (id + STRIDE) % USERS;
        let (key, offset, cents) = (id + 1, i64::from(id) % PAGES * PAGE_ROWS, i64::from(id));
        let now = SystemTime::now();
        let parameters: &[&(dyn ToSql + Sync)] = match statement {
            Statement::User => &[&key],
            Statement::List => &[&PAGE_ROWS, &offset],
            Statement::Order => &[&key, &cents, &CURRENCY, &now],
        };
        let rows = client.query_raw(prepared, parameters.iter().copied()).await.context("a statement failed")?;
        let mut rows = std::pin::pin!(rows);
        while rows.try_next().await.context("a statement failed")?.is_some() {}
        answered.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
