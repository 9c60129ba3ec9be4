//! `headroom compare`: measure, then report from the record alone.

use headroom::compare::{self, Options, Planned, Profile};
use headroom::interrupt::Interrupt;
use headroom::progress::Progress;
use headroom::record::{self, Record};
use headroom::report::{self, Threshold};
use headroom::setup;

use super::{Outcome, look, print};
use crate::cli;

mod plan;

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
    let planned = Planned::of(&options)?;
    let names: Vec<&str> = planned.servers.iter().map(|server| server.name.as_str()).collect();
    for threshold in &args.fail_below {
        threshold.ensure_measured(&names, &planned.settings.routes)?;
    }
    let text = plan::text(&planned);
    if args.dry_run {
        print(&text)?;
        return Ok(Outcome::Good);
    }
    for line in text.lines() {
        progress.note(line);
    }
    let finished = compare::run(&options, progress, interrupt)?;
    let record = Record::read(&finished.dir)?;
    let path = record::write_report(&finished.dir, &report::markdown(&record))?;
    print(&report::terminal(&record, look()))?;
    print(&format!("\nreport: {}\nrecord: {}\n", path.display(), finished.dir.display()))?;
    let missed = missed(&args.fail_below, &record);
    for line in &missed {
        progress.note(line);
    }
    Ok(Outcome::good_if(finished.good() && missed.is_empty()))
}

/// A line for every cell that does not reach what was asked for.
fn missed(thresholds: &[Threshold], record: &Record) -> Vec<String> {
    let shares = report::shares(record);
    let native = |name: &str| record.run.servers.iter().any(|server| server.native && server.name == name);
    let of = |threshold: &Threshold| -> Vec<String> {
        let concerned = shares.iter().filter(|share| threshold.concerns(share, native(&share.server)));
        concerned.filter_map(|share| threshold.missed(share)).collect()
    };
    thresholds.iter().flat_map(of).collect()
}
