//! What a long job says while it runs. The library prints nothing: it tells a [`Progress`], and the binary decides
//! how that looks (bars on a terminal, plain lines elsewhere, nothing with `-q`).

use std::time::Duration;

/// Receives what a job says about itself.
pub trait Progress: Sync {
    /// A step began: `installing the peers with npm ci`. One short line, lower case, no full stop.
    fn step(&self, text: &str);
    /// Something the reader should know that stops nothing, such as where the cluster lives.
    fn note(&self, text: &str);
    /// The job is now this far into its expected duration; drives the bar and its ETA.
    fn advance(&self, done: Duration, total: Duration);
    /// All bars are done and may be cleared.
    fn finish(&self);
}

/// Says nothing: for tests and `-q`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _: &str) {}
    fn note(&self, _: &str) {}
    fn advance(&self, _: Duration, _: Duration) {}
    fn finish(&self) {}
}
