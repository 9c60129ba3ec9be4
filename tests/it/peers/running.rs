//! Start, readiness, death, stop, sweep.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use headroom::host::ProcessId;
use headroom::interrupt::Interrupt;
use headroom::peer::{Launch, Running, sweep};

use super::servers::{actor, answer, launch, living_in, poll, spec};

/// A `family`: the server, its shell, and five sleeps of which two hang on a shell of their own.
const FAMILY: usize = 7;

fn start(folder: &Path, role: &str) -> anyhow::Result<Running> {
    Running::start(&spec(folder, role), &launch(folder), &Interrupt::default())
}

fn start_briefly(folder: &Path, role: &str) -> String {
    let launch = Launch { ready_timeout: Duration::from_millis(300), ..launch(folder) };
    let started = Running::start(&spec(folder, role), &launch, &Interrupt::default());
    format!("{:#}", started.expect_err("it never gets ready"))
}

/// Entries of servers that are recorded as running.
fn leases(folder: &Path) -> usize {
    fs::read_dir(folder.join("servers")).map_or(0, Iterator::count)
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn a_server_is_started_watched_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(folder.path(), "ok").unwrap();
    assert_eq!(running.death(), None);
    running.check_port().unwrap();
    assert!(running.address().ip().is_loopback());
    let root = ProcessId::of(running.pid()).unwrap();
    assert!(root.is_alive());
    running.stop().unwrap();
    assert!(!root.is_alive());
    assert_eq!(leases(folder.path()), 0);
}

#[test]
fn its_environment_holds_what_the_catalogue_says_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), "ok").unwrap();
    let environ = procfs::process::Process::new(running.pid()).unwrap().environ().unwrap();
    let value = |name: &str| environ.get(std::ffi::OsStr::new(name)).and_then(|value| value.to_str());
    assert_eq!(value("NODE_ENV"), Some("production"));
    assert_eq!(value("HOST"), Some("127.0.0.1"));
    assert_eq!(value("PORT").unwrap(), running.address().port().to_string());
    assert_eq!(value("DATABASE_URL"), Some("postgres://nobody@127.0.0.1:1/none"));
    assert_eq!(value("DATABASE_POOL"), Some("10"));
    assert_eq!(value("JWT_SECRET"), Some("secret"));
    // Cargo sets this for every test: it stands for whatever else the person running it has exported.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert_eq!(value("CARGO_MANIFEST_DIR"), None);
}

#[test]
fn a_server_that_exits_at_once_is_reported_with_its_status_and_last_lines() {
    let folder = tempfile::tempdir().unwrap();
    // With patience of half a minute: only a report that does not wait for it comes before the test's own end.
    let error = format!("{:#}", start(folder.path(), "exit 3").unwrap_err());
    assert!(error.contains("server exited with status 3 before it was ready"), "{error}");
    assert!(error.ends_with("reading the configuration | cannot open the frobnicator"), "{error}");
    assert_eq!(leases(folder.path()), 0);
}

#[test]
fn a_server_that_never_listens_is_reported_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let error = start_briefly(folder.path(), "silent");
    assert!(error.contains("not ready on the asked port") && error.contains("nothing listens there"), "{error}");
}

#[test]
fn a_server_that_is_never_healthy_is_reported_with_its_last_status() {
    let folder = tempfile::tempdir().unwrap();
    let error = start_briefly(folder.path(), "503");
    assert!(error.contains("GET /health answered 503"), "{error}");
}

#[test]
fn a_server_on_another_port_is_reported_with_where_it_listens() {
    let folder = tempfile::tempdir().unwrap();
    let error = start_briefly(folder.path(), "elsewhere");
    assert!(error.contains("not ready on the asked port") && error.contains("it listens on 127.0.0.1:"), "{error}");
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = spec(folder.path(), "ok");
    spec.command = vec!["./no-such-server".to_owned()];
    let error = Running::start(&spec, &launch(folder.path()), &Interrupt::default()).unwrap_err();
    assert!(format!("{error:#}").contains("./no-such-server cannot be run"), "{error:#}");
    assert_eq!(leases(folder.path()), 0);
}

#[test]
fn a_port_that_is_taken_is_reported_and_its_holder_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = holder.local_addr().unwrap().port();
    std::thread::spawn(move || answer(&holder, "200 OK"));
    let spec = spec(folder.path(), "ok");
    let error = Running::start_on(&spec, &launch(folder.path()), port, &Interrupt::default()).unwrap_err();
    assert!(format!("{error:#}").contains(&format!("port {port} is held by another process")), "{error:#}");
}

