//! Servers as processes: the catalogue, the installation, start, readiness, stop, and what a killed run leaves.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod catalogue;
mod install;
mod running;
mod servers;
mod strict;
