//! The server as a process: signals, process 1, file handles, idle connections, a kill nobody can hear.

use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use procfs::process::Process;

use super::ledger::Ledger;
use super::{BACKENDS, BLOCKED, SECONDS, Session, row_start, wait_until};
use crate::served::{Served, command, through};
use crate::support::{self, TestDatabase};
use crate::wire::Wire;

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: test\r\n\r\n")
}

fn refuses_connections(served: &Served) -> bool {
    TcpStream::connect(served.address).is_err()
}

#[test]
fn sigterm_finishes_what_is_in_flight_whatever_the_other_connections_do() {
    let database = TestDatabase::new();
    let session = Session::connect(database.url());
    for (front, store) in [("own", "pipelined"), ("own", "sqlx"), ("axum", "pipelined")] {
        let served =
            Served::start(database.url(), &["--workers", "1", "--connections", "2", "--http", front, "--store", store]);
        let lock = Session::locking("users", database.url());
        let (mut idle, mut half, mut fresh) = (served.wire(), served.wire(), served.wire());
        assert_eq!(idle.get("/health").status, 200);
        let body = r#"{"name":"Jane","email":"jane@example.com","age":30,"tags":[]}"#;
        let length = body.len();
        half.send(format!(
            "POST /echo HTTP/1.1\r\nhost: t\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{{"
        ));
        let mut busy = served.wire();
        busy.send(get("/users/1"));
        let mut pipelined = served.wire();
        pipelined.send((2..=4).map(|id| get(&format!("/users/{id}"))).collect::<String>());
        assert_eq!(served.wire().get("/health").status, 200);
        wait_until("reads to be held up", || session.number(BLOCKED) > 0);

        served.signal(Signal::SIGTERM);
        wait_until("the listener to close", || refuses_connections(&served));
        assert!(idle.closed() && fresh.closed(), "{front}");
        half.send(&body[1..]);
        assert_eq!(half.reply().body, body, "{front}");
        assert!(half.closed(), "{front}");
        drop(lock);
        assert!(busy.reply().body.starts_with(&row_start(1)), "{front}");
        assert!(busy.closed(), "{front}");
        // hyper ends the connection after the request in flight; ours answers all that were sent.
        let answered = if front == "own" { 2..=4 } else { 2..=2 };
        for id in answered {
            assert!(pipelined.reply().body.starts_with(&row_start(id)), "{front}");
        }
        assert!(pipelined.closed(), "{front}");
        let (status, stderr) = served.wait();
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""), "{front}");
        wait_until("its sessions to end", || session.number(BACKENDS) == 0);
    }
}

#[test]
fn what_does_not_finish_after_sigterm_is_cut() {
    let database = TestDatabase::new();
    let session = Session::connect(database.url());
    for (front, store) in
        [("own", "pipelined"), ("own", "sqlx"), ("axum", "pipelined"), ("axum", "sqlx"), ("axum", "sqlx-held")]
    {
        let flags =
            ["--workers", "2", "--connections", "2", "--http", front, "--store", store, "--drain-time", "300ms"];
        let served = Served::start(database.url(), &flags);
        let lock = Session::locking("users", database.url());
        let mut half = served.wire();
        half.send("GET /hea");
        let mut busy = served.wire();
        busy.send(get("/users/1"));
        wait_until("the read to be held up", || session.number(BLOCKED) == 1);
        served.signal(Signal::SIGTERM);
        let (status, stderr) = ended(served, front);
        assert_eq!(status, Some(0), "{front} {store}: {stderr}");
        assert!(stderr.contains("were cut") && stderr.lines().count() <= 2, "{front} {store}: {stderr}");
        // Postgres notices that its client is gone when the lock is.
        drop(lock);
        wait_until("its sessions to end", || session.number(BACKENDS) == 0);
    }
}

/// Waits for the end, which must come within seconds.
fn ended(served: Served, what: &str) -> (Option<i32>, String) {
    let pid = served.pid();
    wait_until(&format!("the server to end: {what}"), || {
        let stat = Process::new(pid).and_then(|process| process.stat());
        stat.is_ok_and(|stat| stat.state == 'Z')
    });
    let (status, stderr) = served.wait();
    (status.code(), stderr)
}

