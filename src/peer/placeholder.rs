//! `{node}` and its like in commands and environments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::install::peers;

/// What builds and version commands may use.
pub(super) const TOOL: [&str; 4] = ["headroom", "node", "bun", "peers"];
/// What a start command may use. Secrets are left out: any user of the host can read a command line.
pub(super) const COMMAND: [&str; 7] = ["headroom", "node", "bun", "peers", "host", "port", "pool"];
/// What the environment may use.
pub(super) const ENV: [&str; 9] =
    ["headroom", "node", "bun", "peers", "host", "port", "database_url", "jwt_secret", "pool"];

/// Values by name.
pub(super) type Values = BTreeMap<&'static str, String>;

/// Refuses a placeholder that is not one of `known`, and a brace that closes none.
pub(super) fn check(text: &str, known: &[&str]) -> anyhow::Result<()> {
    for name in names(text)? {
        if !known.contains(&name) {
            bail!("{{{name}}} in {text:?} is no placeholder here: use one of {{{}}}", known.join("} {"));
        }
    }
    Ok(())
}

/// Fills in `values`. A name without a value stays as it is: [`check`] has refused those.
pub(super) fn fill(text: &str, values: &Values) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    // Left to right, so that a value that holds braces is not looked at again.
    while let Some((before, name, after)) = next(rest) {
        filled.push_str(before);
        let written = &rest[before.len()..rest.len() - after.len()];
        filled.push_str(values.get(name).map_or(written, String::as_str));
        rest = after;
    }
    filled + rest
}

/// The values that do not depend on a launch.
pub(super) fn tools(bench: &Path) -> anyhow::Result<Values> {
    let headroom = std::env::current_exe().context("cannot find the path of this program")?;
    // Absolute, since commands run in another folder than this process.
    let bench = std::path::absolute(bench).with_context(|| format!("no folder {}", bench.display()))?;
    Ok(Values::from([
        ("headroom", text(&headroom)?),
        ("node", text(&node(&bench))?),
        ("bun", text(&bun(&bench))?),
        ("peers", text(&peers(&bench))?),
    ]))
}

/// Where the pinned Node is, installed or not.
pub(super) fn node(bench: &Path) -> PathBuf {
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    peers(bench).join(format!("node_modules/node-linux-{cpu}/bin/node"))
}

/// Where the pinned Bun is, installed or not.
pub(super) fn bun(bench: &Path) -> PathBuf {
    let cpu = if cfg!(target_arch = "aarch64") { "aarch64" } else { "x64" };
    peers(bench).join(format!("node_modules/@oven/bun-linux-{cpu}/bin/bun"))
}

fn text(path: &Path) -> anyhow::Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
}

fn names(text: &str) -> anyhow::Result<Vec<&str>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, name, after)) = next(rest) {
        found.push(name);
        rest = after;
    }
    if rest.contains('{') {
        bail!("a brace in {text:?} is not closed");
    }
    Ok(found)
}

fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_once() {
        let values = Values::from([("host", "{port}".to_owned()), ("port", "80".to_owned())]);
        assert_eq!(fill("{host}:{port}/x", &values), "{port}:80/x");
        assert_eq!(fill("plain", &values), "plain");
        assert_eq!(fill("a{none}b{port}", &values), "a{none}b80");
    }

    #[test]
    fn unknown_and_open_placeholders_are_refused() {
        assert!(check("{node}{bun}", &TOOL).is_ok());
        let unknown = check("--port={prot}", &COMMAND).unwrap_err().to_string();
        assert!(unknown.contains("{prot}") && unknown.contains("{port}"), "{unknown}");
        assert!(check("{jwt_secret}", &COMMAND).is_err(), "a secret on a command line");
        assert!(check("{port", &COMMAND).is_err());
    }
}
