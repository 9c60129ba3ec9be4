//! What a server is told before it starts, checked as a whole.

use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

/// The secret every bench uses when none is set. Known to everyone, so never accepted from other hosts.
pub const BENCH_SECRET: &str = "bench-secret-do-not-use-in-production";

/// More than any Postgres is set up for: a slip of the finger.
const MOST_CONNECTIONS: usize = 1_000;

/// How much of an over-long body is read away before its connection ends, so that a client that is still writing can read
/// the answer instead of a reset connection.
pub(super) const DRAINED_BYTES: u64 = 8 * 1024 * 1024;
/// Largest limit on bytes of a request: both parts of one are kept in memory.
const MOST_BYTES: usize = 1024 * 1024 * 1024;
/// Largest limit on a count: queues are as long as theirs from the start.
const MOST_COUNT: usize = 1_048_576;

/// Which code speaks HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HttpKind {
    /// Our own front on the runtime's sockets: the ceiling.
    Own,
    /// axum over hyper: what a Rust team writes first.
    Axum,
}

/// Which client talks to Postgres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreKind {
    /// tokio-postgres with many queries in flight on each connection: the ceiling.
    Pipelined,
    /// sqlx and its pool, one query in flight on each connection: what a Rust team writes first.
    Sqlx,
    /// The same connections without the pool, which adds a round trip to every query.
    SqlxHeld,
}

/// How reads are laid over a worker's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadPolicy {
    /// Reads are spread over this many connections (of all workers together) before any is filled further.
    pub spread: usize,
    /// Queries in flight on one connection before the next one is used; also the bound for inserts.
    pub depth: usize,
}

/// Bounds on what a client may ask of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest body read; a longer one is answered 413.
    pub body_bytes: usize,
    /// Longest request head; a longer one is answered 431.
    pub head_bytes: usize,
    /// How long a connection may be silent between requests, or take no byte of a reply.
    pub idle_time: Duration,
    /// Time from the first byte of a request head to its last (axum has one time for this and `idle_time`, the latter).
    pub head_time: Duration,
    /// Time until a request body is complete.
    pub body_time: Duration,
    /// Time from a whole request to its reply, waits included; then 503.
    pub request_time: Duration,
    /// Client connections of all workers together; further ones wait in the kernel's queue.
    pub connections: usize,
    /// Requests of one worker that may wait for a free database slot, and hash jobs that may wait for the thread.
    pub waiting: usize,
    /// Longest wait for a free database slot before 503.
    pub wait_time: Duration,
    /// After SIGTERM: how long requests in flight may take to finish.
    pub drain_time: Duration,
}

impl Limits {
    /// Generous for a client that means well, finite for every other.
    pub const DEFAULT: Self = Self {
        body_bytes: 64 * 1024,
        head_bytes: 64 * 1024,
        idle_time: Duration::from_mins(1),
        head_time: Duration::from_secs(10),
        body_time: Duration::from_secs(30),
        request_time: Duration::from_secs(30),
        connections: 16_384,
        waiting: 16_384,
        wait_time: Duration::from_secs(5),
        drain_time: Duration::from_secs(8),
    };

    fn check(&self) -> Result<(), ConfigError> {
        for (flag, value, most) in [
            ("--max-head", self.head_bytes, MOST_BYTES),
            ("--max-body", self.body_bytes, MOST_BYTES),
            ("--max-connections", self.connections, MOST_COUNT),
            ("--max-waiting", self.waiting, MOST_COUNT),
        ] {
            if !(1..=most).contains(&value) {
                return Err(ConfigError::Limit { flag, value, most });
            }
        }
        let times = [
            ("--head-time", self.head_time),
            ("--body-time", self.body_time),
            ("--idle-time", self.idle_time),
            ("--request-time", self.request_time),
            ("--wait-time", self.wait_time),
            ("--drain-time", self.drain_time),
        ];
        times.iter().find(|(_, time)| time.is_zero()).map_or(Ok(()), |(flag, _)| Err(ConfigError::NoTime(flag)))
    }
}

/// Everything a server needs besides its listener.
#[derive(Clone)]
pub struct Config {
    /// `postgres://…`; any Postgres with the contract's tables.
    pub database_url: String,
    /// Connections to Postgres in all, dealt to the workers as evenly as they divide.
    pub connections: usize,
    /// Single-threaded runtimes, each with its own connections and one hashing thread.
    pub workers: usize,
    /// Which code speaks HTTP.
    pub http: HttpKind,
    /// Which client talks to Postgres.
    pub store: StoreKind,
    /// How the pipelined store lays reads over connections.
    pub reads: ReadPolicy,
    /// Key of the HS256 tokens.
    pub jwt_secret: String,
    /// Bounds on what a client may ask.
    pub limits: Limits,
}

