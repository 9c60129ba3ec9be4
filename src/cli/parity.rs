//! `headroom parity`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own on the command line")]
pub(crate) struct Parity {
    /// `http://host:port` of the server
    #[arg(value_name = "URL", required_unless_present = "list")]
    pub(crate) url: Option<String>,
    /// The checks themselves instead of a run: what each proves; with --verbose what it sends and what must come back
    #[arg(long)]
    pub(crate) list: bool,
    /// Only the checks of this id, or whose ids begin with these words (`user`, `order-accepts`); may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Only the checks that gate
    #[arg(long, conflicts_with = "strict")]
    pub(crate) core: bool,
    /// A strict difference fails too
    #[arg(long)]
    pub(crate) strict: bool,
    /// The values of an earlier run again, which printed it
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// The database behind the server, prepared by headroom: orders are read back and counted
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Post orders although reads do not prove that the data is the contract's
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Longest wait for one reply
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Write the outcomes as `JUnit` XML, too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Show passed checks too
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}
