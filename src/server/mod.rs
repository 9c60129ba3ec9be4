//! The reference server: the contract's seven routes behind two HTTP fronts, over two clients of Postgres.
//!
//! Imports no harness module: it is started as a child process, exactly like Bun's and Node's.
//!
//! - [`config`]: what a server is told, checked before it starts
//! - `workers`: runtimes and the acceptor that deals connections to them
//! - `http`: our own front, the ceiling; `framework`: axum over hyper, what a Rust team writes first
//! - `routes`: what the seven routes read and answer; `parameter`, `json`, `validation`, `auth`: what they read
//! - `store`: what they ask of Postgres; `hash`: what they compute; `reply`, `error`: what they answer
//! - `amount`, `timestamp`: the two values that need an exact form

mod amount;
mod auth;
pub mod config;
mod error;
mod framework;
mod hash;
mod http;
mod json;
mod parameter;
mod reply;
mod routes;
mod store;
mod timestamp;
mod validation;
mod workers;

use std::net::SocketAddr;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpSocket};

use config::Config;
use workers::{Started, Worker};

/// Connections the kernel may hold before they are accepted; it takes the lesser of this and `somaxconn`.
const BACKLOG: u32 = 4_096;

/// Binds the address the server will listen on; port 0 takes any free one.
///
/// # Errors
/// Names the address and, for the usual causes, the remedy.
pub fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // A restart must not wait for connections in TIME_WAIT. Never SO_REUSEPORT: two servers would share the port.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            anyhow::anyhow!("{address} is taken by another process: end it, or choose another with --listen")
        }
        std::io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("not allowed to listen on {address}: choose a port above 1023 with --listen")
        }
        _ => anyhow::anyhow!("cannot listen on {address}: {error}: choose another address with --listen"),
    })
}

/// Serves on `listener` until `shutdown` completes, then finishes what is in flight.
///
/// Calls `ready` once requests can be answered: every worker has a connection to Postgres, and opens its others.
///
/// # Errors
/// Fails when a worker cannot start, which is mostly a Postgres that cannot be reached, and also later, when Postgres
/// does not let all connections in: a server with fewer than it was told would be measured as something it is not.
pub async fn run(
    config: Config,
    listener: TcpListener,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let address = listener.local_addr()?;
    config.check(address)?;
    let mut workers = Vec::new();
    let mut started = Vec::new();
    for connections in config.shares() {
        let (worker, start) = Worker::start(config.clone(), connections)?;
        workers.push(worker);
        started.push(start);
    }
    for worker in &mut started {
        let outcome = worker.recv().await.context("a worker ended before it could answer")?;
        outcome.map_err(|error| explain(&error))?;
    }
    ready(address);
    tokio::select! {
        () = workers::accept(&listener, &workers, config.limits.connections) => {}
        () = shutdown => {}
        error = first_failure(started) => return Err(explain(&error)),
    }
    // New clients are refused from here on, rather than left waiting.
    drop(listener);
    let finishing = tokio::task::spawn_blocking(move || workers::finish(workers));
    finishing.await.context("a worker panicked")?
}

/// Completes only where a worker could not open all its connections.
async fn first_failure(started: Vec<Started>) -> anyhow::Error {
    for mut worker in started {
        if let Some(Err(error)) = worker.recv().await {
            return error;
        }
    }
    std::future::pending().await
}

/// One line on why Postgres cannot be used, without the URL: it holds the password.
fn explain(error: &anyhow::Error) -> anyhow::Error {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    let mut text = String::new();
    for cause in &causes {
        // Some clients repeat their cause in their own text.
        if !text.contains(cause.as_str()) {
            text = if text.is_empty() { cause.clone() } else { format!("{text}: {cause}") };
        }
    }
    anyhow::anyhow!("cannot use the database: {text}: check DATABASE_URL, or make one with `headroom postgres start`")
}
