//! `headroom parity URL`, and what it would check

use std::fs::Permissions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, ensure};
use headroom::interrupt::Interrupt;
use headroom::load::resolve;
use headroom::parity::{self, Options, Report, Scope};
use headroom::postgres::Database;
use tempfile::NamedTempFile;

use super::{Outcome, jwt_secret, print};
use crate::cli;

/// Less what the umask takes: a report is for others, unlike most temporary files.
const READABLE: u32 = 0o666;

pub(crate) fn run(args: &cli::Parity, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let seed = args.seed.unwrap_or_else(rand::random);
    let Some(url) = args.url.as_deref().filter(|_| !args.list) else { return list(args, seed) };
    let (address, host, target) = resolve(url)?;
    ensure!(target == "/", "the gate brings its own paths: give the URL without {target}");
    parity::ensure_named(&args.only)?;
    let report = args.junit.as_deref().map(beside).transpose()?;
    let mut database = args.database_url.as_deref().map(Database::connect).transpose()?;
    let options = Options {
        address,
        host,
        jwt_secret: jwt_secret(),
        database: database.as_mut(),
        allow_writes: args.allow_writes,
        timeout: args.timeout,
    };
    let verdict = parity::run_only(options, Scope { seed, strict: !args.core }, &args.only, interrupt)?;
    if let Some((mut file, path)) = report.zip(args.junit.as_deref()) {
        let written = file.write_all(parity::junit(&verdict)?.as_bytes());
        written
            .and_then(|()| Ok(file.persist(path)?))
            .with_context(|| format!("cannot write --junit {}", path.display()))?;
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&Report::from(&verdict))?))?;
    } else {
        print(&parity::text(&verdict, args.verbose))?;
    }
    // Who asks for checks by name, or for strict ones, asks about each of them.
    let every = args.strict || !args.only.is_empty();
    Ok(Outcome::good_if(if every { verdict.clean() } else { verdict.passed() }))
}

fn list(args: &cli::Parity, seed: u64) -> anyhow::Result<Outcome> {
    parity::ensure_named(&args.only)?;
    let mut checks = parity::list(seed, &jwt_secret());
    checks.retain(|check| !args.core || check.level == parity::Level::Core);
    checks.retain(|check| args.only.is_empty() || args.only.iter().any(|name| parity::is_named(&check.id, name)));
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&checks)?))?;
    } else {
        print(&parity::list_text(&checks, args.verbose))?;
    }
    Ok(Outcome::Good)
}

/// A file beside `path` that takes its place once it is whole: a folder that cannot be written is known before any check
/// runs, and a report of an earlier run is not lost to one that breaks off.
fn beside(path: &Path) -> anyhow::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let other = path.exists() && !path.is_file();
    ensure!(!other, "cannot write --junit {}: it is there and no file, name another", path.display());
    let open = tempfile::Builder::new().permissions(Permissions::from_mode(READABLE)).tempfile_in(folder);
    open.with_context(|| format!("cannot write --junit {}", path.display()))
}
