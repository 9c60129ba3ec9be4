//! Sharing, stopping, and what a killed user leaves.

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use headroom::interrupt::Interrupt;
use headroom::postgres::{Cluster, Database, StopOutcome, stop, url};
use headroom::progress::{Progress, Silent};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Home, LONG, User, lives, pgdata, postmaster, record};
use crate::support::poll;

#[test]
fn the_last_one_out_stops_it() {
    let home = Home::take();
    let first = home.acquire();
    let second = home.acquire();
    assert_eq!(first.url(), second.url(), "one cluster for both");
    let pid = postmaster(home.path());
    drop(first);
    assert!(lives(pid), "the second user still has it");
    Database::connect(second.url()).unwrap();
    let mut third = User::start(home.path(), "hold", |_| ());
    assert_eq!(third.said(), second.url());
    second.leave().unwrap();
    assert!(lives(pid), "another process still has it");
    third.dismiss();
    assert!(third.ended().success());
    assert!(!lives(pid), "nobody has it");
    assert!(!home.path().join("owner.json").exists());
    assert!(url(home.path()).unwrap_err().to_string().contains("headroom postgres start"));
}

#[test]
fn stopping_does_not_wait_for_sessions() {
    let home = Home::take();
    let cluster = home.acquire();
    let idle: Vec<Database> = (0..10).map(|_| Database::connect(cluster.url()).unwrap()).collect();
    cluster.leave().unwrap();
    assert!(!home.path().join("owner.json").exists());
    drop(idle);
}

/// Reads until nobody holds the other side: a postmaster that had inherited it would.
fn drained(mut stream: impl Read + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || drop(std::io::copy(&mut stream, &mut std::io::sink())))
}

