//! Wakes a thread when its next request is due: a timer of the kernel, since `epoll` waits in whole milliseconds.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer among the events of one thread.
#[derive(Debug)]
pub(super) struct Pacer {
    timer: TimerFd,
}

impl Pacer {
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        registry.register(&mut SourceFd(&timer.as_fd().as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { timer })
    }

    /// Wakes once after this time, and not at the time set before. Edge-triggered: it need not be read.
    pub(super) fn wake_after(&self, time: Duration) -> io::Result<()> {
        let once = Expiration::OneShot(TimeSpec::from_duration(time.max(Duration::from_nanos(1))));
        Ok(self.timer.set(once, TimerSetTimeFlags::empty())?)
    }
}
