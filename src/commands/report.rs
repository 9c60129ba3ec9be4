//! `headroom report DIR…`: from stored records; measures nothing.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use headroom::record::{self, Record};
use headroom::report::{self, Named};

use super::{Outcome, look, print};
use crate::cli;

/// Between these lines a document has its table.
const BEGIN: &str = "<!-- headroom -->\n";
const END: &str = "<!-- /headroom -->\n";

pub(crate) fn run(args: &cli::Report) -> anyhow::Result<Outcome> {
    let [dir] = args.dirs.as_slice() else { return side_by_side(args) };
    let record = Record::read(dir)?;
    if let Some(file) = &args.into {
        put_into(file, &report::summary(&record))?;
        return Ok(Outcome::Good);
    }
    if args.markdown {
        print(&report::markdown(&record))?;
        return Ok(Outcome::Good);
    }
    let path = record::write_report(dir, &report::markdown(&record))?;
    print(&report::terminal(&record, look()))?;
    print(&format!("\nreport: {}\n", path.display()))?;
    Ok(Outcome::Good)
}

fn side_by_side(args: &cli::Report) -> anyhow::Result<Outcome> {
    ensure!(args.into.is_none(), "--into takes the table of one record: name a single folder");
    let records = args.dirs.iter().map(|dir| Record::read(dir)).collect::<anyhow::Result<Vec<Record>>>()?;
    let mut names: Vec<String> = args.dirs.iter().map(|dir| name(dir)).collect();
    if (1..names.len()).any(|index| names[..index].contains(&names[index])) {
        names = args.dirs.iter().map(|dir| dir.display().to_string()).collect();
    }
    let pairs: Vec<Named<'_>> = names.iter().map(String::as_str).zip(&records).collect();
    let text = if args.markdown { report::beside_markdown(&pairs) } else { report::beside_terminal(&pairs, look()) };
    print(&text)?;
    Ok(Outcome::Good)
}

/// The folder's own name; a path that has none stands for itself.
fn name(dir: &Path) -> String {
    dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
}

fn put_into(file: &Path, table: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read --into {}", file.display()))?;
    let parts = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let Some((before, after)) = parts else {
        bail!(
            "{} has no place for a table: give it a line {} and below it a line {}",
            file.display(),
            BEGIN.trim(),
            END.trim()
        )
    };
    record::replace_document(file, &format!("{before}{BEGIN}{table}{END}{after}"))
}
