//! The `cpu` route's work: chained SHA-256 over hexadecimal text, on a thread of its own.
//!
//! Each worker has one hashing thread, so that hashing never holds up that worker's other requests and `native`
//! (one worker) hashes on one core, as its one-process peers do. The queue before it is bounded.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use super::error::ApiError;

/// A SHA-256 value as lower-case hexadecimal text.
pub(super) type Hex = [u8; 64];

/// Two hexadecimal digits for every byte.
static HEX_PAIRS: [[u8; 2]; 256] = hex_pairs();

struct Job {
    rounds: u32,
    reply: oneshot::Sender<Hex>,
}

/// Hands work to a hashing thread. Dropping the last clone ends the thread.
#[derive(Debug, Clone)]
pub(super) struct Hasher {
    jobs: SyncSender<Job>,
}

impl Hasher {
    /// Starts the thread; at most `waiting` jobs queue before it.
    pub(super) fn start(waiting: usize) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (jobs, queue) = sync_channel(waiting);
        let thread = std::thread::Builder::new().name("hash".to_owned()).spawn(move || work(&queue))?;
        Ok((Self { jobs }, thread))
    }

    /// Hashes `rounds` times; 503 when the queue is full.
    pub(super) async fn hash(&self, rounds: u32) -> Result<Hex, ApiError> {
        let (reply, hashed) = oneshot::channel();
        match self.jobs.try_send(Job { rounds, reply }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(ApiError::Unavailable("the queue for hashing is full")),
            Err(TrySendError::Disconnected(_)) => return Err(ApiError::Internal("the hashing thread is gone")),
        }
        hashed.await.map_err(|_| ApiError::Internal("the hashing thread is gone"))
    }
}

fn work(queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        // Nobody waits for it any more: the client has left.
        if job.reply.is_closed() {
            continue;
        }
        let _ = job.reply.send(chain(job.rounds));
    }
}

/// `h = "headroom"`, then `rounds` times `h = hex(sha256(h))`; `rounds` is at least 1.
pub(super) fn chain(rounds: u32) -> Hex {
    let mut text = hex(&Sha256::digest(b"headroom").into());
    for _ in 1..rounds {
        text = hex(&Sha256::digest(text).into());
    }
    text
}

fn hex(digest: &[u8; 32]) -> Hex {
    let mut text = [0; 64];
    for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(digest) {
        *pair = HEX_PAIRS[usize::from(*byte)];
    }
    text
}

const fn hex_pairs() -> [[u8; 2]; 256] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_chains() {
        for (rounds, expected) in [
            (1, "26e93d81a9553eabd165301cad992369094b6a1759a62e94a998a94aa5315902"),
            (2, "83fb0cdc24a1f9c0399eaae2744dd62e22084c3cfa102750c07a5c7681c693b6"),
            (100, "83f6da55ac4dd766361b9e0c288812a15e0ad6c5ae907d30c97e3b900c32953f"),
            (15_000, "b33317277fdbfa5b5acd01754aa83301c763d35e173df7940f21f624992541a4"),
        ] {
            assert_eq!(std::str::from_utf8(&chain(rounds)), Ok(expected), "{rounds} rounds");
        }
    }
}
