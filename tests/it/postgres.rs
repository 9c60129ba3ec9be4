//! The private cluster and what is done to databases, against real servers.
//!
//! Tests of counts and refusals take a database in the shared cluster. Tests of starting, stopping and crashing take a
//! state folder of their own ([`Home`]); users of the cluster that must be killed are this test binary, started once more.

mod database;
mod life;
mod start;

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use headroom::interrupt::Interrupt;
use headroom::postgres::{Cluster, ClusterOptions};
use headroom::progress::Silent;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::{cluster_options, poll};

/// Starting, seeding and stopping on a machine that is busy with other tests.
const LONG: Duration = Duration::from_secs(150);

/// A state folder under `/var/tmp`, whose way is open to the user Postgres runs as.
fn fresh_folder() -> TempDir {
    tempfile::Builder::new().prefix("headroom-it-").tempdir_in("/var/tmp").expect("/var/tmp can be written")
}

/// A state folder that tests use one after another: seeding one takes seconds. Each leaves the cluster in it stopped.
struct Home {
    _turn: MutexGuard<'static, ()>,
    folder: Arc<TempDir>,
}

impl Home {
    fn take() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        static FOLDER: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
        let folder = {
            // Held while waiting for the turn, so that the folder lives from the first test to the last.
            let mut shared = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
            shared.upgrade().unwrap_or_else(|| {
                let folder = Arc::new(fresh_folder());
                *shared = Arc::downgrade(&folder);
                folder
            })
        };
        Self { _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner), folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn options(&self) -> ClusterOptions {
        cluster_options(self.path())
    }

    fn acquire(&self) -> Cluster {
        Cluster::acquire(&self.options(), &Silent, &Interrupt::default()).expect("the cluster starts")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A failed test must not leave a cluster to the next one.
        let _ = headroom::postgres::stop(self.path(), &Interrupt::default());
    }
}

/// The data folder that Postgres was given.
fn pgdata(home: &Path) -> PathBuf {
    let entries = home.read_dir().expect("the state folder can be listed");
    let data = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("data-")));
    data.expect("a data folder").join("pgdata")
}

/// The owner record as it lies on disk.
fn record(home: &Path) -> serde_json::Value {
    let text = fs::read(home.join("owner.json")).expect("an owner record");
    serde_json::from_slice(&text).expect("the owner record is JSON")
}

/// The recorded postmaster.
fn postmaster(home: &Path) -> i32 {
    record(home)["postmaster_pid"].as_i64().and_then(|pid| pid.try_into().ok()).expect("a process id")
}

/// Whether a process lives: a zombie does not.
fn lives(pid: i32) -> bool {
    let stat = procfs::process::Process::new(pid).and_then(|process| process.stat());
    stat.is_ok_and(|stat| !['Z', 'X'].contains(&stat.state))
}

/// A user of the cluster in a process of its own.
struct User {
    child: Child,
    report: PathBuf,
    _reports: TempDir,
}

impl User {
    /// Starts one; `adjust` sees the command first.
    fn start(home: &Path, role: &str, adjust: impl FnOnce(&mut Command)) -> Self {
        let reports = fresh_folder();
        // Written by whatever user the child is.
        let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
        fs::set_permissions(reports.path(), open).expect("the mode of a fresh folder can be set");
        let report = reports.path().join("report");
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["postgres::another_user", "--exact", "--nocapture"]);
        command.env("HEADROOM_TEST_ROLE", role).env("HEADROOM_TEST_HOME", home).env("HEADROOM_TEST_REPORT", &report);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        adjust(&mut command);
        let child = command.spawn().expect("this binary starts again");
        Self { child, report, _reports: reports }
    }

    /// What it says once it has a share, or has failed.
    fn said(&mut self) -> String {
        poll(LONG, "the other user's report", || fs::read_to_string(&self.report).ok())
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("process ids are small");
        kill(Pid::from_raw(pid), signal).expect("the other user is there to be signalled");
    }

    /// Tells it to leave.
    fn dismiss(&mut self) {
        drop(self.child.stdin.take());
    }

    fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        poll(LONG, "the other user's end", || child.try_wait().expect("it can be waited for"))
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// No test by itself: what [`User`] runs. `hold` keeps its share until its standard input ends, `keep` leaves the cluster
/// running and ends.
#[test]
fn another_user() {
    let Some(role) = std::env::var_os("HEADROOM_TEST_ROLE") else { return };
    let home = PathBuf::from(std::env::var_os("HEADROOM_TEST_HOME").unwrap());
    let report = PathBuf::from(std::env::var_os("HEADROOM_TEST_REPORT").unwrap());
    let say = |text: &str| {
        let fresh = report.with_extension("new");
        fs::write(&fresh, text).unwrap();
        fs::rename(&fresh, &report).unwrap();
    };
    let mut options = cluster_options(&home);
    options.keep = role == "keep";
    match Cluster::acquire(&options, &Silent, &Interrupt::listen().unwrap()) {
        Ok(cluster) => {
            say(cluster.url());
            if role == "hold" {
                let mut nothing = Vec::new();
                std::io::stdin().read_to_end(&mut nothing).unwrap();
            }
            cluster.leave().unwrap();
        }
        Err(error) => say(&format!("error: {error:#}")),
    }
}