/// A setting that cannot work, refused before anything starts.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// Nothing to connect with.
    #[error("--connections {0} is out of range: use 1 to {MOST_CONNECTIONS}")]
    Connections(usize),
    /// A worker without a connection could not answer.
    #[error(
        "--workers {workers} is out of range: use 1 to {connections}, since every worker needs a Postgres connection of its own"
    )]
    Workers {
        /// As asked.
        workers: usize,
        /// As asked.
        connections: usize,
    },
    /// A limit that would let nothing through, or everything.
    #[error("{flag} {value} is out of range: use 1 to {most}")]
    Limit {
        /// Its flag.
        flag: &'static str,
        /// As asked.
        value: usize,
        /// The most there may be.
        most: usize,
    },
    /// A time in which nothing can happen.
    #[error("{0} 0s leaves no time: use at least 1ms")]
    NoTime(&'static str),
    /// A policy that would never send a query.
    #[error("--read-spread {spread} and --read-depth {depth} must both be at least 1")]
    Reads {
        /// As asked.
        spread: usize,
        /// As asked.
        depth: usize,
    },
    /// Everyone knows the bench secret.
    #[error(
        "the bench secret is public and {0} can be reached from other hosts: set JWT_SECRET, or listen on a loopback address"
    )]
    PublicSecret(SocketAddr),
    /// An empty key signs nothing.
    #[error("JWT_SECRET is empty: set it to the key of your tokens, or unset it for the bench secret")]
    EmptySecret,
}

impl Config {
    /// Checks everything that can be known before the first connection.
    ///
    /// # Errors
    /// The first setting that cannot work.
    pub fn check(&self, listen: SocketAddr) -> Result<(), ConfigError> {
        if !(1..=MOST_CONNECTIONS).contains(&self.connections) {
            return Err(ConfigError::Connections(self.connections));
        }
        if !(1..=self.connections).contains(&self.workers) {
            return Err(ConfigError::Workers { workers: self.workers, connections: self.connections });
        }
        if self.reads.spread == 0 || self.reads.depth == 0 {
            return Err(ConfigError::Reads { spread: self.reads.spread, depth: self.reads.depth });
        }
        self.limits.check()?;
        if self.jwt_secret.is_empty() {
            return Err(ConfigError::EmptySecret);
        }
        if self.jwt_secret == BENCH_SECRET && !listen.ip().is_loopback() {
            return Err(ConfigError::PublicSecret(listen));
        }
        Ok(())
    }

    /// Connections of each worker: the total divided, the remainder dealt one by one.
    pub fn shares(&self) -> Vec<usize> {
        let (each, rest) = (self.connections / self.workers, self.connections % self.workers);
        (0..self.workers).map(|worker| each + usize::from(worker < rest)).collect()
    }
}

impl std::fmt::Debug for Config {
    /// Without the secret and the database's password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("connections", &self.connections)
            .field("workers", &self.workers)
            .field("http", &self.http)
            .field("store", &self.store)
            .field("reads", &self.reads)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            database_url: String::new(),
            connections: 10,
            workers: 1,
            http: HttpKind::Own,
            store: StoreKind::Pipelined,
            reads: ReadPolicy { spread: 1, depth: 32 },
            jwt_secret: BENCH_SECRET.to_owned(),
            limits: Limits::DEFAULT,
        }
    }

    const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 3000);

    #[test]
    fn connections_are_dealt_to_the_last_one() {
        let shares = |workers| Config { workers, ..config() }.shares();
        assert_eq!(shares(1), [10]);
        assert_eq!(shares(3), [4, 3, 3]);
        assert_eq!(shares(10), [1; 10]);
    }

    #[test]
    fn what_cannot_work_is_refused() {
        assert_eq!(config().check(LOOPBACK), Ok(()));
        let refused = |config: Config| config.check(LOOPBACK).expect_err("must be refused");
        assert_eq!(refused(Config { connections: 0, ..config() }), ConfigError::Connections(0));
        assert!(matches!(refused(Config { workers: 11, ..config() }), ConfigError::Workers { .. }));
        assert!(matches!(refused(Config { workers: 0, ..config() }), ConfigError::Workers { .. }));
        let reads = ReadPolicy { spread: 1, depth: 0 };
        assert!(matches!(refused(Config { reads, ..config() }), ConfigError::Reads { .. }));
        let limits = Limits { idle_time: Duration::ZERO, ..Limits::DEFAULT };
        assert_eq!(refused(Config { limits, ..config() }), ConfigError::NoTime("--idle-time"));
        for limits in [
            Limits { connections: 0, ..Limits::DEFAULT },
            Limits { body_bytes: usize::MAX, ..Limits::DEFAULT },
            Limits { waiting: usize::MAX, ..Limits::DEFAULT },
        ] {
            assert!(matches!(refused(Config { limits, ..config() }), ConfigError::Limit { .. }), "{limits:?}");
        }
        assert_eq!(refused(Config { jwt_secret: String::new(), ..config() }), ConfigError::EmptySecret);
    }

    #[test]
    fn the_bench_secret_stays_on_loopback() {
        let everywhere: SocketAddr = "0.0.0.0:3000".parse().expect("an address");
        assert_eq!(config().check(everywhere), Err(ConfigError::PublicSecret(everywhere)));
        assert_eq!(config().check("[::1]:1".parse().expect("an address")), Ok(()));
        let own = Config { jwt_secret: "our own".to_owned(), ..config() };
        assert_eq!(own.check(everywhere), Ok(()));
    }

    #[test]
    fn debug_output_keeps_secrets() {
        let text = format!("{:?}", Config { database_url: "postgres://u:pw@h/d".to_owned(), ..config() });
        assert!(!text.contains("pw") && !text.contains(BENCH_SECRET), "{text}");
    }
}