#[test]
fn a_kept_cluster_outlives_its_starter_and_holds_none_of_its_streams() {
    let home = Home::take();
    let mut starter = User::start(home.path(), "keep", |command| {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    let said = starter.said();
    let ends = [drained(starter.child.stdout.take().unwrap()), drained(starter.child.stderr.take().unwrap())];
    poll(LONG, "the end of its streams", || ends.iter().all(JoinHandle::is_finished).then_some(()));
    assert!(starter.ended().success());
    assert_eq!(url(home.path()).unwrap(), said);
    let pid = postmaster(home.path());
    let stat = procfs::process::Process::new(pid).unwrap().stat().unwrap();
    assert_eq!(stat.pgrp, pid, "Ctrl-C at its starter's terminal does not reach it");

    // A user that comes and goes does not end it either.
    let user = home.acquire();
    assert_eq!(user.url(), said);
    let in_use = stop(home.path(), &Interrupt::default()).unwrap();
    assert_eq!(in_use, StopOutcome::InUse { users: vec![std::process::id().to_string()] });
    assert!(lives(pid));
    drop(user);
    assert!(!lives(pid), "no longer kept: it ends with its last user");
    assert_eq!(stop(home.path(), &Interrupt::default()).unwrap(), StopOutcome::NotRunning);
}

#[test]
fn a_kept_cluster_survives_users_and_is_stopped_by_hand() {
    let home = Home::take();
    let mut options = home.options();
    options.keep = true;
    Cluster::acquire(&options, &Silent, &Interrupt::default()).unwrap().leave().unwrap();
    let pid = postmaster(home.path());
    home.acquire().leave().unwrap();
    assert!(lives(pid));
    assert_eq!(stop(home.path(), &Interrupt::default()).unwrap(), StopOutcome::Stopped);
    assert!(!lives(pid));
}

#[test]
fn what_a_killed_user_leaves_is_used_again() {
    let home = Home::take();
    let mut user = User::start(home.path(), "hold", |_| ());
    let said = user.said();
    let pid = postmaster(home.path());
    user.signal(Signal::SIGKILL);
    user.ended();
    assert!(lives(pid), "nobody was left to stop it");
    let next = home.acquire();
    assert_eq!(next.url(), said, "joined, not started anew");
    drop(next);
    assert!(!lives(pid));
    assert_eq!(home.path().join("users").read_dir().unwrap().count(), 0, "the dead user's file is swept");
}

#[test]
fn a_killed_postmaster_is_replaced() {
    let home = Home::take();
    let cluster = home.acquire();
    let pid = postmaster(home.path());
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    poll(LONG, "the postmaster's end", || (!lives(pid)).then_some(()));
    let others = Cluster::acquire(&home.options(), &Silent, &Interrupt::default()).unwrap_err().to_string();
    assert!(others.contains("is gone while 1 others use it"), "{others}");
    drop(cluster);
    let next = home.acquire();
    assert_ne!(postmaster(home.path()), pid);
    Database::connect(next.url()).unwrap();
}

/// A process that has nothing to do with Postgres.
struct Bystander(Child);

impl Bystander {
    fn start(uid: u32) -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if nix::unistd::geteuid().is_root() {
            command.uid(uid);
        }
        Self(command.spawn().expect("sleep starts"))
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_is_never_signalled_for_its_number_alone() {
    let home = Home::take();
    let running = home.acquire();
    let mut owner = record(home.path());
    drop(running);
    // Even one of the same user.
    let uid = owner["uid"].as_u64().and_then(|uid| uid.try_into().ok()).unwrap();
    let mut bystander = Bystander::start(uid);
    let pid = i32::try_from(bystander.0.id()).unwrap();
    let stat = procfs::process::Process::new(pid).unwrap().stat().unwrap();

    // The pid file of a crash, whose number belongs to somebody else now.
    let pid_file = pgdata(home.path()).join("postmaster.pid");
    fs::write(&pid_file, format!("{pid}\n/nowhere\n0\n1\n\n127.0.0.1\n1 1\nready\n")).unwrap();
    home.acquire().leave().unwrap();
    // One that was cut short.
    fs::write(&pid_file, "").unwrap();
    home.acquire().leave().unwrap();
    // A record that is right about everything but what the process is.
    owner["postmaster_pid"] = pid.into();
    owner["postmaster_start_ticks"] = stat.starttime.into();
    fs::write(home.path().join("owner.json"), owner.to_string()).unwrap();
    assert_eq!(stop(home.path(), &Interrupt::default()).unwrap(), StopOutcome::NotRunning);
    fs::write(home.path().join("owner.json"), owner.to_string()).unwrap();
    home.acquire().leave().unwrap();
    // And one that is no record at all.
    fs::write(home.path().join("owner.json"), "{").unwrap();
    home.acquire().leave().unwrap();

    assert!(bystander.0.try_wait().unwrap().is_none(), "it was left alone");
}

#[test]
fn a_postmaster_without_a_record_is_found_and_stopped() {
    let home = Home::take();
    let mut options = home.options();
    options.keep = true;
    Cluster::acquire(&options, &Silent, &Interrupt::default()).unwrap().leave().unwrap();
    let pid = postmaster(home.path());
    // As if its starter had been killed before it could write one.
    fs::remove_file(home.path().join("owner.json")).unwrap();
    let next = home.acquire();
    assert!(!lives(pid));
    assert_ne!(postmaster(home.path()), pid);
    drop(next);
}

#[test]
fn a_panic_in_mid_start_leaves_nothing_running() {
    /// Panics at a step whose text contains the word.
    struct Panics(&'static str);
    impl Progress for Panics {
        fn step(&self, text: &str) {
            assert!(!text.contains(self.0), "as the test wants");
        }
        fn note(&self, _: &str) {}
        fn advance(&self, _: std::time::Duration, _: std::time::Duration) {}
        fn finish(&self) {}
    }
    let home = Home::take();
    drop(home.acquire());
    fs::remove_dir_all(pgdata(home.path()).parent().unwrap()).unwrap();
    for word in ["creating", "starting", "seeding", "copying"] {
        let options = home.options();
        let outcome =
            std::panic::catch_unwind(|| Cluster::acquire(&options, &Panics(word), &Interrupt::default()).map(drop));
        assert!(outcome.is_err(), "it panicked while {word}");
        assert_eq!(stop(home.path(), &Interrupt::default()).unwrap(), StopOutcome::NotRunning, "while {word}");
        assert!(!home.path().join("owner.json").exists());
    }
    Database::connect(home.acquire().url()).unwrap();
}

#[test]
fn a_signal_in_mid_start_leaves_nothing_running() {
    let home = Home::take();
    drop(home.acquire());
    let data = pgdata(home.path());
    let data = data.parent().unwrap();
    fs::remove_dir_all(data).unwrap();
    let owner = home.path().join("owner.json");
    let unfinished = || {
        let names = home.path().read_dir().unwrap().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().contains(".new-"))
    };

    let mut during_initdb = User::start(home.path(), "hold", |_| ());
    poll(LONG, "initdb", || unfinished().then_some(()));
    during_initdb.signal(Signal::SIGTERM);
    assert_eq!(during_initdb.said(), "error: interrupted by signal 15");
    during_initdb.ended();
    assert!(!unfinished() && !owner.exists() && !data.exists());

    let mut during_seeding = User::start(home.path(), "hold", |_| ());
    poll(LONG, "the postmaster", || owner.exists().then_some(()));
    let pid = postmaster(home.path());
    during_seeding.signal(Signal::SIGINT);
    assert_eq!(during_seeding.said(), "error: interrupted by signal 2");
    during_seeding.ended();
    assert!(!lives(pid) && !owner.exists());
    Database::connect(home.acquire().url()).unwrap();
}

#[test]
fn a_start_that_was_killed_is_done_again() {
    let home = Home::take();
    drop(home.acquire());
    fs::remove_dir_all(pgdata(home.path()).parent().unwrap()).unwrap();
    let names = || -> Vec<String> {
        let entries = home.path().read_dir().unwrap().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };

    let mut during_initdb = User::start(home.path(), "hold", |_| ());
    poll(LONG, "initdb", || names().iter().any(|name| name.contains(".new-")).then_some(()));
    during_initdb.signal(Signal::SIGKILL);
    during_initdb.ended();
    let mut during_seeding = User::start(home.path(), "hold", |_| ());
    poll(LONG, "the postmaster", || home.path().join("owner.json").exists().then_some(()));
    assert!(names().iter().all(|name| !name.contains(".new-")), "the killed initdb's folder is swept: {:?}", names());
    during_seeding.signal(Signal::SIGKILL);
    during_seeding.ended();

    let cluster = home.acquire();
    assert_eq!(Database::connect(cluster.url()).unwrap().order_count().unwrap(), 200_000);
}

#[test]
fn a_postgres_that_answers_nobody_is_replaced() {
    let home = Home::take();
    let mut options = home.options();
    options.keep = true;
    Cluster::acquire(&options, &Silent, &Interrupt::default()).unwrap().leave().unwrap();
    let pid = postmaster(home.path());
    // Its password no longer opens it: for us that is a server that does not answer.
    let mut owner = record(home.path());
    owner["password"] = "wrong".into();
    fs::write(home.path().join("owner.json"), owner.to_string()).unwrap();
    let next = home.acquire();
    assert!(!lives(pid));
    Database::connect(next.url()).unwrap();
}
