//! `headroom compare`: measure, then report from the record alone.

use headroom::compare::{self, Options, Profile};
use headroom::interrupt::Interrupt;
use headroom::progress::Progress;
use headroom::record::{self, Record};
use headroom::report;
use headroom::setup;

use super::{Outcome, look, print};
use crate::cli;

pub(crate) fn run(args: cli::Compare, progress: &dyn Progress, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let options = Options {
        setup: setup::Options { bench: args.bench, database_url: args.database_url, postgres_bin: args.postgres_bin },
        suite: args.suite,
        profile: args.profile.map(|profile| match profile {
            cli::Profile::Quick => Profile::Quick,
            cli::Profile::Standard => Profile::Standard,
            cli::Profile::Paper => Profile::Paper,
        }),
        servers: args.servers,
        routes: args.routes,
        connections: args.connections,
        rounds: args.rounds,
        warmup: args.warmup,
        window: args.window,
        max_attempts: args.max_attempts,
        max_foreign_cpu_share: args.max_foreign_cpu,
        max_steal_share: args.max_steal,
        fixed: args.fixed,
        out: args.out,
        resume: args.resume,
    };
    let finished = compare::run(&options, progress, interrupt)?;
    let record = Record::read(&finished.dir)?;
    let path = record::write_report(&finished.dir, &report::markdown(&record))?;
    print(&report::terminal(&record, look()))?;
    print(&format!("\nreport: {}\nrecord: {}\n", path.display(), finished.dir.display()))?;
    Ok(Outcome::good_if(finished.good()))
}
