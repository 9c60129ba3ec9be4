//! HTTP/1.1 on a socket, by our own hand: what the kernel allows, and little more.
//!
//! hyper and axum cost half as much again as a bare responder, which is mostly kernel; the step between the two fronts is
//! a row of its own (`framework`). Parsing is httparse's.
//!
//! - `head`: a request's head; `chunks`: a body in chunks; `response`: replies as bytes
//! - `connection`: what is done with the bytes of one, from its first request to its last; `transfer`: how they move
//! - `buffers`: what connections of a worker share; `deadline`: a limit that moves with every request

mod buffers;
mod chunks;
mod connection;
mod deadline;
mod head;
mod response;
mod transfer;

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::routes::Shared;

use connection::Connection;

/// Tells all connections of a worker to end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    is_set: AtomicBool,
    changed: Notify,
}

impl Stop {
    /// Ends every connection that waits for a request, and the others after their current one.
    pub(super) fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    /// Completes once it is set.
    pub(super) async fn wait(&self) {
        // Made before the look at the flag: from then on no call is missed.
        let changed = self.changed.notified();
        if !self.is_set() {
            changed.await;
        }
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed)
    }
}

/// Serves a connection until its client leaves, a limit ends it or the server stops. Must be a task of its own.
pub(super) async fn serve(stream: TcpStream, shared: Arc<Shared>, stop: Arc<Stop>) {
    let mut changed = pin!(stop.wait());
    // Registers this task once; it is woken by the stop although nothing asks again.
    let _ = poll_fn(|context| Poll::Ready(changed.as_mut().poll(context))).await;
    let mut connection = Connection::new(stream, &shared, &stop);
    // A client that breaks off is not a fault of the server.
    let _ = connection.run().await;
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_stop_is_heard_by_who_waits_and_by_who_comes_later() {
        let stop = Stop::default();
        let waiting = async { tokio::time::timeout(Duration::from_secs(5), stop.wait()).await.expect("it is heard") };
        tokio::join!(waiting, async { stop.set() });
        tokio::time::timeout(Duration::from_secs(5), stop.wait()).await.expect("it is heard");
    }
}
