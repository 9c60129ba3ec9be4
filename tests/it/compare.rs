//! The comparison from outside: the documents it promises, the rights it takes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use headroom::interrupt::Interrupt;
use headroom::load::{Config, Engine, Report, Request, judge};
use headroom::record::{Record, Stage};
use headroom::setup::MeasureLock;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::support::{self, TestDatabase, poll};

/// A debug build is gated in some ten seconds while other tests run; this only ends what hangs.
const LIMIT: Duration = Duration::from_mins(5);

/// A bench folder of its own beside the installed peers: our server, one that ends at once, and one that serves junk.
fn small_bench() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    symlink(support::bench().join("peers"), folder.path().join("peers")).unwrap();
    let peer = |name: &str, native: bool, command: &str| {
        format!(
            "[[peer]]\nname = \"{name}\"\nlabel = \"{name}\"\nclass = \"idiomatic\"\nnative = {native}\nruntime = \"r\"\n\
             framework = \"f\"\ndriver = \"d\"\nprepared = true\npipelined = true\ncores = \"one\"\nprocesses = 1\n\
             command = {command}\n\n"
        )
    };
    let native = r#"["{headroom}", "serve", "--listen", "{host}:{port}", "--workers", "1"]"#;
    let dead = r#"["/bin/sh", "-c", "echo out of luck >&2; exit 3"]"#;
    let junk = r#"["{bun}", "junk.js"]"#;
    let catalogue =
        ["version = 1\n\n", &peer("native", true, native), &peer("dead", false, dead), &peer("junk", false, junk)]
            .concat();
    fs::write(folder.path().join("peers.toml"), catalogue).unwrap();
    let server = "Bun.serve({ hostname: process.env.HOST, port: Number(process.env.PORT), fetch: () => Response.json({ status: 'ok' }) })";
    fs::write(folder.path().join("junk.js"), server).unwrap();
    folder
}

/// A running `headroom compare`, ended with the test whatever happens. Its output goes to files: a pipe nobody reads fills.
struct Comparing {
    child: Child,
    folder: TempDir,
}

impl Comparing {
    fn start(home: &Path, bench: &Path, database: &TestDatabase, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| fs::File::create(folder.path().join(name)).unwrap();
        let mut command = Command::new(support::headroom());
        command.env("HEADROOM_HOME", home).current_dir(home);
        command.arg("compare").arg("--bench").arg(bench).args(["--database-url", database.url()]);
        let child = command.args(arguments).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        Self { child, folder }
    }

    /// Status, stdout, stderr.
    fn end(mut self) -> (Option<i32>, String, String) {
        let status = poll(LIMIT, "headroom compare", || self.child.try_wait().unwrap());
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap();
        (status.code(), read("out"), read("err"))
    }
}

impl Drop for Comparing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything may disturb a test's windows: what is tested is that rows come about, not that they are good.
const SHORT: [&str; 14] = [
    "--warmup",
    "100ms",
    "--window",
    "200ms",
    "-c",
    "2",
    "--max-attempts",
    "1",
    "--max-foreign-cpu",
    "1",
    "--max-steal",
    "1",
    "--out",
    "record",
];

#[test]
fn every_row_of_the_default_suite_starts_passes_the_gate_and_is_measured() {
    let (home, database) = (tempfile::tempdir().unwrap(), TestDatabase::new());
    let (status, _, said) =
        Comparing::start(home.path(), &support::bench(), &database, &[&SHORT[..], &["--route", "health"]].concat())
            .end();
    let record = Record::read(&home.path().join("record")).unwrap_or_else(|error| panic!("{error:#}: {said}"));
    let passed: Vec<&str> =
        record.run.gates.iter().filter(|(_, gate)| gate.passed).map(|(name, _)| name.as_str()).collect();
    let rows = ["elysia-bun", "elysia-bun-sql", "express-node", "native", "native-all", "native-sqlx"];
    assert_eq!(passed, rows, "{said}");
    let mut measured: Vec<&str> = record.windows.iter().map(|window| window.server.as_str()).collect();
    measured.sort_unstable();
    assert_eq!(measured, rows);
    assert_eq!(status, Some(0), "{said}");
    for name in ["native", "native-all", "native-sqlx"] {
        let differences: Vec<&str> =
            record.run.gates[name].strict_differences.iter().map(|difference| difference.id.as_str()).collect();
        // Hashing a million times takes an unoptimised build longer than the gate waits.
        assert!(differences.iter().all(|id| *id == "cpu-refuses-a-million"), "{name}: {differences:?}");
    }
}

