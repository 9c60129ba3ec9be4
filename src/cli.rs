//! What can be typed. Only declares; what is typed becomes plain configuration in `commands`.

use std::time::Duration;

use clap::{Parser, Subcommand};

mod compare;
mod floor;
mod load;
mod parity;
mod postgres;
mod report;
mod serve;

pub(crate) use compare::{Compare, Profile};
pub(crate) use floor::Floor;
pub(crate) use load::Load;
pub(crate) use parity::Parity;
pub(crate) use postgres::{Postgres, PostgresBinaries};
pub(crate) use report::Report;
pub(crate) use serve::{Http, Limits, Serve, Store};

/// How far a Bun or Node HTTP API is from a native ceiling, on the host it will run on.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Cli {
    /// Say nothing about progress; results and errors only
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Set up what is missing, gate every server, measure in rotated rounds, report: the main job
    Compare(Compare),
    /// Run the reference server
    Serve(Serve),
    /// Put a server under load and say what came back
    Load(Load),
    /// Check a running server against the contract of the seven routes
    Parity(Parity),
    /// Tables from a stored record; measures nothing
    Report(Report),
    /// The least this host needs for a server's work, each part alone
    #[command(subcommand)]
    Floor(Floor),
    /// The private Postgres, for people who want to look at it
    #[command(subcommand)]
    Postgres(Postgres),
    /// What is here, what is missing, and the command that brings it
    Doctor,
}

/// `500ms`, `10s`, `2m`, `1h`, or seconds.
fn duration(text: &str) -> Result<Duration, String> {
    /// A day: longer is a slip of the finger.
    const LONGEST_S: f64 = 86_400.0;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        unit => return Err(format!("{unit:?} is no unit of time: use ms, s, m or h")),
    };
    let count: f64 = digits.parse().map_err(|_| "not a time: write it like 10s".to_owned())?;
    let total = count * seconds;
    if (0.0..=LONGEST_S).contains(&total) {
        Ok(Duration::from_secs_f64(total))
    } else {
        Err("out of range: use a time up to 24h".to_owned())
    }
}
