//! `headroom load URL`

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use headroom::contract::{self, Variety};
use headroom::host::HostCpu;
use headroom::interrupt::Interrupt;
use headroom::load::{self, Engine, Report, Request, judge, resolve, text};

use super::{Outcome, jwt_secret, print};
use crate::cli;

/// Of the replies of a route, one in this many has its whole body compared: often enough to see one bad row in some
/// thousands, rare enough not to cost the driver.
const CHECK_EVERY: u32 = 64;

/// Whoever waits for the result does not wait longer than this for replies that a starved connection still owes.
const DRAIN: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &cli::Load, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let (address, host, target) = resolve(&args.url)?;
    let (requests, success_status) = requests(args, target)?;
    ensure!(!args.duration.is_zero(), "-d 0 measures nothing: give a duration such as 10s");
    let config = load::Config {
        address,
        host,
        connections: args.connections,
        threads: args.threads,
        timeout: args.timeout,
        drain: args.timeout.min(DRAIN),
        requests,
        success_status,
        check_every: CHECK_EVERY,
    };
    let mut engine = Engine::start(config, interrupt)?;
    if !args.warmup.is_zero() {
        engine.run(args.warmup, interrupt)?;
    }
    let before = HostCpu::sample().ok();
    let window = engine.run(args.duration, interrupt)?;
    let idle_share = before
        .zip(HostCpu::sample().ok())
        .and_then(|(before, after)| after.shares_since(before))
        .map(|shares| shares.idle);
    let report = Report::new(&args.url, &address.to_string(), args.threads, &window, &judge(&window, idle_share));
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(&text::render(&report))?;
    }
    Ok(Outcome::good_if(report.valid))
}

/// What to send, and the one status that counts (`None`: any 2xx).
fn requests(args: &cli::Load, target: String) -> anyhow::Result<(Vec<Request>, Option<u16>)> {
    if let Some(route) = args.route {
        ensure!(target == "/", "--route brings its own path: give the URL without {target}");
        let variety = if args.fixed { Variety::Fixed } else { Variety::Seeded(args.seed) };
        let requests = contract::requests(route, variety, &jwt_secret()).into_iter().map(|request| {
            let mut request = load::render(request);
            request.headers.extend(args.headers.iter().cloned());
            request
        });
        return Ok((requests.collect(), Some(route.success_status())));
    }
    let body = match (&args.body, &args.body_file) {
        (Some(body), None) => body.clone().into_bytes(),
        (None, Some(path)) => body(path)?,
        (None, None) => Vec::new(),
        (Some(_), Some(_)) => bail!("-b and --body-file exclude each other: give one of them"),
    };
    let method = args.method.clone().unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    Ok((vec![Request { method, target, headers: args.headers.clone(), body, expected: None }], None))
}

/// The body in a file: a regular one, since a pipe or a device might never end, and of a size that can be sent.
fn body(path: &Path) -> anyhow::Result<Vec<u8>> {
    const LONGEST_BYTES: u64 = 64 << 20;
    let shown = path.display();
    let metadata = fs::metadata(path).with_context(|| format!("cannot read --body-file {shown}: name a file"))?;
    ensure!(metadata.is_file(), "--body-file {shown} is no regular file: name one");
    ensure!(
        metadata.len() <= LONGEST_BYTES,
        "--body-file {shown} has {} bytes: use at most {LONGEST_BYTES}",
        metadata.len()
    );
    fs::read(path).with_context(|| format!("cannot read --body-file {shown}"))
}
