//! Workers: single-threaded runtimes, each with its own connections to Postgres and its own hashing thread.
//!
//! One acceptor deals connections to the worker that has the fewest, so that all are loaded evenly at any count.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::auth::Verifier;
use super::config::{Config, HttpKind};
use super::error::complain;
use super::hash::Hasher;
use super::http::Stop;
use super::routes::Shared;
use super::store::Store;
use super::{framework, http};

/// Pause after a failed accept: out of file handles, accepting again at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Connections dealt to a worker that it has not picked up yet; more than any listen queue holds.
const DEALT: usize = 65_536;
/// How long connections to Postgres may take to end in good order, after the requests: sqlx's pool would wait for the query
/// of a request that was cut. With the default drain time the server ends in nine seconds; who started it often waits ten.
const GOODBYE_TIME: Duration = Duration::from_secs(1);

/// A connection on its way to a worker, with its place among the most there may be.
type Dealt = (std::net::TcpStream, OwnedSemaphorePermit);

/// What a worker says of its start: that it can answer, or why not; and later, why it could not open all its connections
/// to Postgres.
pub(super) type Started = mpsc::Receiver<anyhow::Result<()>>;

/// A running worker, as the acceptor sees it.
#[derive(Debug)]
pub(super) struct Worker {
    dealt: mpsc::Sender<Dealt>,
    open: Arc<AtomicUsize>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Worker {
    /// Starts the thread.
    pub(super) fn start(config: Config, connections: usize) -> anyhow::Result<(Self, Started)> {
        let (dealt, incoming) = mpsc::channel(DEALT);
        let (start, started) = mpsc::channel(2);
        let open = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&open);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(work(config, connections, incoming, counter, start))
        };
        let thread = std::thread::Builder::new().name("worker".to_owned()).spawn(work)?;
        Ok((Self { dealt, open, thread }, started))
    }
}

/// Lets all workers finish what is in flight at the same time, and ends them.
pub(super) fn finish(workers: Vec<Worker>) -> anyhow::Result<()> {
    // A worker whose sender is gone takes no further connection and drains.
    let threads: Vec<_> = workers.into_iter().map(|Worker { thread, .. }| thread).collect();
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a worker panicked"))??;
    }
    Ok(())
}

/// Accepts until the future is dropped, dealing each connection to the worker with the fewest open ones; at most `most`
/// are open at a time.
pub(super) async fn accept(listener: &TcpListener, workers: &[Worker], most: usize) {
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let mut complained = false;
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                complained = false;
                deal(stream, place, workers);
            }
            Err(error) => {
                // Said once for each stretch of failures: a log that grows with the flood is a second fault.
                if !complained {
                    complain(&format!("cannot accept connections: {error}"));
                }
                complained = true;
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn deal(stream: TcpStream, place: OwnedSemaphorePermit, workers: &[Worker]) {
    // Both fail only on a connection that is already gone.
    let (Ok(()), Ok(stream)) = (stream.set_nodelay(true), stream.into_std()) else { return };
    let Some(worker) = workers.iter().min_by_key(|worker| worker.open.load(Ordering::Relaxed)) else { return };
    worker.open.fetch_add(1, Ordering::Relaxed);
    if worker.dealt.try_send((stream, place)).is_err() {
        worker.open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn work(
    config: Config,
    connections: usize,
    mut incoming: mpsc::Receiver<Dealt>,
    open: Arc<AtomicUsize>,
    start: mpsc::Sender<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let (hasher, hashing) = Hasher::start(config.limits.waiting).context("cannot start the hashing thread")?;
    let (store, opening) = match Store::connect(&config, connections).await {
        Ok(connected) => connected,
        Err(error) => {
            let _ = start.send(Err(error)).await;
            return Ok(());
        }
    };
    let verifier = Verifier::new(&config.jwt_secret);
    let shared = Arc::new(Shared { store, verifier, hasher, limits: config.limits });
    let router = framework::router(Arc::clone(&shared));
    let stop = Arc::new(Stop::default());
    // Never sent on: every connection holds a sender, so the channel closes with the last of them.
    let (held, mut all_ended) = mpsc::channel::<()>(1);
    let _ = start.send(Ok(())).await;
    tokio::spawn(async move {
        // One that was cut by the end of the worker has nothing to say.
        if let Ok(Err(error)) = opening.await {
            let _ = start.send(Err(error)).await;
        }
    });
    while let Some((stream, place)) = incoming.recv().await {
        let closed = Closed { open: Arc::clone(&open), _held: held.clone(), _place: place };
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        match config.http {
            // One task each: a task of either kind would take the room of the larger one.
            HttpKind::Own => {
                let serving = http::serve(stream, Arc::clone(&shared), Arc::clone(&stop));
                tokio::spawn(async move {
                    serving.await;
                    drop(closed);
                });
            }
            HttpKind::Axum => {
                let serving = framework::serve(stream, router.clone(), config.limits, Arc::clone(&stop));
                tokio::spawn(async move {
                    serving.await;
                    drop(closed);
                });
            }
        }
    }
    drop((router, held));
    stop.set();
    if tokio::time::timeout(config.limits.drain_time, all_ended.recv()).await.is_err() {
        let count = open.load(Ordering::Relaxed);
        complain(&format!("{count} connections did not finish in {:?} and were cut", config.limits.drain_time));
    }
    // What is held up in Postgres ends when our side of its connection does, with the runtime.
    let _ = tokio::time::timeout(GOODBYE_TIME, shared.store.close()).await;
    drop(shared);
    // The thread ends when the last handler has let go of it; one that was cut still hashes, and is not waited for.
    if hashing.is_finished() {
        let _ = hashing.join();
    }
    Ok(())
}

/// Counts a connection down, however its task ends.
struct Closed {
    open: Arc<AtomicUsize>,
    _held: mpsc::Sender<()>,
    _place: OwnedSemaphorePermit,
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}
