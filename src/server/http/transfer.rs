//! How the bytes of a connection move: every wait has its limit.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::io::AsyncWrite as _;

use super::connection::{Connection, Phase, Silence};
use crate::server::config::DRAINED_BYTES;

/// How long a client may take to notice that the connection has ended.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// Largest buffer for replies that a connection keeps.
const KEPT_BYTES: usize = 1_024;

impl Connection<'_> {
    /// Ends the connection after its last reply. The client may still be sending, whether it may or not: closing at once
    /// would reset the connection under that reply. What comes is read away, as far as is bearable, while `phase` lasts.
    pub(super) async fn end(&mut self, phase: Phase) -> io::Result<()> {
        self.flush().await?;
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        let mut drained = 0;
        while drained < DRAINED_BYTES {
            let count = self.input.bytes().len();
            drained += count as u64;
            self.input.consume(count);
            if self.fill(phase).await?.is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Reads once, for as long as the phase may last.
    pub(super) async fn fill(&mut self, phase: Phase) -> io::Result<Result<(), Silence>> {
        self.enter(phase);
        poll_fn(|context| match self.input.poll_fill(&mut self.stream, context) {
            Poll::Ready(Ok(0)) => Poll::Ready(Ok(Err(Silence::Left))),
            Poll::Ready(Ok(_)) => Poll::Ready(Ok(Ok(()))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if phase.ends_at_stop() && self.stop.is_set() => Poll::Ready(Ok(Err(Silence::Stopped))),
            Poll::Pending => self.deadline.poll(context).map(|()| Ok(Err(Silence::TooSlow))),
        })
        .await
    }

    /// Sends what is gathered.
    pub(super) async fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let mut output = std::mem::take(&mut self.output);
        let mut sent = 0;
        let sending = poll_fn(|context| {
            loop {
                match self.stream.try_write(&output[sent..]) {
                    Ok(count) => sent += count,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Poll::Ready(Err(error)),
                }
                if sent == output.len() {
                    return Poll::Ready(Ok(()));
                }
                self.enter(Phase::Write);
                if self.stream.poll_write_ready(context)?.is_pending() {
                    return self.deadline.poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()));
                }
            }
        });
        sending.await?;
        // Idle connections keep what a usual reply needs; the allocator keeps the rest better than thousands of them would.
        if output.capacity() <= KEPT_BYTES {
            output.clear();
            self.output = output;
        }
        Ok(())
    }

    /// Sets the limit of a phase when it begins.
    pub(super) fn enter(&mut self, phase: Phase) {
        if phase == self.phase && phase != Phase::Idle {
            return;
        }
        self.phase = phase;
        let limits = &self.shared.limits;
        self.deadline.set(match phase {
            Phase::Idle | Phase::Write => limits.idle_time,
            Phase::Head => limits.head_time,
            Phase::Body => limits.body_time,
            Phase::Answer => limits.request_time,
            Phase::Linger => LINGER_TIME,
        });
    }
}
