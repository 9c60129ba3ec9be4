//! `headroom postgres`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Where the private cluster's binaries come from.
#[derive(Debug, Args)]
pub(crate) struct PostgresBinaries {
    /// Folder with postgres and initdb [default: the pinned ones, then the system's newest]
    #[arg(long, value_name = "DIR")]
    pub(crate) postgres_bin: Option<PathBuf>,
    /// The bench folder of a checkout [default: found from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) bench: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Postgres {
    /// Start it, seeded, and leave it running; prints its URL
    Start(PostgresBinaries),
    /// Print the URL of the running one, password included
    Url,
    /// Make its database anew from the seed
    Reset(PostgresBinaries),
    /// Stop it, or have the last command that uses it stop it
    Stop,
}
