//! What can be asked of a run, and the settings that come of it.

use std::collections::HashSet;
use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use jiff::Timestamp;

use super::Suite;
use crate::contract::Route;
use crate::record::{Limits, RUN_FILE, Settings};
use crate::setup;

/// What was asked for. Empty or `None` is the suite's value, else the profile's.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Bench folder, database, binaries.
    pub setup: setup::Options,
    /// Servers, routes and conditions by name: `bench/suites/NAME.toml`.
    pub suite: Option<String>,
    /// How long.
    pub profile: Option<Profile>,
    /// Names out of `peers.toml`.
    pub servers: Vec<String>,
    /// Any of the seven.
    pub routes: Vec<Route>,
    /// Of the driver.
    pub connections: Vec<u32>,
    /// Every cell once each.
    pub rounds: Option<u32>,
    /// Before every window.
    pub warmup: Option<Duration>,
    /// Measured.
    pub window: Option<Duration>,
    /// Windows a cell may have until one is valid.
    pub max_attempts: Option<u32>,
    /// Share of the host that others may use.
    pub max_foreign_cpu_share: Option<f64>,
    /// Share of the host that the hypervisor may take.
    pub max_steal_share: Option<f64>,
    /// Send only the contract's examples.
    pub fixed: bool,
    /// Folder of the record; default `results/<UTC time>-<profile>`.
    pub out: Option<PathBuf>,
    /// Folder of an interrupted record: its settings hold, all of the above but `setup` is ignored.
    pub resume: Option<PathBuf>,
}

/// How long a run measures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// A first answer in minutes: one round.
    #[default]
    Quick,
    /// Ten rounds of short windows: enough for verdicts.
    Standard,
    /// As the write-ups published: three connection counts, long windows.
    Paper,
}

impl Profile {
    /// As typed and recorded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Paper => "paper",
        }
    }

    fn rounds(self) -> u32 {
        match self {
            Self::Quick => 1,
            Self::Standard => 10,
            Self::Paper => 3,
        }
    }

    fn connections(self) -> &'static [u32] {
        match self {
            Self::Quick | Self::Standard => &[100],
            Self::Paper => &[10, 100, 500],
        }
    }

    /// First warm-up of a process, warm-up, window.
    fn seconds(self) -> [f64; 3] {
        match self {
            Self::Quick => [2.0, 2.0, 4.0],
            // Short warm-ups suffice once the first one has compiled what is hot.
            Self::Standard => [5.0, 1.0, 3.0],
            Self::Paper => [5.0, 5.0, 30.0],
        }
    }
}

/// The suite of a run that names no server.
const DEFAULT_SUITE: &str = "default";
/// Windows a cell may have: a quiet host needs one, a shared one takes CPU away in bursts of some seconds.
const MAX_ATTEMPTS: u32 = 3;
/// More attempts than these are selection, not measurement.
const MOST_ATTEMPTS: u32 = 10;
const MOST_ROUNDS: u32 = 1_000;
/// The driver opens them from one address to one port: well below the ports there are.
const MOST_CONNECTIONS: u32 = 10_000;
/// A day: longer is a mistake of units.
const LONGEST: f64 = 86_400.0;
/// Lets the server finish what the warm-up started (compiling, collecting garbage), short of any keep-alive timeout.
const PAUSE_S: f64 = 0.2;
/// The same for everyone, so that every record asks the same questions.
const SEED: u64 = 1;
/// Whole bodies are compared this often: enough for thousands a window, cheap enough not to be seen.
const CHECK_EVERY: u32 = 64;
/// One thread serves more than any peer asks for; the verdict says so where it does not.
const DRIVER_THREADS: u32 = 1;
const MAX_FOREIGN_CPU_SHARE: f64 = 0.05;
const MAX_STEAL_SHARE: f64 = 0.02;
/// The contract's bound on a server, however many processes it runs.
const MAX_POSTGRES_CONNECTIONS: u32 = 10;

