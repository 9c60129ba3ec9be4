//! Who runs Postgres: this user, or an unprivileged one where this user is root, which Postgres refuses.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use nix::unistd::{User, getegid, geteuid};

/// Users root may hand the cluster to, best first: packages of Postgres bring `postgres`, every system has `nobody`.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// Search permission on a folder: the user's, the group's and everyone's bit.
const SEARCH_BITS: [u32; 3] = [0o100, 0o010, 0o001];

/// The user whose processes and files the cluster's are.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) name: String,
    /// Whether this process is root and becomes that user for Postgres.
    pub(super) drops_root: bool,
    /// Whether the user has an entry in the passwd database; `initdb` insists on one.
    pub(super) has_entry: bool,
}

impl Account {
    /// This user, or the unprivileged one root hands the cluster to.
    pub(super) fn current() -> anyhow::Result<Self> {
        let uid = geteuid();
        if !uid.is_root() {
            let entry = User::from_uid(uid).ok().flatten();
            return Ok(Self {
                uid: uid.as_raw(),
                gid: getegid().as_raw(),
                has_entry: entry.is_some(),
                name: entry.map_or_else(|| format!("uid {uid}"), |user| user.name),
                drops_root: false,
            });
        }
        for name in UNPRIVILEGED {
            let entry = User::from_name(name).with_context(|| format!("failed to look up user {name}"))?;
            if let Some(user) = entry.filter(|user| !user.uid.is_root()) {
                return Ok(Self {
                    uid: user.uid.as_raw(),
                    gid: user.gid.as_raw(),
                    name: user.name,
                    drops_root: true,
                    has_entry: true,
                });
            }
        }
        bail!(
            "postgres refuses to run as root and there is neither a user `postgres` nor `nobody` to run it as: \
             add one (`useradd --system postgres`) or run headroom as an ordinary user"
        )
    }

    /// A command that runs as this user, detached from the terminal: a process group of its own (Ctrl-C does not reach
    /// it), nothing to read, an environment that cannot change what Postgres does, and a working folder anyone can enter.
    ///
    /// std clears the supplementary groups itself when root becomes another user.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs([("LC_ALL", "C"), ("LANG", "C"), ("TZ", "UTC")]);
        // initdb starts postgres through a shell; a Postgres built by hand may need its library path.
        for name in ["PATH", "LD_LIBRARY_PATH"] {
            command.envs(std::env::var_os(name).map(|value| (OsStr::new(name), value)));
        }
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if self.drops_root {
            command.uid(self.uid).gid(self.gid);
        }
        command
    }

    /// Whether this user may walk through a folder, by its permission bits.
    pub(super) fn may_enter(&self, folder: &Metadata) -> bool {
        let class = match () {
            () if folder.uid() == self.uid => 0,
            () if folder.gid() == self.gid => 1,
            () => 2,
        };
        folder.mode() & SEARCH_BITS[class] != 0
    }

    /// Checks that this user can walk to `folder`, naming the first one on the way that it cannot enter.
    pub(super) fn check_can_reach(&self, folder: &Path) -> anyhow::Result<()> {
        let mut way: Vec<&Path> = folder.ancestors().collect();
        way.reverse();
        for step in way {
            let metadata = step.metadata().with_context(|| format!("failed to look at {}", step.display()))?;
            if !self.may_enter(&metadata) {
                bail!(
                    "postgres runs as user {}, which cannot enter {}: set HEADROOM_HOME to a folder it can reach, \
                     such as one under /var/tmp",
                    self.name,
                    step.display()
                );
            }
        }
        Ok(())
    }
}
