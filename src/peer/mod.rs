//! `bench/peers.toml`: install, version, start, ready, stop. Ours are entries like any other.
//!
//! What lives here knows no framework: a server is a command and what its entry says of it. Everything started here is
//! ended here, with all it started in turn. When this process is killed a guard ends its servers, and what has got away
//! from the guard is ended by the next run ([`sweep`]).

mod catalogue;
mod guard;
mod install;
mod lease;
mod log;
mod member;
mod placeholder;
mod ready;
mod running;
mod tool;
mod versions;

pub use catalogue::{Catalogue, Class, Cores, Spec, VersionSource};
pub use install::{build, install, is_up_to_date, pinned_postgres};
pub use lease::sweep;
pub use running::{Launch, Running};
pub use versions::versions;
