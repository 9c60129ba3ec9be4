//! `headroom compare`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use headroom::contract::Route;
use headroom::report::Threshold;

use super::duration;

/// How long a comparison measures.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Profile {
    /// One round of 2 s + 4 s at 100 connections: a first answer in about six minutes
    Quick,
    /// Ten rounds of short windows: enough for verdicts
    Standard,
    /// 10, 100 and 500 connections, three rounds of 5 s + 30 s, as write-ups publish
    Paper,
}

#[derive(Debug, Args)]
pub(crate) struct Compare {
    /// How long to measure [default: quick, or the suite's]
    #[arg(long, value_enum)]
    pub(crate) profile: Option<Profile>,
    /// Servers, routes and conditions by name, from bench/suites: default, steps, express-to-elysia, bun-or-node, …
    #[arg(long, value_name = "NAME")]
    pub(crate) suite: Option<String>,
    /// Servers by their names in bench/peers.toml, separated by commas; ratios need `native` among them
    #[arg(long = "peer", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// Routes, separated by commas: health, echo, me, user, list, order, cpu
    #[arg(long = "route", value_name = "NAMES", value_delimiter = ',')]
    pub(crate) routes: Vec<Route>,
    /// Numbers of connections, separated by commas
    #[arg(short, long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) connections: Vec<u32>,
    /// Every cell is measured once a round
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<u32>,
    /// Warm-up before every window
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) warmup: Option<Duration>,
    /// Length of a window
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) window: Option<Duration>,
    /// Windows a cell may have until one is valid; all are kept
    #[arg(long, value_name = "N")]
    pub(crate) max_attempts: Option<u32>,
    /// Share of the host that other processes may use in a window [default: 0.05]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_foreign_cpu: Option<f64>,
    /// Share of the host that the hypervisor may take in a window [default: 0.02]
    #[arg(long, value_name = "SHARE")]
    pub(crate) max_steal: Option<f64>,
    /// Send only the contract's examples, as write-ups did
    #[arg(long)]
    pub(crate) fixed: bool,
    /// Folder for the record [default: results/TIME-PROFILE]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print what would be measured and how long it would take, and stop: nothing is installed, started or written
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Exit with 1 where a server serves less than this share of the native requests/s (1 ÷ headroom): `0.5` for every
    /// server that is not native, `my-server=0.5`, `my-server:user=0.5`; may be repeated
    #[arg(long, value_name = "[SERVER[:ROUTE]=]SHARE")]
    pub(crate) fail_below: Vec<Threshold>,
    /// Continue an interrupted record; its settings hold
    #[arg(long, value_name = "DIR", conflicts_with_all = [
        "profile", "suite", "servers", "routes", "connections", "rounds", "warmup", "window", "max_attempts",
        "max_foreign_cpu", "max_steal", "fixed", "out",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// A database of your own, empty or prepared by headroom before, instead of the private cluster
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Folder with postgres and initdb for the private cluster [default: the pinned ones]
    #[arg(long, value_name = "DIR", conflicts_with = "database_url")]
    pub(crate) postgres_bin: Option<PathBuf>,
    /// The bench folder of a checkout [default: found from the current folder upwards]
    #[arg(long, value_name = "DIR")]
    pub(crate) bench: Option<PathBuf>,
}