impl Options {
    /// The settings of a new run and the names of its servers.
    ///
    /// # Errors
    /// Names the value that cannot be measured.
    pub fn resolve(&self, bench: &Path) -> anyhow::Result<(Settings, Vec<String>)> {
        let suite = match &self.suite {
            Some(name) => Suite::load(bench, name)?,
            None if self.servers.is_empty() => Suite::load(bench, DEFAULT_SUITE)?,
            None => Suite::default(),
        };
        let profile = self.profile.or(suite.profile).unwrap_or_default();
        let [first_warmup_s, warmup_s, window_s] = profile.seconds();
        let asked = |asked: Option<Duration>, suite: Option<f64>| asked.map(|d| d.as_secs_f64()).or(suite);
        let asked_warmup = asked(self.warmup, suite.warmup_s);
        // Whatever is asked for, the first warm-up is never the shorter one.
        let warmup = asked_warmup.unwrap_or(warmup_s);
        let settings = Settings {
            profile: profile.name().to_owned(),
            suite: self.suite.clone(),
            routes: first_filled(&self.routes, &suite.routes, &Route::ALL)
                .iter()
                .map(|r| r.name().to_owned())
                .collect(),
            connections: first_filled(&self.connections, &suite.connections, profile.connections()).to_vec(),
            rounds: self.rounds.or(suite.rounds).unwrap_or(profile.rounds()),
            warmup_s: warmup,
            first_warmup_s: if asked_warmup.is_some() { warmup } else { first_warmup_s },
            window_s: asked(self.window, suite.window_s).unwrap_or(window_s),
            pause_s: PAUSE_S,
            max_attempts: self.max_attempts.or(suite.max_attempts).unwrap_or(MAX_ATTEMPTS),
            driver_threads: DRIVER_THREADS,
            seed: (!self.fixed && !suite.fixed_requests).then_some(SEED),
            check_every: CHECK_EVERY,
            limits: Limits {
                max_foreign_cpu_share: self
                    .max_foreign_cpu_share
                    .or(suite.max_foreign_cpu_share)
                    .unwrap_or(MAX_FOREIGN_CPU_SHARE),
                max_steal_share: self.max_steal_share.or(suite.max_steal_share).unwrap_or(MAX_STEAL_SHARE),
                max_postgres_connections: MAX_POSTGRES_CONNECTIONS,
            },
            steps: suite.steps_between(&self.servers)?,
        };
        let servers = first_filled(&self.servers, &suite.servers, &[]).to_vec();
        check(&settings, &servers)?;
        Ok((settings, servers))
    }

    /// Where the record is or will be; refuses a folder that holds one already before anything is set up.
    pub(super) fn folder(&self, profile: &str) -> anyhow::Result<PathBuf> {
        if let Some(resume) = &self.resume {
            return Ok(resume.clone());
        }
        let here = std::env::current_dir().context("the current folder cannot be read")?;
        let dir = self.out.clone().unwrap_or_else(|| results_folder(&here, profile, Timestamp::now()));
        if dir.join(RUN_FILE).exists() {
            bail!("{} holds a record already: choose another folder, or continue it with --resume", dir.display());
        }
        Ok(dir)
    }
}

/// `results/20260102T030405Z-quick` under a folder.
pub fn results_folder(under: &Path, profile: &str, at: Timestamp) -> PathBuf {
    under.join("results").join(format!("{}-{profile}", at.strftime("%Y%m%dT%H%M%SZ")))
}

fn first_filled<'a, T>(asked: &'a [T], suite: &'a [T], default: &'a [T]) -> &'a [T] {
    [asked, suite].into_iter().find(|list| !list.is_empty()).unwrap_or(default)
}

fn check(settings: &Settings, servers: &[String]) -> anyhow::Result<()> {
    once("server", servers)?;
    once("route", &settings.routes)?;
    once("number of connections", &settings.connections)?;
    for &connections in &settings.connections {
        within("connections", connections, 1, MOST_CONNECTIONS)?;
    }
    within("rounds", settings.rounds, 1, MOST_ROUNDS)?;
    within("attempts", settings.max_attempts, 1, MOST_ATTEMPTS)?;
    for (what, seconds, least) in [("window", settings.window_s, 0.1), ("warm-up", settings.warmup_s, 0.0)] {
        if !(least..=LONGEST).contains(&seconds) {
            bail!("a {what} of {seconds} s cannot be measured: use {least} to {LONGEST} s");
        }
    }
    let limits = &settings.limits;
    for (what, share) in [("foreign CPU", limits.max_foreign_cpu_share), ("steal", limits.max_steal_share)] {
        if !(0.0..=1.0).contains(&share) {
            bail!("{share} is no share of the host for {what}: use 0 to 1, such as 0.05");
        }
    }
    Ok(())
}

