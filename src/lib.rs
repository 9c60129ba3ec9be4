//! headroom: how far a Bun or Node HTTP API is from a native ceiling, on the host it will run on.
//!
//! The map of the crate, in reading order. A module imports only what its line names (`tests/it/tidy.rs` holds this).
//!
//! | module | what lives there | imports |
//! |---|---|---|
//! | [`contract`] | the seven routes as data: requests to send, replies to expect, tokens | `dataset` |
//! | [`dataset`] | `user(k)`, `order(k)`: pure | nothing |
//! | [`server`] | the reference server | no harness module, not even `contract` |
//! | [`load`] | the load driver | `contract`, `interrupt` |
//! | [`postgres`] | the private cluster, seeding, reset, marker, activity counts | `dataset`, `interrupt`, `progress` |
//! | [`floor`] | bare responder, pipelined statements, hash loop | nothing |
//! | [`host`] | CPU, kernel and cgroup facts; `/proc` sampling | nothing |
//! | [`peer`] | `peers.toml`: install, start, ready, stop | `host`, `interrupt`, `progress` |
//! | [`parity`] | contract × a running server → verdict | `contract`, `dataset`, `postgres`, `interrupt` |
//! | [`stats`] | median, spread, ratios: pure | nothing |
//! | [`record`] | the versioned rows on disk, their only reader and writer | nothing |
//! | [`report`] | records → terminal and Markdown; never measures | `record`, `stats` |
//! | [`setup`] | brings what is missing: peers, cluster | `peer`, `postgres`, `interrupt`, `progress` |
//! | [`compare`] | gate → warm-up → rotated rounds → record | `contract`, `load`, `postgres`, `host`, `peer`, `parity`, `record`, `setup`, `interrupt`, `progress` |
//! | [`interrupt`] | SIGINT and SIGTERM as a value | nothing |
//! | [`progress`] | what a long job says while it runs | nothing |
//!
//! The binary adds `cli` (what can be typed), `commands` (one file each) and `terminal` (how progress looks).

pub mod compare;
pub mod contract;
pub mod dataset;
pub mod floor;
pub mod host;
pub mod interrupt;
pub mod load;
pub mod parity;
pub mod peer;
pub mod postgres;
pub mod progress;
pub mod record;
pub mod report;
pub mod server;
pub mod setup;
pub mod stats;
