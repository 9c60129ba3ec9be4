//! `headroom parity URL`

use anyhow::ensure;
use headroom::interrupt::Interrupt;
use headroom::load::resolve;
use headroom::parity::{self, Options, Report};
use headroom::postgres::Database;

use super::{Outcome, jwt_secret, print};
use crate::cli;

pub(crate) fn run(args: &cli::Parity, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let (address, host, target) = resolve(&args.url)?;
    ensure!(target == "/", "the gate brings its own paths: give the URL without {target}");
    let mut database = args.database_url.as_deref().map(Database::connect).transpose()?;
    let options = Options {
        address,
        host,
        jwt_secret: jwt_secret(),
        database: database.as_mut(),
        allow_writes: args.allow_writes,
        timeout: args.timeout,
    };
    let verdict = parity::run(options, interrupt)?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&Report::from(&verdict))?))?;
    } else {
        print(&parity::text(&verdict, args.verbose))?;
    }
    Ok(Outcome::good_if(verdict.passed()))
}
