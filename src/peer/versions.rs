//! What a server is made of, for the record.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::catalogue::{Spec, VersionSource};
use super::install::peers;
use super::placeholder::{Values, fill, tools};
use super::tool::output;

/// A version command that takes longer hangs.
const VERSION_TIMEOUT: Duration = Duration::from_secs(20);

/// Looks up everything the entry's `versions` names: packages in the lockfile, programs by running them.
///
/// # Errors
/// Names the package that the lockfile does not have, or the command that failed.
pub fn versions(spec: &Spec, bench: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let values = tools(bench)?;
    let mut found = BTreeMap::new();
    for (name, source) in &spec.versions {
        let version = match source {
            VersionSource::Package(package) => package_version(bench, package),
            VersionSource::Command(command) => command_version(command, &values, bench),
        };
        found.insert(name.clone(), version.with_context(|| format!("no version of {name} for {}", spec.name))?);
    }
    Ok(found)
}

fn package_version(bench: &Path, package: &str) -> anyhow::Result<String> {
    let path = peers(bench).join("package-lock.json");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let lock: Value = serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
    let version = lock["packages"][format!("node_modules/{package}")]["version"].as_str();
    version.map(str::to_owned).with_context(|| format!("{package:?} is not in {}", path.display()))
}

fn command_version(command: &[String], values: &Values, bench: &Path) -> anyhow::Result<String> {
    let command: Vec<String> = command.iter().map(|text| fill(text, values)).collect();
    let printed = output(&command, bench, VERSION_TIMEOUT)?;
    let line = printed.lines().next().unwrap_or_default().trim();
    if line.is_empty() {
        bail!("{} printed no version", command.join(" "));
    }
    Ok(version_in(line))
}

/// The first word that starts like a version: `v26.12.1` → `26.12.1`, `headroom 0.1.0` → `0.1.0`. Else the line.
fn version_in(line: &str) -> String {
    let number = |word: &str| {
        let word = word.strip_prefix('v').unwrap_or(word);
        word.starts_with(|first: char| first.is_ascii_digit()).then(|| word.to_owned())
    };
    line.split_whitespace().find_map(number).unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        for (line, version) in [
            ("v26.12.1", "26.12.1"),
            ("1.4.5", "1.4.5"),
            ("headroom 0.1.0 (abc)", "0.1.0"),
            ("postgres (PostgreSQL) 17.10", "17.10"),
            ("development build", "development build"),
        ] {
            assert_eq!(version_in(line), version);
        }
    }
}