#[test]
fn a_second_signal_ends_at_once_also_while_postgres_is_held_up() {
    let database = TestDatabase::new();
    for store in ["pipelined", "sqlx", "sqlx-held"] {
        let served = Served::start(
            database.url(),
            &["--workers", "1", "--connections", "2", "--store", store, "--drain-time", "10m"],
        );
        let _lock = Session::locking("users", database.url());
        let mut busy = served.wire();
        busy.send(get("/users/1"));
        assert_eq!(served.wire().get("/health").status, 200);
        served.signal(Signal::SIGTERM);
        wait_until("the listener to close", || refuses_connections(&served));
        served.signal(Signal::SIGTERM);
        let (status, stderr) = ended(served, store);
        assert_eq!(status, Some(143), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn process_1_hears_sigterm() {
    const NEW_NAMESPACE: [&str; 5] = ["--pid", "--fork", "--mount-proc", "--kill-child", "--"];
    let allowed = Command::new("unshare").args(NEW_NAMESPACE).arg("true").output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this user may not make a process namespace");
        return;
    }
    let database = TestDatabase::new();
    let served = Served::spawn(&mut through("unshare", &NEW_NAMESPACE, &command(database.url(), &[])));
    let mut wire = served.wire();
    assert_eq!(wire.get("/users/1").status, 200);
    let first = Process::new(served.pid()).and_then(|unshare| unshare.task_main_thread()?.children()).unwrap();
    let [first] = first[..] else { panic!("one child: {first:?}") };
    kill(Pid::from_raw(i32::try_from(first).unwrap()), Signal::SIGTERM).expect("it runs");
    assert!(wire.closed());
    let (status, stderr) = ended(served, "process 1");
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_low_soft_limit_of_files_is_raised() {
    let database = TestDatabase::new();
    let command = command(database.url(), &["--workers", "1", "--connections", "2"]);
    let served = Served::spawn(&mut through("sh", &["-c", "ulimit -Sn 64; exec \"$0\" \"$@\""], &command));
    let mut crowd: Vec<Wire> = (0..200).map(|_| served.wire()).collect();
    assert!(crowd.iter_mut().all(|wire| wire.get("/health").status == 200));
}

#[test]
fn without_file_handles_it_neither_spins_nor_floods_its_log() {
    const WATCHED: Duration = Duration::from_secs(1);
    let database = TestDatabase::new();
    for front in ["own", "axum"] {
        let command = command(database.url(), &["--workers", "1", "--connections", "2", "--http", front]);
        let limited = ["-c", "ulimit -n 64; exec \"$0\" \"$@\""];
        let served = Served::spawn(&mut through("sh", &limited, &command));
        let mut early = served.wire();
        assert_eq!(early.get("/users/1").status, 200);
        let crowd: Vec<Wire> = (0..200).map(|_| served.wire()).collect();
        wait_until("its file handles to run out", || handles(&served) >= 64);

        let (start, before) = (Instant::now(), cpu_ticks(&served));
        support::poll(SECONDS, "a second to pass", || (start.elapsed() >= WATCHED).then_some(()));
        let spent = cpu_ticks(&served) - before;
        // A spin takes all of a second; a failing accept now and then takes next to nothing.
        assert!(spent * 4 < procfs::ticks_per_second(), "{front}: {spent} ticks in {WATCHED:?}");
        assert_eq!(early.get("/users/2").status, 200, "{front}: who is in is served");

        drop(crowd);
        assert_eq!(served.wire().get("/users/3").status, 200, "{front}");
        served.signal(Signal::SIGTERM);
        let (status, stderr) = ended(served, front);
        assert_eq!(status, Some(0), "{stderr}");
        let lines = stderr.lines().count();
        assert!((1..=5).contains(&lines) && stderr.contains("cannot accept"), "{front}: {stderr}");
    }
}

fn handles(served: &Served) -> usize {
    Process::new(served.pid()).and_then(|process| process.fd_count()).expect("it runs")
}

fn cpu_ticks(served: &Served) -> u64 {
    let stat = Process::new(served.pid()).and_then(|process| process.stat()).expect("it runs");
    stat.utime + stat.stime
}

fn resident_bytes(served: &Served) -> u64 {
    let stat = Process::new(served.pid()).and_then(|process| process.stat()).expect("it runs");
    stat.rss * procfs::page_size()
}

#[test]
fn idle_connections_cost_little() {
    /// What this process needs besides: other tests run in it.
    const SPARE: u64 = 1_000;
    /// Generous: a kernel does not count its own share of a socket here.
    const MOST_BYTES_EACH: u64 = 16 * 1024;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("the soft limit may be raised");
    let count = hard.saturating_sub(SPARE).min(10_000);
    let database = TestDatabase::new();
    let flags = ["--workers", "2", "--connections", "2", "--idle-time", "10m"];
    let served = Served::start(database.url(), &flags);
    for _ in 0..100 {
        assert_eq!(served.wire().get("/users/1").status, 200);
    }
    let before = resident_bytes(&served);
    let mut idle: Vec<Wire> = (0..count).map(|_| served.wire()).collect();
    // Each has had a buffer once.
    for wire in &mut idle {
        wire.send(get("/health"));
    }
    for wire in &mut idle {
        assert_eq!(wire.reply().status, 200);
    }
    let each = resident_bytes(&served).saturating_sub(before) / count.max(1);
    println!("{count} idle connections, {each} bytes of memory each");
    assert!(each <= MOST_BYTES_EACH, "{each} bytes each");
    assert_eq!(served.wire().get("/users/1").status, 200);
    for wire in &mut idle[..2] {
        assert!(wire.get("/users/2").body.starts_with(&row_start(2)));
    }
}

#[test]
fn a_kill_loses_no_order_that_was_acknowledged() {
    const KILLS: usize = 10;
    const CLIENTS: usize = 8;
    const ORDERS_BEFORE_A_KILL: usize = 40;
    let database = TestDatabase::new();
    let ledger = Ledger::default();
    for turn in 0..KILLS {
        let store = ["pipelined", "sqlx", "sqlx-held"][turn % 3];
        let served = Served::start(database.url(), &["--workers", "2", "--connections", "4", "--store", store]);
        let enough = ledger.acknowledged() + ORDERS_BEFORE_A_KILL;
        let status = thread::scope(|scope| {
            for _ in 0..CLIENTS {
                let mut wire = served.wire();
                let ledger = &ledger;
                scope.spawn(move || {
                    loop {
                        let (cents, body) = ledger.order();
                        let Ok(reply) = wire.try_post("/orders", &body) else { return };
                        assert_eq!(reply.status, 201, "{}", reply.body);
                        ledger.acknowledge(cents, &reply);
                    }
                });
            }
            wait_until("orders", || ledger.acknowledged() >= enough);
            served.signal(Signal::SIGKILL);
            served.wait().0
        });
        assert_eq!(status.signal(), Some(9));
    }
    // What was under way may still be committed until the sessions have ended.
    let session = Session::connect(database.url());
    wait_until("their sessions to end", || session.number(BACKENDS) == 0);
    ledger.check(database.url());
}
