//! Servers that misbehave in one way each: this test binary, started again with a role.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use headroom::interrupt::Interrupt;
use headroom::peer::{Catalogue, Launch, Running, Spec, install};
use headroom::progress::Silent;

/// Says which server, or other process, this binary is to be.
pub(super) const ROLE: &str = "HEADROOM_TEST_ROLE";
/// A folder for the roles that need one.
pub(super) const FOLDER: &str = "HEADROOM_TEST_FOLDER";
/// What a test waits for at most. Reached only by a failure: Node starts in a second, and in half a minute on a crowded host.
pub(super) const PATIENCE: Duration = Duration::from_mins(2);

/// No test: what the processes started with a role do.
#[test]
fn act() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.as_str() {
        "ok" => serve(port(), "200 OK"),
        "503" => serve(port(), "503 Service Unavailable"),
        "elsewhere" => serve(0, "200 OK"),
        "silent" => std::thread::sleep(Duration::MAX),
        "exit 3" => {
            eprintln!("reading the configuration\ncannot open the frobnicator");
            std::process::exit(3);
        }
        "family" => {
            // Grandchildren in the group, out of the group and deaf to SIGTERM, all named in a file.
            let script = "sleep 300 & setsid sleep 300 & sh -c 'trap \"\" TERM; sleep 300 & sleep 300' & wait";
            let script = format!("cd {} && {script}", folder().display());
            let mut shell = Command::new("sh").args(["-c", &script]).spawn().unwrap();
            serve(port(), "200 OK");
            shell.wait().unwrap();
        }
        "owner" => {
            let folder = folder();
            let spec = spec(&folder, "family");
            let running = Running::start(&spec, &launch(&folder), &Interrupt::default()).unwrap();
            std::fs::write(folder.join("root"), running.pid().to_string()).unwrap();
            std::thread::sleep(Duration::MAX);
        }
        "install" => {
            let interrupt = Interrupt::listen().unwrap();
            match install(&folder(), &Silent, &interrupt) {
                Ok(()) => println!("installed"),
                Err(error) => println!("failed: {error:#}"),
            }
        }
        other => panic!("no role {other:?}"),
    }
}

fn port() -> u16 {
    std::env::var("PORT").unwrap().parse().unwrap()
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).unwrap().into()
}

fn serve(port: u16, status: &str) {
    answer(&TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap(), status);
}

/// Answers every connection with this status, for ever.
pub(super) fn answer(listener: &TcpListener, status: &str) {
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes());
    }
}

/// This binary in a role, for processes that are no servers.
pub(super) fn actor(role: &str, folder: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "peers::servers::act", "--nocapture"]).env(ROLE, role).env(FOLDER, folder);
    command
}

/// The entry of a server in a role: `{headroom}` is this test binary.
pub(super) fn spec(folder: &Path, role: &str) -> Spec {
    let entry = format!(
        "{}\ncommand = [\"{{headroom}}\", \"--exact\", \"peers::servers::act\", \"--nocapture\"]\n\
         env = {{ {ROLE} = \"{role}\", {FOLDER} = \"{}\" }}\n",
        entry("server"),
        folder.display()
    );
    std::fs::write(folder.join("peers.toml"), format!("version = 1\n{entry}")).unwrap();
    Catalogue::load(folder).unwrap().find("server").unwrap().clone()
}

/// The fields that every entry needs, without its command.
pub(super) fn entry(name: &str) -> String {
    format!(
        "[[peer]]\nname = \"{name}\"\nlabel = \"Server\"\nclass = \"idiomatic\"\nnative = false\nruntime = \"Rust\"\n\
         framework = \"none\"\ndriver = \"none\"\nprepared = false\npipelined = false\ncores = \"one\"\nprocesses = 1"
    )
}

pub(super) fn launch(folder: &Path) -> Launch<'_> {
    Launch {
        bench: folder,
        state: folder,
        database_url: "postgres://nobody@127.0.0.1:1/none",
        jwt_secret: "secret",
        log: folder.join("log"),
        ready_timeout: PATIENCE,
    }
}

/// A process that ends with the test, however that ends.
pub(super) struct Ending(pub(super) std::process::Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks until there is something to see.
pub(super) fn poll<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// Live processes whose working folder is this one: what a `family` has started.
pub(super) fn living_in(folder: &Path) -> Vec<i32> {
    let folder = folder.canonicalize().unwrap();
    let here = |process: procfs::process::Process| {
        let live = !matches!(process.stat().ok()?.state, 'Z' | 'X');
        (live && process.cwd().ok()? == folder).then_some(process.pid())
    };
    procfs::process::all_processes().unwrap().filter_map(|process| here(process.ok()?)).collect()
}
