//! The reference server as a child process.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{self, TestDatabase};
use crate::wire::Wire;

/// A running `headroom serve`; killed when dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

/// The command with a clean environment, on a free port unless an address is given.
pub(crate) fn command(database_url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(support::headroom());
    command.args(["serve", "--database-url", database_url]).args(arguments);
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.env_remove("DATABASE_URL").env_remove("JWT_SECRET").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The same command, started by another program with these arguments before it.
pub(crate) fn through(program: &str, arguments: &[&str], server: &Command) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).arg(server.get_program()).args(server.get_args());
    command.env_remove("DATABASE_URL").env_remove("JWT_SECRET");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server with one worker behind each of the HTTP fronts, and their database.
struct Fronts {
    own: Served,
    axum: Served,
    // Dropped after the servers that use it.
    _database: TestDatabase,
}

/// Shared by the tests that run at the same time, and ended with the last of them: starting it takes longer than most
/// of them do.
fn fronts() -> Arc<Fronts> {
    static RUNNING: Mutex<Weak<Fronts>> = Mutex::new(Weak::new());
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.upgrade().unwrap_or_else(|| {
        let database = TestDatabase::new();
        let start = |front| Served::start(database.url(), &["--workers", "1", "--http", front]);
        let fronts = Arc::new(Fronts { own: start("own"), axum: start("axum"), _database: database });
        *running = Arc::downgrade(&fronts);
        fronts
    })
}

/// Runs a test against each of the HTTP fronts. It may add orders, and must mind that others do.
pub(crate) fn on_both_fronts(test: impl Fn(&Served)) {
    let fronts = fronts();
    test(&fronts.own);
    test(&fronts.axum);
}

/// Runs a test against our own front.
pub(crate) fn on_our_front(test: impl Fn(&Served)) {
    test(&fronts().own);
}

impl Served {
    /// Starts the server and waits for its address.
    pub(crate) fn start(database_url: &str, arguments: &[&str]) -> Self {
        Self::spawn(&mut command(database_url, arguments))
    }

    /// The same with a command that runs the server in some surroundings.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.spawn().expect("the binary runs");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("readable");
        let address = line.trim().strip_prefix("listening on http://").map(|text| text.parse().expect("an address"));
        let Some(address) = address else {
            let mut stderr = String::new();
            let _ = child.stderr.take().expect("piped").read_to_string(&mut stderr);
            panic!("the server did not start: {line}{stderr}");
        };
        Self { child, address }
    }

    pub(crate) fn wire(&self) -> Wire {
        Wire::connect(self.address)
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    /// Its stderr, to be read while it runs; can be taken once.
    pub(crate) fn stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().expect("piped, and not taken before")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it runs");
    }

    /// Waits for the end and gives status and stderr.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let mut stderr = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut stderr).expect("readable");
        (self.child.wait().expect("it ends"), stderr)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
