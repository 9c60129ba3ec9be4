//! `headroom report`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The record's folder
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// Print the Markdown report instead of writing it beside the record
    #[arg(long)]
    pub(crate) markdown: bool,
}
