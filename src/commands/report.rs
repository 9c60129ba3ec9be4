//! `headroom report DIR`: from a stored record; measures nothing.

use headroom::record::{self, Record};
use headroom::report;

use super::{Outcome, look, print};
use crate::cli;

pub(crate) fn run(args: &cli::Report) -> anyhow::Result<Outcome> {
    let record = Record::read(&args.dir)?;
    if args.markdown {
        print(&report::markdown(&record))?;
        return Ok(Outcome::Good);
    }
    let path = record::write_report(&args.dir, &report::markdown(&record))?;
    print(&report::terminal(&record, look()))?;
    print(&format!("\nreport: {}\n", path.display()))?;
    Ok(Outcome::Good)
}
