//! `headroom doctor`: what is here, what is missing, and the exact command that brings it. Changes nothing.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use headroom::{host, peer, postgres, setup};

use super::{Outcome, print};

/// Something a command needs.
struct Finding {
    what: &'static str,
    /// What was found, or `Err` with what is missing and the remedy.
    found: Result<String, String>,
}

pub(crate) fn run() -> anyhow::Result<Outcome> {
    let bench = setup::bench_folder(None);
    let mut findings = vec![
        Finding {
            what: "checkout",
            found: bench.as_ref().map(|bench| bench.display().to_string()).map_err(|error| format!("{error:#}")),
        },
        Finding { what: "npm", found: npm() },
    ];
    if let Ok(bench) = &bench {
        findings.push(Finding { what: "peers", found: peers(bench) });
        findings.push(Finding { what: "postgres", found: binaries(bench) });
    }
    findings.push(Finding { what: "cluster", found: Ok(cluster()) });
    findings.push(Finding { what: "host", found: host_line() });
    let mut text = String::new();
    for Finding { what, found } in &findings {
        let (mark, line) = match found {
            Ok(line) => ("ok     ", line),
            Err(line) => ("missing", line),
        };
        let _ = writeln!(text, "{mark}  {what:<9} {line}");
    }
    print(&text)?;
    Ok(Outcome::good_if(findings.iter().all(|finding| finding.found.is_ok())))
}

fn npm() -> Result<String, String> {
    let output = Command::new("npm").arg("--version").stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        Ok(output) => Err(format!("`npm --version` failed ({}): install Node.js 20 or newer again", output.status)),
        Err(error) => Err(format!("npm cannot be run ({error}): install Node.js 20 or newer, which brings it")),
    }
}

fn peers(bench: &Path) -> Result<String, String> {
    if peer::is_up_to_date(bench) {
        Ok("installed as the lockfile says".to_owned())
    } else {
        Err("not installed: `headroom compare` does it, or `npm ci --ignore-scripts` in bench/peers".to_owned())
    }
}

fn binaries(bench: &Path) -> Result<String, String> {
    if let Some(pinned) = peer::pinned_postgres(bench) {
        return Ok(format!("pinned, in {}", pinned.display()));
    }
    Err("the pinned one comes with the peers: `npm ci --ignore-scripts` in bench/peers brings it, `--postgres-bin DIR` takes another".to_owned())
}

fn cluster() -> String {
    let home = postgres::default_home();
    match postgres::url(&home) {
        Ok(_) => format!("running, in {}", home.display()),
        Err(_) => format!("not running; it starts when a command needs it, in {}", home.display()),
    }
}

fn host_line() -> Result<String, String> {
    let facts = host::Facts::read();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let model = facts.cpu_model.unwrap_or_else(|| "unknown CPU".to_owned());
    if cpus < 2 {
        return Err(format!("{cpus} CPU ({model}): server, Postgres and driver need two, give this machine another"));
    }
    Ok(format!("{cpus} CPUs ({model})"))
}