#[test]
fn a_server_that_fails_is_a_row_and_the_rest_is_measured() {
    let (home, bench, database) = (tempfile::tempdir().unwrap(), small_bench(), TestDatabase::new());
    let servers = ["--peer", "dead,junk,native", "--route", "user,health"];
    let (_, shown, said) =
        Comparing::start(home.path(), bench.path(), &database, &[&SHORT[..], &servers].concat()).end();
    let record = Record::read(&home.path().join("record")).unwrap_or_else(|error| panic!("{error:#}: {said}"));

    let failure = |server: &str| record.lives.iter().find(|life| life.server == server).unwrap().failure.clone();
    let dead = failure("dead").unwrap();
    assert_eq!(dead.stage, Stage::Start);
    assert!(dead.why.contains("status 3") && dead.why.contains("out of luck"), "{}", dead.why);
    assert_eq!(failure("junk").unwrap().stage, Stage::Gate);
    assert!(!record.run.gates["junk"].passed && !record.run.gates["junk"].core_failures.is_empty());
    assert!(record.run.gates["native"].passed && failure("native").is_none());

    let rows: Vec<(&str, &str, bool)> =
        record.windows.iter().map(|w| (w.server.as_str(), w.route.as_str(), w.requests_ok > 0)).collect();
    assert_eq!(rows, [("native", "user", true), ("native", "health", true)]);
    let user = &record.windows[0];
    let life = record.lives.iter().find(|life| life.life == user.life).unwrap();
    assert!(life.transactions >= Some(life.database_requests_ok), "{life:?}");
    assert!(life.database_requests_ok > user.requests_ok, "the warm-up counts too: {life:?}");
    assert!(user.postgres_connections.is_some_and(|seen| (1..=10).contains(&seen)), "{user:?}");
    assert!(user.cpu_ns_per_request.server > Some(0) && user.rss_bytes > Some(1 << 20), "{user:?}");

    assert!(
        shown.contains("dead round 1: it did not start") && shown.contains("junk did not pass the gate"),
        "{shown}"
    );
    let report = fs::read_to_string(home.path().join("record/report.md")).unwrap();
    assert_eq!(report, headroom::report::markdown(&record));
}

#[test]
fn an_interrupted_run_keeps_what_it_has_and_goes_on_from_there() {
    let (home, bench, database) = (tempfile::tempdir().unwrap(), small_bench(), TestDatabase::new());
    let servers = ["--peer", "native", "--route", "health,me,user,list,echo", "--rounds", "2"];
    let dir = home.path().join("record");
    let mut first = Comparing::start(home.path(), bench.path(), &database, &[&SHORT[..], &servers].concat());
    let rows = || fs::read_to_string(dir.join("windows.jsonl")).map_or(0, |text| text.lines().count());
    poll(LIMIT, "the first window", || (rows() > 0 || first.child.try_wait().unwrap().is_some()).then_some(()));
    kill(Pid::from_raw(i32::try_from(first.child.id()).unwrap()), Signal::SIGTERM).unwrap();
    let (status, _, said) = first.end();
    assert_eq!(status, Some(143), "{said}");
    assert!(said.contains("headroom compare --resume record"), "{said}");
    let before = Record::read(&dir).unwrap();
    assert!(!before.windows.is_empty() && before.windows.len() < 10, "{} windows: {said}", before.windows.len());
    assert!(before.lives.last().unwrap().failure.is_none(), "a signal is no fault of the server's: {said}");

    let (_, _, said) = Comparing::start(home.path(), bench.path(), &database, &["--resume", "record"]).end();
    let after = Record::read(&dir).unwrap();
    assert_eq!(after.windows[..before.windows.len()], before.windows, "{said}");
    assert_eq!(after.windows.len(), 10, "{said}");
    assert_eq!(after.run.resumed_at.len(), 1);
    assert_eq!(after.run.gates, before.run.gates, "a gate that was passed is not run again");
}

/// Answers every request of every connection with 204, one connection after another, until the test ends.
fn canned_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut buffer = [0; 4096];
            // Requests of this test are far smaller than the buffer and never pipelined.
            while stream.read(&mut buffer).is_ok_and(|read| read > 0) {
                if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
                    break;
                }
            }
        }
    });
    address
}

#[test]
fn every_key_of_load_json_is_documented() {
    let address = canned_server();
    let request = Request {
        method: "GET".to_owned(),
        target: "/".to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        expected: None,
    };
    let config = Config {
        endpoint: address.into(),
        host: address.to_string(),
        connections: 1,
        threads: 1,
        timeout: Duration::from_secs(10),
        drain: Duration::from_secs(10),
        requests: vec![request],
        success_status: Some(201),
        check_every: 0,
        keeps_alive: true,
        spins: false,
    };
    let window = Engine::start(config, &Interrupt::default())
        .unwrap()
        .run(Duration::from_millis(20), &Interrupt::default())
        .unwrap();
    let report = Report::new("http://x/", "x", 1, &window, &judge(&window, None));
    let json = serde_json::to_value(report).unwrap();
    // A status that does not count, so that failures and reasons are there too.
    assert!(json["first_failure"].is_object() && json["invalid_reasons"][0].is_object(), "{json}");
    let nested = ["latency_ns", "first_failure", "driver"].map(|name| &json[name]);
    let objects = nested.into_iter().chain([&json, &json["invalid_reasons"][0]]);
    let keys: Vec<&String> = objects.flat_map(|object| object.as_object().unwrap().keys()).collect();
    let format = include_str!("../../bench/FORMAT.md");
    let section = &format[format.find("## headroom load --json").unwrap()..];
    let missing: Vec<&&String> = keys
        .iter()
        .filter(|key| !section.contains(&format!("`{key}`")) && json["latency_ns"].get(key.as_str()).is_none())
        .collect();
    assert!(keys.len() > 40 && missing.is_empty(), "not in FORMAT.md: {missing:?}");
}

#[test]
fn the_right_to_measure_is_not_inherited_by_a_server() {
    let home = tempfile::tempdir().unwrap();
    let held = MeasureLock::take(home.path()).unwrap();
    // Outlives the run that started it, as a server does whose harness was killed.
    let mut server = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
    drop(held);
    let again = MeasureLock::take(home.path());
    server.kill().unwrap();
    server.wait().unwrap();
    again.unwrap();
}
