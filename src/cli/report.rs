//! `headroom report`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The record's folder; several are shown side by side, each with its own figures
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// Print Markdown; of one record, its report instead of writing that beside it
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Put the first table into this document, between its lines `<!-- headroom -->` and `<!-- /headroom -->`
    #[arg(long, value_name = "FILE", conflicts_with = "markdown")]
    pub(crate) into: Option<PathBuf>,
}
