//! From what the other modules know to what the record says. The only place that knows both shapes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use jiff::Timestamp;

use crate::host;
use crate::parity::{Level, Outcome, Verdict};
use crate::peer::{self, Class, Spec};
use crate::postgres::Database;
use crate::record::{Cores, Difference, Gate, Postgres, Run, SCHEMA, Server, Settings};
use crate::setup::Environment;

/// `run.json` of a run that starts now.
pub(super) fn describe(
    specs: &[Spec],
    settings: Settings,
    environment: &Environment,
    database: &mut Database,
) -> anyhow::Result<Run> {
    let postgres = Postgres {
        version: database.version()?,
        settings: database.settings()?.into_iter().map(|setting| (setting.name, setting.value)).collect(),
        visible: database.postmaster_pid()?.is_some(),
    };
    Ok(Run {
        schema: SCHEMA,
        started_at: Timestamp::now(),
        resumed_at: Vec::new(),
        headroom_version: env!("CARGO_PKG_VERSION").to_owned(),
        git_commit: git_commit(&environment.bench),
        debug_build: cfg!(debug_assertions),
        settings,
        servers: specs.iter().map(|spec| server(spec, &environment.bench)).collect::<anyhow::Result<_>>()?,
        host: serde_json::to_value(host::Facts::read()).context("the host's facts cannot be turned into JSON")?,
        postgres,
        gates: BTreeMap::new(),
    })
}

fn server(spec: &Spec, bench: &Path) -> anyhow::Result<Server> {
    Ok(Server {
        name: spec.name.clone(),
        label: spec.label.clone(),
        class: class(spec.class).to_owned(),
        native: spec.native,
        runtime: spec.runtime.clone(),
        framework: spec.framework.clone(),
        driver: spec.driver.clone(),
        prepared: spec.prepared,
        pipelined: spec.pipelined,
        cores: match spec.cores {
            peer::Cores::One => Cores::One,
            peer::Cores::All => Cores::All,
        },
        processes: spec.processes,
        versions: peer::versions(spec, bench)?,
    })
}

fn class(class: Class) -> &'static str {
    match class {
        Class::Reference => "reference",
        Class::Idiomatic => "idiomatic",
        Class::Tuned => "tuned",
        Class::Engine => "engine",
    }
}

/// The checkout's commit, and whether something was changed since. `None` without git or outside a repository.
fn git_commit(bench: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(bench).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}+changes") })
}

/// The gate's verdict as recorded.
pub(super) fn gate(verdict: &Verdict) -> Gate {
    let failed = |level| verdict.outcomes.iter().filter(move |o| o.level == level).filter_map(difference).collect();
    Gate {
        passed: verdict.passed(),
        checks: verdict.outcomes.len(),
        core_failures: failed(Level::Core),
        strict_differences: failed(Level::Strict),
        error: None,
    }
}

/// A gate that could not run at all.
pub(super) fn gate_error(error: &anyhow::Error) -> Gate {
    let error = Some(format!("{error:#}"));
    Gate { passed: false, checks: 0, core_failures: Vec::new(), strict_differences: Vec::new(), error }
}

fn difference(outcome: &Outcome) -> Option<Difference> {
    let difference = outcome.failure.clone()?;
    Some(Difference { id: outcome.id.clone(), proves: outcome.proves.clone(), difference })
}
