//! Postgres restarted, crashed and stopped under load, in a cluster that no other test uses.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread;

use headroom::interrupt::Interrupt;
use headroom::postgres::Cluster;
use headroom::progress::Silent;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::Process;
use tempfile::TempDir;

use super::ledger::Ledger;
use super::{BACKENDS, SECONDS, Session, assert_unavailable, row_start, wait_until};
use crate::served::Served;
use crate::support;

/// A cluster whose postmaster is stopped and started again, on its port, behind the back of its owner.
struct OwnCluster {
    /// Before the folder it lives in.
    cluster: Cluster,
    arguments: Vec<String>,
    owner: (u32, u32),
    pid: i32,
    /// The postmaster, once it is one of ours.
    restarted: Option<Child>,
    _folder: TempDir,
}

impl OwnCluster {
    fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("headroom-it-").tempdir_in("/var/tmp").expect("a folder");
        let options = support::cluster_options(folder.path());
        let cluster = Cluster::acquire(&options, &Silent, &Interrupt::default()).expect("the cluster starts");
        let record = fs::read(folder.path().join("owner.json")).expect("an owner record");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        let pid = record["postmaster_pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a process id");
        let postmaster = Process::new(pid).expect("the postmaster");
        let status = postmaster.status().expect("its status");
        let arguments = postmaster.cmdline().expect("its command line");
        Self { cluster, arguments, owner: (status.euid, status.egid), pid, restarted: None, _folder: folder }
    }

    /// Stops Postgres, ending every session.
    fn stop(&mut self) {
        kill(Pid::from_raw(self.pid), Signal::SIGINT).expect("it runs");
        match self.restarted.take() {
            Some(mut child) => wait_until("Postgres to end", || child.try_wait().expect("a child").is_some()),
            None => wait_until("Postgres to end", || !lives(self.pid)),
        }
    }

    fn start_again(&mut self) {
        let url = self.cluster.url().to_owned();
        support::poll(SECONDS, "Postgres to be back", || {
            // Somebody's outgoing connection may have its port for a moment.
            if self.restarted.as_mut().is_none_or(|child| child.try_wait().expect("a child").is_some()) {
                let child = self.spawn();
                self.pid = i32::try_from(child.id()).expect("process ids are small");
                self.restarted = Some(child);
            }
            Session::try_connect(&url).ok()
        });
    }

    fn spawn(&self) -> Child {
        let mut command = Command::new(&self.arguments[0]);
        command.args(&self.arguments[1..]).env("LC_ALL", "C").current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if nix::unistd::geteuid().is_root() {
            command.uid(self.owner.0).gid(self.owner.1);
        }
        command.spawn().expect("Postgres starts")
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        let Some(mut child) = self.restarted.take() else { return };
        // A shutdown that ends sessions; its children end with it.
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGINT);
        let _ = child.wait();
    }
}

/// Whether a process lives: a zombie does not.
fn lives(pid: i32) -> bool {
    let stat = Process::new(pid).and_then(|process| process.stat());
    stat.is_ok_and(|stat| !['Z', 'X'].contains(&stat.state))
}

/// A server under load, and what came of it.
struct Loaded {
    store: &'static str,
    url: String,
    served: Served,
    ledger: Ledger,
    refused: AtomicUsize,
    most_backends: AtomicI64,
}

impl Loaded {
    fn start(store: &'static str, cluster: &Cluster) -> Self {
        let url = cluster.create_database(&store.replace('-', "_")).expect("a database");
        // A wait long enough for a healthy pool, short enough to see its end.
        let served = Served::start(&url, &["--workers", "2", "--store", store, "--wait-time", "2s"]);
        let (refused, most_backends) = (AtomicUsize::new(0), AtomicI64::new(0));
        Self { store, url, served, ledger: Ledger::default(), refused, most_backends }
    }

