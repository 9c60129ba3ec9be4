//! Which Postgres runs the cluster: the one asked for, the pinned one, the newest installed one, or the one in `PATH`.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::sys::statvfs::{FsFlags, statvfs};

use super::ClusterOptions;
use super::account::Account;
use super::child::Group;
use super::copy;
use super::home::Home;
use crate::interrupt::Interrupt;

/// Where distributions put versions side by side.
const SYSTEM_FOLDER: &str = "/usr/lib/postgresql";

/// From this version on, backends publish their counts in shared memory when they end: older ones lose or delay them.
pub(super) const MIN_MAJOR: u32 = 15;

/// `postgres --version` prints a line and ends.
const VERSION_WAIT: Duration = Duration::from_secs(20);

/// A folder with `postgres` and `initdb` of one version, which the account can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    pub(super) folder: PathBuf,
    /// `17.10`.
    pub(super) version: String,
    pub(super) major: u32,
}

impl Binaries {
    pub(super) fn postgres(&self) -> PathBuf {
        self.folder.join("postgres")
    }

    pub(super) fn initdb(&self) -> PathBuf {
        self.folder.join("initdb")
    }
}

/// Finds the binaries and puts them where the account can run them. Under the start lock.
pub(super) fn choose(options: &ClusterOptions, home: &Home, interrupt: &Interrupt) -> anyhow::Result<Binaries> {
    let (folder, pinned) = locate(options)?;
    // The pinned ones lie among packages that the next installation replaces, under a cluster that may be kept up.
    let binaries = if pinned {
        copy::place(&folder, home, interrupt)?
    } else {
        match probe(&folder, &home.account, interrupt) {
            Ok(found) => found,
            Err(Unusable::Denied(_)) if home.account.drops_root => copy::place(&folder, home, interrupt)?,
            Err(Unusable::Denied(error) | Unusable::Other(error)) => return Err(error),
        }
    };
    if binaries.major < MIN_MAJOR {
        bail!(
            "postgres {} in {} is too old: headroom needs {MIN_MAJOR} or newer, whose counts are exact; \
             give another folder with --postgres-bin",
            binaries.version,
            folder.display()
        );
    }
    Ok(binaries)
}

/// The folder to take, and whether it is the pinned one.
fn locate(options: &ClusterOptions) -> anyhow::Result<(PathBuf, bool)> {
    if let Some(given) = &options.binaries {
        let folder = bin_folder(given).with_context(|| {
            format!("no `postgres` and `initdb` in {}: --postgres-bin names the folder that has both", given.display())
        })?;
        return Ok((folder, false));
    }
    if let Some(pinned) = &options.pinned {
        let folder = bin_folder(pinned).with_context(|| {
            format!("the pinned postgres in {} is incomplete: run `npm ci` again in bench/peers", pinned.display())
        })?;
        return Ok((folder, true));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = newest_installed(Path::new(SYSTEM_FOLDER)).or_else(|| in_path(std::env::split_paths(&path)));
    let folder = found.with_context(|| {
        format!(
            "no postgres found (looked for the pinned one, in {SYSTEM_FOLDER}/*/bin and in PATH): run `npm ci` in \
             bench/peers, install postgres {MIN_MAJOR} or newer, or give its folder with --postgres-bin"
        )
    })?;
    Ok((folder, false))
}

/// `folder` or its `bin`, whichever has both programs; links resolved, so that both come from one installation.
fn bin_folder(folder: &Path) -> Option<PathBuf> {
    [folder.join("bin"), folder.to_owned()].into_iter().find_map(|folder| beside(&folder.join("postgres")))
}

/// The folder of a `postgres`, its links resolved, if `initdb` is in it too; else the folder it was named by.
fn beside(postgres: &Path) -> Option<PathBuf> {
    let real = postgres.canonicalize().ok()?;
    let named = std::path::absolute(postgres).ok()?;
    // A folder of links to programs that look at the name they are called by resolves to a folder without `initdb`.
    [real.parent()?, named.parent()?].into_iter().find(|folder| has_both(folder)).map(Path::to_owned)
}

fn has_both(folder: &Path) -> bool {
    folder.join("postgres").is_file() && folder.join("initdb").is_file()
}

/// The highest version under the system's folder. By number: as text, `9.6` would beat `16`.
fn newest_installed(root: &Path) -> Option<PathBuf> {
    let entries = root.read_dir().ok()?;
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| Some((version_numbers(&entry.file_name().to_string_lossy())?, bin_folder(&entry.path())?)))
        .collect();
    found.sort();
    found.pop().map(|(_, folder)| folder)
}

/// `9.6` is `[9, 6]`; anything but numbers and points is no version.
fn version_numbers(name: &str) -> Option<Vec<u32>> {
    name.split('.').map(|part| part.parse().ok()).collect()
}

/// The first folder of `PATH` that leads to both programs.
fn in_path(path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    path.filter(|folder| folder.is_absolute()).find_map(|folder| {
        // Some systems put only one of the two, or only a link, into PATH.
        ["postgres", "initdb"].into_iter().find_map(|program| {
            let real = folder.join(program).canonicalize().ok()?;
            beside(&real.with_file_name("postgres"))
        })
    })
}

/// Why a folder's programs cannot be run.
pub(super) enum Unusable {
    /// The account may not reach or execute them.
    Denied(anyhow::Error),
    Other(anyhow::Error),
}

