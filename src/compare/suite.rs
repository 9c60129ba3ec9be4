//! `bench/suites/*.toml`: which servers, routes and connections, under which conditions.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::Profile;
use crate::contract::Route;
use crate::record::Step;

/// One suite. What it leaves out is the profile's.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Suite {
    /// One line for people.
    pub title: String,
    /// Where the conditions come from, and what could not be kept.
    pub notes: Vec<String>,
    /// Names out of `peers.toml`.
    pub servers: Vec<String>,
    /// Any of the seven.
    pub routes: Vec<Route>,
    /// Of the driver.
    pub connections: Vec<u32>,
    /// How long, where the rest of the file does not say.
    pub profile: Option<Profile>,
    /// Every cell once each.
    pub rounds: Option<u32>,
    /// Before every window.
    pub warmup_s: Option<f64>,
    /// Measured.
    pub window_s: Option<f64>,
    /// Windows a cell may have until one is valid.
    pub max_attempts: Option<u32>,
    /// Share of the host that others may use.
    pub max_foreign_cpu_share: Option<f64>,
    /// Share of the host that the hypervisor may take.
    pub max_steal_share: Option<f64>,
    /// Only the contract's examples are sent, as the write-ups did.
    pub fixed_requests: bool,
    /// `[[step]]`: servers to be compared with each other, in reading order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
}

impl Suite {
    /// Reads `suites/NAME.toml`.
    ///
    /// # Errors
    /// Lists the suites there are, or names the line that cannot be read.
    pub fn load(bench: &Path, name: &str) -> anyhow::Result<Self> {
        let names = Self::names(bench);
        if !names.iter().any(|known| known == name) {
            bail!("no suite is named {name:?}: use one of {}", names.join(", "));
        }
        let path = bench.join("suites").join(format!("{name}.toml"));
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("failed to understand {}", path.display()))
    }

    /// The steps of which both servers are measured: all of them, unless other `servers` were asked for.
    ///
    /// # Errors
    /// Names a step between servers that the suite does not have.
    pub(super) fn steps_between(&self, servers: &[String]) -> anyhow::Result<Vec<Step>> {
        let known = |step: &Step, servers: &[String]| servers.contains(&step.from) && servers.contains(&step.to);
        if let Some(unknown) = self.steps.iter().find(|step| !known(step, &self.servers)) {
            let (from, to) = (&unknown.from, &unknown.to);
            bail!("the step from {from} to {to} is not between servers of the suite: add them to its servers");
        }
        let measured = if servers.is_empty() { &self.servers } else { servers };
        Ok(self.steps.iter().filter(|step| known(step, measured)).cloned().collect())
    }

    /// Names of all suites, sorted.
    pub fn names(bench: &Path) -> Vec<String> {
        let Ok(entries) = fs::read_dir(bench.join("suites")) else { return Vec::new() };
        let files = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = files.filter_map(|file| Some(file.strip_suffix(".toml")?.to_owned())).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Options;

    fn bench() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("bench")
    }

    #[test]
    fn every_suite_in_the_tree_can_be_measured() {
        let names = Suite::names(&bench());
        assert!(names.contains(&"express-to-elysia".to_owned()), "{names:?}");
        for name in names {
            let suite = Suite::load(&bench(), &name).unwrap();
            assert!(!suite.title.is_empty() && !suite.servers.is_empty(), "{name}");
            assert!(suite.servers.contains(&"native".to_owned()), "{name} has no ceiling");
            let options = Options { suite: Some(name.clone()), ..Options::default() };
            let (settings, servers) = options.resolve(&bench()).unwrap();
            assert_eq!((settings.suite, servers), (Some(name), suite.servers));
        }
    }

    #[test]
    fn steps_are_between_servers_that_are_measured() {
        let text = "servers = ['a', 'b', 'c']\nstep = [{from = 'a', to = 'b', changes = 'x'}, {from = 'b', to = 'c', changes = 'y'}]";
        let suite: Suite = toml::from_str(text).unwrap();
        assert_eq!(suite.steps_between(&[]).unwrap().len(), 2);
        assert_eq!(suite.steps_between(&["b".to_owned(), "c".to_owned()]).unwrap()[0].changes, "y");
        let lost = Suite { servers: vec!["a".to_owned()], ..suite };
        assert!(lost.steps_between(&[]).unwrap_err().to_string().contains("from a to b"));
        assert!(toml::from_str::<Suite>("step = [{from = 'a', to = 'b'}]").is_err());
    }

    #[test]
    fn an_unknown_suite_and_an_unknown_key_are_refused() {
        let error = Suite::load(&bench(), "nope").unwrap_err().to_string();
        assert!(error.contains("express-to-elysia"), "{error}");
        assert!(Suite::load(&bench(), "../suites/express-to-elysia").is_err());
        assert!(toml::from_str::<Suite>("warmup = 5").is_err());
    }
}
