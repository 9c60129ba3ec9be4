//! SIGINT and SIGTERM as a value that long jobs look at.
//!
//! The first signal asks: every loop and wait in the harness checks [`Interrupt`] at least every
//! [`POLL`], ends what it started and returns [`Interrupted`]. A second signal ends the process at once;
//! servers started by it die with it, and the next run sweeps what is left of the cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};

/// How often a wait looks at the flag: short enough that Ctrl-C feels immediate, long enough to cost nothing.
pub const POLL: Duration = Duration::from_millis(50);

/// Whether a signal has asked this process to stop. Cheap to clone; all clones see the same flag.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
}

/// The job was stopped by a signal. `main` turns it into the exit code shells expect: 128 + signal.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("interrupted by signal {signal}")]
pub struct Interrupted {
    /// 2 for SIGINT, 15 for SIGTERM.
    pub signal: i32,
}

impl Interrupt {
    /// Listens for SIGINT and SIGTERM from here on. Called once, by `main`.
    ///
    /// # Errors
    /// Fails where the kernel refuses the handler.
    pub fn listen() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Order matters: the shutdown looks at what an earlier signal has set.
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&asked))?;
            signal_hook::flag::register(signal, Arc::clone(&asked))?;
            let value = usize::try_from(signal).expect("signal numbers are positive");
            signal_hook::flag::register_usize(signal, Arc::clone(&interrupt.signal), value)?;
        }
        Ok(interrupt)
    }

    /// The signal that asked to stop, if one has.
    pub fn requested(&self) -> Option<Interrupted> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(Interrupted { signal: i32::try_from(signal).expect("signal numbers are small") }),
        }
    }

    /// `Err(Interrupted)` once a signal has asked to stop: `interrupt.check()?` in every loop that can last.
    ///
    /// # Errors
    /// [`Interrupted`] after the first signal.
    pub fn check(&self) -> Result<(), Interrupted> {
        self.requested().map_or(Ok(()), Err)
    }

    /// Sleeps for `duration`, in pieces of at most [`POLL`].
    ///
    /// # Errors
    /// [`Interrupted`] as soon as a signal has asked to stop.
    pub fn sleep(&self, duration: Duration) -> Result<(), Interrupted> {
        let end = std::time::Instant::now() + duration;
        loop {
            self.check()?;
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(POLL));
        }
    }
}
