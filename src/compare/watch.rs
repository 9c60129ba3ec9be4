//! Counts a server's Postgres connections while it is under load.

use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use crate::postgres::Database;

/// One count a second or so: enough to see a pool that is too large, too few to be seen in Postgres's CPU.
const INTERVAL: Duration = Duration::from_secs(1);

/// Runs `work` and counts meanwhile: at its start, every second, and at its end. The connection is the harness's only one,
/// so that no other of its own is counted.
pub(super) fn during<T>(database: &mut Database, work: impl FnOnce() -> T) -> (T, anyhow::Result<u32>) {
    thread::scope(|scope| {
        let (stop, stopped) = channel::<()>();
        let watcher = scope.spawn(move || count(database, &stopped));
        let result = work();
        drop(stop);
        let most = watcher.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (result, most)
    })
}

/// Ends when the other side hangs up.
fn count(database: &mut Database, stopped: &Receiver<()>) -> anyhow::Result<u32> {
    let mut most = 0;
    loop {
        most = most.max(database.client_backends()?);
        match stopped.recv_timeout(INTERVAL) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return Ok(most.max(database.client_backends()?)),
        }
    }
}
