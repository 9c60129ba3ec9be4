//! `peers.toml`: what stands in it, and what is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::placeholder;

/// The format of `peers.toml` that this program reads.
const VERSION: u32 = 1;

/// Variables that the harness sets itself: an entry that set them too would measure another set-up than the record says.
const RESERVED: [&str; 6] =
    ["HOST", "PORT", "DATABASE_URL", "DATABASE_POOL", "JWT_SECRET", super::lease::TOKEN_VARIABLE];

/// Every server the harness knows.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// In the order of the file.
    pub servers: Vec<Spec>,
}

/// One `[[peer]]` entry: everything the harness knows of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// `express-node`: lower case letters, digits and dashes; unique. Names the server in flags, records and file names.
    pub name: String,
    /// How tables call it.
    pub label: String,
    /// What kind of code it is.
    pub class: Class,
    /// Whether it is ours: the ratios of the others are taken against the native rows.
    pub native: bool,
    /// `Node`, `Bun`, `Rust`.
    pub runtime: String,
    /// `Express`.
    pub framework: String,
    /// How SQL reaches Postgres, in words.
    pub driver: String,
    /// Whether statements are parsed once a connection, not once a request.
    pub prepared: bool,
    /// Whether several queries are in flight on one connection.
    pub pipelined: bool,
    /// How many cores it is made to use.
    pub cores: Cores,
    /// How many processes answer requests.
    pub processes: u32,
    /// Program and arguments, started without a shell, with placeholders.
    pub command: Vec<String>,
    /// Where it is started, from the `bench` folder; that folder itself unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Further variables of its environment, with placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Run once by [`super::build`] before the server is measured. Empty where nothing has to be built.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build: Vec<String>,
    /// What to look up for the record, by the name it gets there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, VersionSource>,
    /// The code that is measured, from the `bench` folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PathBuf>,
    /// Its description, from the `bench` folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readme: Option<PathBuf>,
}

/// What kind of code a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Ours, tuned: what the others are compared with.
    Reference,
    /// As the documentation of its framework shows.
    Idiomatic,
    /// As an expert would who knows the bench.
    Tuned,
    /// No framework: the runtime's own HTTP server.
    Engine,
}

/// How many cores a server is made to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    /// One thread runs its code.
    One,
    /// As many as it may.
    All,
}

/// Where a version is looked up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum VersionSource {
    /// A package in the lockfile of the peers.
    Package(String),
    /// A program whose first line of output holds the version, with placeholders.
    Command(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default)]
    peer: Vec<Spanned<Spec>>,
}

impl Catalogue {
    /// Reads and checks `bench/peers.toml`.
    ///
    /// # Errors
    /// Names the file, and the line where one is at fault.
    pub fn load(bench: &Path) -> anyhow::Result<Self> {
        let path = bench.join("peers.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let at = |span: Option<Range<usize>>| match span {
            Some(span) => format!("{}:{}", path.display(), line_of(&text, span.start)),
            None => path.display().to_string(),
        };
        let file: File = toml::from_str(&text)
            .map_err(|error| anyhow::anyhow!("{}: {}", at(error.span()), one_line(error.message())))?;
        if file.version != VERSION {
            bail!("{}: version {} is not known, this program reads version {VERSION}", path.display(), file.version);
        }
        if file.peer.is_empty() {
            bail!("{}: no [[peer]] entry", path.display());
        }
        let mut names = BTreeSet::new();
        for entry in &file.peer {
            let spec = entry.get_ref();
            check(spec, bench).with_context(|| format!("{}: peer {:?}", at(Some(entry.span())), spec.name))?;
            if !names.insert(spec.name.clone()) {
                bail!("{}: peer {:?} stands there twice", at(Some(entry.span())), spec.name);
            }
        }
        Ok(Self { servers: file.peer.into_iter().map(Spanned::into_inner).collect() })
    }

    /// By name.
    ///
    /// # Errors
    /// Lists the names there are.
    pub fn find(&self, name: &str) -> anyhow::Result<&Spec> {
        self.servers.iter().find(|spec| spec.name == name).with_context(|| {
            let names: Vec<&str> = self.servers.iter().map(|spec| spec.name.as_str()).collect();
            format!("no server is named {name:?}: use one of {}", names.join(", "))
        })
    }
}

/// What the types cannot say.
fn check(spec: &Spec, bench: &Path) -> anyhow::Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if spec.name.is_empty() || !spec.name.bytes().all(plain) {
        bail!("a name is made of lower case letters, digits and dashes");
    }
    if spec.command.first().is_none_or(String::is_empty) {
        bail!("command is empty");
    }
    if spec.processes == 0 {
        bail!("processes is 0");
    }
    if let Some(name) = spec.env.keys().find(|name| RESERVED.contains(&name.as_str())) {
        bail!("env sets {name}, which the harness sets itself");
    }
    for text in &spec.command {
        placeholder::check(text, &placeholder::COMMAND)?;
    }
    for text in spec.env.values() {
        placeholder::check(text, &placeholder::ENV)?;
    }
    let commands = spec.versions.values().filter_map(|source| match source {
        VersionSource::Command(command) => Some(command),
        VersionSource::Package(_) => None,
    });
    for text in commands.flatten().chain(&spec.build) {
        placeholder::check(text, &placeholder::TOOL)?;
    }
    for path in [&spec.source, &spec.readme, &spec.cwd].into_iter().flatten() {
        if !bench.join(path).exists() {
            bail!("{} does not exist in {}", path.display(), bench.display());
        }
    }
    Ok(())
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