/// Runs both programs as the account and reads their version.
pub(super) fn probe(folder: &Path, account: &Account, interrupt: &Interrupt) -> Result<Binaries, Unusable> {
    let postgres = version_of(&folder.join("postgres"), account, interrupt)?;
    let initdb = version_of(&folder.join("initdb"), account, interrupt)?;
    if postgres != initdb {
        return Err(Unusable::Other(anyhow::anyhow!(
            "{} has postgres {postgres} and initdb {initdb}: both must be of one version",
            folder.display()
        )));
    }
    let major = major_of(&postgres).ok_or_else(|| {
        Unusable::Other(anyhow::anyhow!("{} says its version is {postgres:?}, which is none", folder.display()))
    })?;
    Ok(Binaries { folder: folder.to_owned(), version: postgres, major })
}

fn version_of(program: &Path, account: &Account, interrupt: &Interrupt) -> Result<String, Unusable> {
    let mut command = account.command(program);
    command.arg("--version").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_run(program, account, &error))?;
    // Both streams stay far below the size of a pipe, so nobody has to read while it runs.
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let what = format!("`{} --version`", program.display());
    let status = Group::new(child).wait(&what, VERSION_WAIT, interrupt).map_err(Unusable::Other)?;
    let printed = read_all(stdout);
    if let Some(version) = parse_version(&printed).filter(|_| status.success()) {
        return Ok(version.to_owned());
    }
    let said = read_all(stderr);
    let said = said.lines().chain(printed.lines()).find(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
    let error = anyhow::anyhow!("{what} failed with {status}: {}", said.trim());
    // A dynamic loader that may not read a library exits instead of failing to start.
    Err(if said.contains("Permission denied") { Unusable::Denied(error) } else { Unusable::Other(error) })
}

fn read_all(stream: Option<impl Read>) -> String {
    /// More than any version line or loader error.
    const LIMIT: u64 = 4096;
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let _ = stream.take(LIMIT).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Says why a program cannot be started, in one line.
fn cannot_run(program: &Path, account: &Account, error: &io::Error) -> Unusable {
    let shown = program.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied if is_noexec(program) => Unusable::Other(anyhow::anyhow!(
            "{shown} lies on a file system mounted noexec: give binaries elsewhere with --postgres-bin"
        )),
        io::ErrorKind::PermissionDenied => Unusable::Denied(anyhow::anyhow!(
            "user {} may not run {shown}: make it and the folders above it readable and executable, or give another \
             folder with --postgres-bin",
            account.name
        )),
        io::ErrorKind::NotFound => Unusable::Other(anyhow::anyhow!(
            "{shown} cannot be started ({error}): it is missing or built for another C library; \
             give another folder with --postgres-bin"
        )),
        _ => Unusable::Other(anyhow::anyhow!("failed to run {shown} as user {}: {error}", account.name)),
    }
}

/// Whether programs on this file system may not be run.
pub(super) fn is_noexec(path: &Path) -> bool {
    statvfs(path).is_ok_and(|fs| fs.flags().contains(FsFlags::ST_NOEXEC))
}

/// `postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)` is `15.14`.
fn parse_version(line: &str) -> Option<&str> {
    line.split_once("(PostgreSQL)")?.1.split_whitespace().next()
}

/// `17.10` is 17, `18beta2` is 18.
fn major_of(version: &str) -> Option<u32> {
    let digits = version.split(|character: char| !character.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn with_programs(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for program in ["postgres", "initdb"] {
            fs::write(folder.join(program), "").unwrap();
        }
    }

    #[test]
    fn versions_are_read_as_printed() {
        assert_eq!(parse_version("postgres (PostgreSQL) 17.10\n"), Some("17.10"));
        assert_eq!(parse_version("postgres (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some("15.14"));
        assert_eq!(parse_version("nonsense"), None);
        assert_eq!(major_of("17.10"), Some(17));
        assert_eq!(major_of("18beta2"), Some(18));
        assert_eq!(major_of("9.6.24"), Some(9));
        assert_eq!(major_of("devel"), None);
    }

    #[test]
    fn the_newest_is_newest_by_number() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9.6", "16", "10", "16.backup"] {
            with_programs(&root.path().join(version).join("bin"));
        }
        // A client package: higher, but no server in it.
        fs::create_dir_all(root.path().join("18/bin")).unwrap();
        fs::write(root.path().join("18/bin/psql"), "").unwrap();
        let root = root.path().canonicalize().unwrap();
        assert_eq!(newest_installed(&root), Some(root.join("16/bin")));
        assert_eq!(newest_installed(&root.join("9.6")), None);
    }

    #[test]
    fn a_link_in_path_leads_to_the_installation() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        with_programs(&root.join("opt/bin"));
        let links = root.join("links");
        fs::create_dir_all(&links).unwrap();
        std::os::unix::fs::symlink(root.join("opt/bin/initdb"), links.join("initdb")).unwrap();
        let path = [root.join("missing"), links].into_iter();
        assert_eq!(in_path(path), Some(root.join("opt/bin")));
        assert_eq!(in_path([root].into_iter()), None);
    }

    #[test]
    fn the_folder_or_its_bin_may_be_given() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        with_programs(&root.join("native/bin"));
        assert_eq!(bin_folder(&root.join("native")), Some(root.join("native/bin")));
        assert_eq!(bin_folder(&root.join("native/bin")), Some(root.join("native/bin")));
        assert_eq!(bin_folder(&root), None);
    }
}