#[test]
fn another_process_that_answers_on_the_port_is_not_taken_for_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (port, spec) = (free_port(), spec(folder.path(), "silent"));
    let error = std::thread::scope(|scope| {
        let starting =
            scope.spawn(|| Running::start_on(&spec, &launch(folder.path()), port, &Interrupt::default()).unwrap_err());
        // The server is started when it is recorded; from then on somebody else answers for it.
        poll("the start of the server", || (leases(folder.path()) > 0).then_some(()));
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        std::thread::spawn(move || answer(&other, "200 OK"));
        starting.join().unwrap()
    });
    assert!(format!("{error:#}").contains(&format!("port {port} is held by another process")), "{error:#}");
}

#[test]
fn death_is_seen_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = start(folder.path(), "ok").unwrap();
    let pid = nix::unistd::Pid::from_raw(running.pid());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).unwrap();
    let why = poll("its death", || running.death());
    assert!(why.starts_with("was killed by SIGKILL"), "{why}");
    assert_eq!(running.death(), Some(why), "asked twice");
    assert!(running.check_port().is_err());
    running.stop().unwrap();
}

#[test]
fn stop_ends_the_whole_family() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut foreign = Command::new("sleep").arg("300").current_dir(other.path()).spawn().unwrap();
    let running = start(folder.path(), "family").unwrap();
    poll("the start of the family", || (living_in(folder.path()).len() == FAMILY).then_some(()));
    running.stop().unwrap();
    assert_eq!(living_in(folder.path()), Vec::<i32>::new());
    assert!(foreign.try_wait().unwrap().is_none(), "a process of somebody else was ended");
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[test]
fn drop_ends_the_whole_family() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(folder.path(), "family").unwrap();
    poll("the start of the family", || (living_in(folder.path()).len() == FAMILY).then_some(()));
    drop(running);
    assert_eq!(living_in(folder.path()), Vec::<i32>::new());
    assert_eq!(leases(folder.path()), 0);
}

#[test]
fn what_a_killed_run_left_is_ended_and_nothing_else() {
    let (folder, mine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut owner = actor("owner", folder.path()).stdout(Stdio::null()).spawn().unwrap();
    poll("the start of the server", || {
        fs::read_to_string(folder.path().join("root")).ok().filter(|pid| !pid.is_empty())
    });
    poll("the start of the family", || (living_in(folder.path()).len() == FAMILY).then_some(()));
    assert_eq!(sweep(folder.path()), Vec::<String>::new(), "its owner lives");

    owner.kill().unwrap();
    owner.wait().unwrap();
    // Its guard ends the group; what has left the group is for the sweep.
    poll("the end of the group", || (living_in(folder.path()).len() == 1).then_some(()));
    // A server of this process, recorded in the same folder, is not to be touched.
    let mut running = Running::start(
        &spec(mine.path(), "ok"),
        &Launch { state: folder.path(), ..launch(mine.path()) },
        &Interrupt::default(),
    )
    .unwrap();
    let ended = sweep(folder.path());
    assert_eq!(living_in(folder.path()), Vec::<i32>::new());
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert!(ended[0].contains("left by a run that was killed"), "{ended:?}");
    assert_eq!(running.death(), None);
    assert_eq!(leases(folder.path()), 1);
    running.stop().unwrap();
    assert_eq!(sweep(folder.path()), Vec::<String>::new());
}

#[test]
fn a_record_whose_process_number_is_used_again_ends_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut stranger = Command::new("sleep").arg("300").spawn().unwrap();
    let now = ProcessId::of(i32::try_from(stranger.id()).unwrap()).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    // The owner and the root have the stranger's number and started before it.
    let old = format!(r#"{{"pid":{},"start_ticks":{}}}"#, now.pid, now.start_ticks - 1);
    let record = format!(r#"{{"boot":"{}","server":"server","token":"0123","owner":{old},"root":{old}}}"#, boot.trim());
    fs::create_dir(folder.path().join("servers")).unwrap();
    fs::write(folder.path().join("servers/0123.json"), record).unwrap();
    assert_eq!(sweep(folder.path()), Vec::<String>::new());
    assert_eq!(leases(folder.path()), 0, "the record is done with");
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
