//! What a run leaves on disk: a folder with `run.json`, `windows.jsonl` and `servers.jsonl`. Their only reader and writer.
//!
//! `run.json` says under which conditions was measured; it is replaced as a whole when a server's gate verdict comes in.
//! `windows.jsonl` and `servers.jsonl` are only ever appended to, one line as each window or server life ends, flushed
//! to disk, so that an interrupted run has lost nothing it finished. `bench/FORMAT.md` explains every key.
//!
//! Unknown is `null`, never NaN and never a 0 that nobody measured. A reader ignores keys it does not know and refuses a
//! schema newer than its own.

mod life;
mod read;
mod run;
mod window;
mod write;

pub use life::{Failure, Life, Stage, Void};
pub use read::Record;
pub use run::{Cores, Difference, Gate, Limits, Postgres, Run, Server, Settings, Step};
pub use window::{CpuPerRequest, Latency, Reason, Window};
pub use write::{Writer, replace_document, write_report};

/// Version of the rows. Raised when a key changes its meaning or goes away; new keys alone do not raise it.
pub const SCHEMA: u32 = 1;

/// Conditions, servers, host, gate verdicts.
pub const RUN_FILE: &str = "run.json";
/// One line a window.
pub const WINDOWS_FILE: &str = "windows.jsonl";
/// One line a server's life in a round.
pub const SERVERS_FILE: &str = "servers.jsonl";
/// What the servers wrote, one file a life.
pub const LOGS_FOLDER: &str = "logs";
/// The report made from the record.
pub const REPORT_FILE: &str = "report.md";

/// A measured number fit for JSON: `None` for NaN and infinities, which a division by zero requests gives.
pub fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