    /// Reads and orders on one connection, which the server must keep whatever becomes of Postgres.
    fn client(&self, number: i32, ends: &AtomicBool) {
        let mut wire = self.served.wire();
        let mut id = number;
        while !ends.load(Ordering::Relaxed) {
            id = (id + 7_919) % 50_000;
            let read = wire.get(&format!("/users/{}", id + 1));
            if read.status == 200 {
                assert!(read.body.starts_with(&row_start(id + 1)), "{}", read.body);
            } else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                assert_unavailable(&read);
            }
            let (cents, body) = self.ledger.order();
            let order = wire.post("/orders", &body);
            if order.status == 201 {
                self.ledger.acknowledge(cents, &order);
            } else {
                self.refused.fetch_add(1, Ordering::Relaxed);
                assert_unavailable(&order);
            }
        }
    }

    fn watch(&self, ends: &AtomicBool) {
        while !ends.load(Ordering::Relaxed) {
            let Ok(session) = Session::try_connect(&self.url) else { continue };
            while let (false, Ok(count)) = (ends.load(Ordering::Relaxed), session.try_number(BACKENDS)) {
                self.most_backends.fetch_max(count, Ordering::Relaxed);
                thread::yield_now();
            }
        }
    }

    /// A stretch in which every request is answered well.
    fn assert_recovers(&self, after: &str) {
        wait_until(&format!("{} to recover after {after}", self.store), || {
            let (refused, acknowledged) = (self.refused.load(Ordering::Relaxed), self.ledger.acknowledged());
            let mut wire = self.served.wire();
            (1..=50).all(|id| wire.get(&format!("/users/{id}")).status == 200)
                && self.refused.load(Ordering::Relaxed) == refused
                && self.ledger.acknowledged() > acknowledged
        });
    }
}

#[test]
fn postgres_may_restart_crash_and_stay_away_under_load() {
    let mut own = OwnCluster::start();
    let all = ["pipelined", "sqlx", "sqlx-held"].map(|store| Loaded::start(store, &own.cluster));
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        // Ends the load also when an assertion fails.
        let _end = EndOnDrop(&ends);
        for loaded in &all {
            for number in 0..4 {
                let ends = &ends;
                scope.spawn(move || loaded.client(number, ends));
            }
            let ends = &ends;
            scope.spawn(move || loaded.watch(ends));
        }
        let recover = |after: &str| all.iter().for_each(|loaded| loaded.assert_recovers(after));
        recover("the start");

        own.stop();
        own.start_again();
        recover("a restart");

        let administrator = Session::connect(own.cluster.url());
        let backend =
            "SELECT pid::int8 FROM pg_stat_activity WHERE datname = 'sqlx' AND backend_type = 'client backend' LIMIT 1";
        let backend = i32::try_from(administrator.number(backend)).expect("a process id");
        kill(Pid::from_raw(backend), Signal::SIGKILL).expect("it runs");
        // Postgres ends every session and recovers by itself.
        wait_until("the crash", || administrator.try_number("SELECT 1::int8").is_err());
        recover("a crash");

        own.stop();
        for loaded in &all {
            assert_eq!(loaded.served.wire().get("/health").status, 200, "what needs no Postgres works on");
        }
        thread::scope(|scope| {
            for served in all.iter().map(|loaded| &loaded.served) {
                for target in ["/users/1", "/users?page=2"] {
                    scope.spawn(move || assert_unavailable(&served.wire().get(target)));
                }
            }
        });
        own.start_again();
        recover("an absence");
    });
    for loaded in all {
        assert!(loaded.refused.into_inner() > 0, "the load has seen Postgres away");
        let most = loaded.most_backends.into_inner();
        assert!(most <= 10, "{} had {most} connections", loaded.store);
        if loaded.store == "pipelined" {
            let session = Session::connect(&loaded.url);
            wait_until("ten connections", || session.number(BACKENDS) == 10);
        }
        loaded.ledger.check(&loaded.url);
        loaded.served.signal(Signal::SIGTERM);
        let (status, stderr) = loaded.served.wait();
        assert_eq!(status.code(), Some(0), "{stderr}");
        // Each loss is said once for each connection, whatever the load: there were three.
        assert!(stderr.lines().count() <= 3 * 10, "{stderr}");
    }
}

struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
