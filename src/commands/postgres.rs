//! `headroom postgres start | url | reset | stop`

use anyhow::Context as _;
use headroom::interrupt::Interrupt;
use headroom::postgres::{self, Cluster, StopOutcome};
use headroom::progress::Progress;
use headroom::setup;

use super::{Outcome, print};
use crate::cli;

pub(crate) fn run(command: cli::Postgres, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    match command {
        cli::Postgres::Start(binaries) => {
            let options = setup::cluster_options(&options(binaries), true, progress, interrupt)?;
            let cluster = Cluster::acquire(&options, progress, interrupt)?;
            progress.note(&format!("Postgres {} keeps running in {}", cluster.version(), options.home.display()));
            progress.finish();
            print(&format!("{}\n", cluster.url()))?;
        }
        cli::Postgres::Url => print(&format!("{}\n", postgres::url(&postgres::default_home())?))?,
        cli::Postgres::Reset(binaries) => {
            let options = setup::cluster_options(&options(binaries), false, progress, interrupt)?;
            postgres::reset(&options, progress, interrupt)?;
            progress.finish();
        }
        cli::Postgres::Stop => {
            let outcome = postgres::stop(&postgres::default_home(), interrupt).context("cannot stop Postgres")?;
            print(&match outcome {
                StopOutcome::Stopped => "stopped\n".to_owned(),
                StopOutcome::NotRunning => "not running\n".to_owned(),
                StopOutcome::InUse { users } => {
                    format!("in use by process {}: stops when it ends\n", users.join(", "))
                }
            })?;
        }
    }
    Ok(Outcome::Good)
}

fn options(binaries: cli::PostgresBinaries) -> setup::Options {
    setup::Options { bench: binaries.bench, database_url: None, postgres_bin: binaries.postgres_bin }
}