fn once<T: Hash + Eq + std::fmt::Display>(what: &str, items: &[T]) -> anyhow::Result<()> {
    let mut seen = HashSet::new();
    match items.iter().find(|item| !seen.insert(*item)) {
        Some(twice) => bail!("{what} {twice} is named twice: name each once"),
        None => Ok(()),
    }
}

fn within(what: &str, value: u32, least: u32, most: u32) -> anyhow::Result<()> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        bail!("{value} {what} cannot be measured: use {least} to {most}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(options: &Options) -> anyhow::Result<(Settings, Vec<String>)> {
        options.resolve(&Path::new(env!("CARGO_MANIFEST_DIR")).join("bench"))
    }

    #[test]
    fn nothing_asked_for_is_the_quick_profile_of_the_default_servers() {
        let (settings, servers) = resolve(&Options::default()).unwrap();
        assert_eq!(servers.len(), 6);
        assert_eq!((settings.profile.as_str(), settings.rounds, settings.max_attempts), ("quick", 1, 3));
        assert_eq!((settings.warmup_s, settings.window_s, settings.first_warmup_s), (2.0, 4.0, 2.0));
        assert_eq!((settings.routes.len(), settings.connections, settings.seed), (7, vec![100], Some(1)));
        assert_eq!((settings.limits.max_foreign_cpu_share, settings.limits.max_steal_share), (0.05, 0.02));
    }

    #[test]
    fn profiles_are_as_documented() {
        let of = |profile| resolve(&Options { profile: Some(profile), ..Options::default() }).unwrap().0;
        let standard = of(Profile::Standard);
        assert_eq!(
            (standard.rounds, standard.first_warmup_s, standard.warmup_s, standard.window_s),
            (10, 5.0, 1.0, 3.0)
        );
        let paper = of(Profile::Paper);
        assert_eq!((paper.rounds, paper.warmup_s, paper.window_s), (3, 5.0, 30.0));
        assert_eq!(paper.connections, [10, 100, 500]);
    }

    #[test]
    fn what_is_asked_for_goes_before_the_profile() {
        let options = Options {
            servers: vec!["mine".to_owned()],
            routes: vec![Route::User],
            connections: vec![7],
            rounds: Some(4),
            warmup: Some(Duration::from_millis(500)),
            window: Some(Duration::from_secs(9)),
            fixed: true,
            ..Options::default()
        };
        let (settings, servers) = resolve(&options).unwrap();
        assert_eq!((servers, settings.routes), (vec!["mine".to_owned()], vec!["user".to_owned()]));
        assert_eq!((settings.connections, settings.rounds, settings.seed), (vec![7], 4, None));
        assert_eq!((settings.warmup_s, settings.first_warmup_s, settings.window_s), (0.5, 0.5, 9.0));
    }

    #[test]
    fn what_cannot_be_measured_is_refused_in_one_line() {
        let refused = |options: Options| resolve(&options).unwrap_err().to_string();
        let default = Options::default;
        for (options, expected) in [
            (Options { rounds: Some(0), ..default() }, "0 rounds"),
            (Options { connections: vec![0], ..default() }, "0 connections"),
            (Options { connections: vec![10, 10], ..default() }, "connections 10 is named twice"),
            (Options { routes: vec![Route::Me, Route::Me], ..default() }, "route me is named twice"),
            (Options { window: Some(Duration::ZERO), ..default() }, "a window of 0 s"),
            (Options { max_attempts: Some(11), ..default() }, "11 attempts"),
            (Options { max_foreign_cpu_share: Some(5.0), ..default() }, "5 is no share"),
            (Options { max_steal_share: Some(f64::NAN), ..default() }, "NaN is no share"),
        ] {
            let error = refused(options);
            assert!(error.contains(expected) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_folder_that_holds_a_record_is_refused_early() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { out: Some(dir.path().to_owned()), ..Options::default() };
        assert_eq!(options.folder("quick").unwrap(), dir.path());
        std::fs::write(dir.path().join(RUN_FILE), "{}").unwrap();
        assert!(options.folder("quick").unwrap_err().to_string().contains("--resume"));
    }

    #[test]
    fn the_default_folder_sorts_by_time() {
        let at = Timestamp::from_second(1_767_323_045).unwrap();
        assert_eq!(results_folder(Path::new("/x"), "quick", at), Path::new("/x/results/20260102T030405Z-quick"));
    }
}
