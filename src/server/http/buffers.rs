//! Buffers that a worker's connections share: one is held only while there are bytes in it.
//!
//! Thousands of idle connections cost no buffer at all, and busy ones find theirs in the CPU's cache.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead as _, ReadBuf};
use tokio::net::TcpStream;

/// Holds any usual request; those with more grow it.
const USUAL_BYTES: usize = 16 * 1024;
/// Buffers kept for the next connection. As many as one turn of the event loop has in hand, at most.
const MOST_KEPT: usize = 64;

thread_local! {
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

fn take() -> Vec<u8> {
    KEPT.with_borrow_mut(Vec::pop).unwrap_or_else(|| vec![0; USUAL_BYTES])
}

fn give_back(buffer: Vec<u8>) {
    // One that has grown is not kept: a single long request must not be remembered for ever.
    if buffer.len() == USUAL_BYTES {
        KEPT.with_borrow_mut(|kept| {
            if kept.len() < MOST_KEPT {
                kept.push(buffer);
            }
        });
    }
}

/// Bytes received and not yet used.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// Without a byte while nothing is held.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Lets go of the first `count` bytes.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end, "no more than was there");
        self.release_if_empty();
    }

    /// Reads once; ready with the number of bytes, 0 at the end of the stream.
    pub(super) fn poll_fill(
        &mut self,
        stream: &mut TcpStream,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<usize>> {
        if self.buffer.is_empty() {
            self.buffer = take();
        }
        self.make_room();
        let mut room = ReadBuf::new(&mut self.buffer[self.end..]);
        let outcome = Pin::new(stream).poll_read(context, &mut room);
        let count = room.filled().len();
        self.end += count;
        self.release_if_empty();
        ready!(outcome)?;
        Poll::Ready(Ok(count))
    }

    /// Never reads into less than half of a buffer: whoever asks must have bounded what it wants to see at once.
    fn make_room(&mut self) {
        if self.buffer.len() - self.end >= USUAL_BYTES / 2 {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() - self.end < USUAL_BYTES / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
    }

    fn release_if_empty(&mut self) {
        if self.start == self.end {
            give_back(std::mem::take(&mut self.buffer));
            (self.start, self.end) = (0, 0);
        }
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        give_back(std::mem::take(&mut self.buffer));
    }
}
