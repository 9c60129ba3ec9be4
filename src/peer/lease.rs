//! What a run leaves on disk about the servers it has started, so that the next one can end what a killed one left.
//!
//! Each server has a random token in its environment, which everything it starts inherits, and a file that names the
//! token and the process that started it. [`sweep`] ends only processes that carry a token whose owner is dead.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::signal::Signal;
use rand::RngExt as _;
use serde::{Deserialize, Serialize};

use super::member::{carriers, signal};
use crate::host::ProcessId;

/// The variable that carries the token.
pub(super) const TOKEN_VARIABLE: &str = "HEADROOM_RUN";
/// How long a killed process may take to be gone.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// A server's entry on disk. Removed by [`Lease::release`], when nothing of the server is left.
#[derive(Debug)]
pub(super) struct Lease {
    path: PathBuf,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    /// Process ids mean nothing after the next boot.
    boot: String,
    /// The server's name in `peers.toml`.
    server: String,
    token: String,
    /// The process that must end it.
    owner: ProcessId,
    /// The root of the server's processes, known once it is started.
    root: Option<ProcessId>,
}

impl Lease {
    /// Written before the server is started: whatever happens next, its token is known.
    pub(super) fn take(state: &Path, server: &str) -> anyhow::Result<Self> {
        let token = format!("{:032x}", rand::rng().random::<u128>());
        let folder = folder(state);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let path = folder.join(format!("{token}.json"));
        let content = Content { boot: boot(), server: server.to_owned(), token, owner: ProcessId::this(), root: None };
        let lease = Self { path, content };
        lease.write()?;
        Ok(lease)
    }

    pub(super) fn token(&self) -> &str {
        &self.content.token
    }

    pub(super) fn started(&mut self, root: ProcessId) -> anyhow::Result<()> {
        self.content.root = Some(root);
        self.write()
    }

    pub(super) fn release(&self) {
        // A file that stays is swept later: its token is carried by nothing.
        let _ = fs::remove_file(&self.path);
    }

    /// Whole or not at all: a reader never sees half a file.
    fn write(&self) -> anyhow::Result<()> {
        let draft = self.path.with_extension("draft");
        let json = serde_json::to_vec(&self.content).context("cannot write a run file")?;
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
            file.write_all(&json)?;
            fs::rename(&draft, &self.path)
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Ends what earlier runs that were killed have left running; one line for each process ended.
///
/// Only processes that carry a token recorded in `state`, and only where the process that started them is dead.
pub fn sweep(state: &Path) -> Vec<String> {
    let mut ended = Vec::new();
    for entry in fs::read_dir(folder(state)).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(content) = read(&path) else { continue };
        if content.boot == boot() {
            if content.owner.is_alive() {
                continue;
            }
            ended.extend(end(&content));
        }
        let _ = fs::remove_file(path);
    }
    ended
}

fn end(content: &Content) -> Vec<String> {
    let mut ended = Vec::new();
    let deadline = Instant::now() + KILL_TIMEOUT;
    loop {
        // The root by its own record too: it may have cleaned its environment.
        let mut left = carriers(&content.token);
        left.extend(content.root.filter(|root| root.is_alive() && !left.contains(root)));
        if left.is_empty() || Instant::now() >= deadline {
            return ended;
        }
        for process in left {
            let line = format!("ended process {} of {}, left by a run that was killed", process.pid, content.server);
            signal(process, Signal::SIGKILL);
            if !ended.contains(&line) {
                ended.push(line);
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// `None` for what is no run file, such as the draft of one that is being written.
fn read(path: &Path) -> Option<Content> {
    if path.extension()? != "json" {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn folder(state: &Path) -> PathBuf {
    state.join("servers")
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()).unwrap_or_default()
}
