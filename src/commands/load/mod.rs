//! `headroom load URL`
//!
//! - `requests`: what is sent; `output`: distributions; `capacity`: the search for the highest rate

mod capacity;
mod output;
mod requests;

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, ensure};
use headroom::host::{HostCpu, allowed_cpus, keep_to};
use headroom::interrupt::Interrupt;
use headroom::load::{self, Condition, Engine, Live, Load, Reason, Report, Trust, Window, judge, locate, text};

use super::{Outcome, print};
use crate::cli;

/// Of the replies of a route, one in this many has its whole body compared: often enough to see one bad row in some
/// thousands, rare enough not to cost the driver.
const CHECK_EVERY: u32 = 64;

/// How long is measured unless told otherwise, and how long each window of a search for the capacity is.
const WINDOW: Duration = Duration::from_secs(10);
const SEARCH_WINDOW: Duration = Duration::from_secs(1);

/// Whoever waits for the result does not wait longer than this for replies that a starved connection still owes.
const DRAIN: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &cli::Load, is_quiet: bool, interrupt: &Interrupt) -> anyhow::Result<Outcome> {
    let duration = args.duration.unwrap_or(if args.capacity.is_some() { SEARCH_WINDOW } else { WINDOW });
    ensure!(!duration.is_zero(), "-d 0 measures nothing: give a duration such as 10s");
    let trust = match (&args.cacert, args.insecure) {
        (Some(path), _) => Trust::File(path),
        (None, true) => Trust::Anyone,
        (None, false) => Trust::System,
    };
    let (endpoint, host, target) = locate(&args.url, args.unix_socket.as_deref(), trust)?;
    let address = endpoint.to_string();
    let (requests, success_status) = requests::requests(args, &target)?;
    if let Some(cpus) = &args.cpus {
        keep_to_cpus(&cpus.0)?;
    }
    let config = load::Config {
        endpoint,
        host,
        connections: args.connections,
        threads: args.threads,
        timeout: args.timeout,
        drain: args.timeout.min(DRAIN),
        requests,
        success_status,
        check_every: CHECK_EVERY,
        keeps_alive: !args.no_keepalive,
        spins: args.spin,
    };
    let mut engine = Engine::start(config, interrupt)?;
    let mut line = LiveLine::new(is_quiet || args.json, duration);
    if !args.warmup.is_zero() {
        engine.run_as(Load { duration: args.warmup, rate: args.rate }, interrupt, &mut |_| {})?;
    }
    if let Some(objective) = &args.capacity {
        return capacity::run(args, &address, objective, &mut engine, duration, interrupt);
    }
    let started_at = SystemTime::now();
    let load = Load { duration, rate: args.rate };
    let measured = measure(&mut engine, load, interrupt, &mut |live| line.show(live));
    line.clear();
    let (interrupted, (window, reasons)) = match measured {
        Ok(measured) => (None, measured),
        // What was seen until then is shown all the same; it is not a valid window.
        Err(error) => {
            let Some(window) = engine.take_interrupted() else { return Err(error) };
            let reasons = judge(&window, None);
            (Some(error), (window, reasons))
        }
    };
    let mut report = Report::new(&args.url, &address, args.threads, &window, &reasons);
    report.failed_if = failures(&args.fail_if, &window);
    if let Some(path) = &args.hdr_log {
        output::write_hdr_log(path, &window, started_at)?;
    }
    if args.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        let distribution = if args.percentiles { output::percentiles(&window) } else { String::new() };
        print(&format!("{}{distribution}", text::render(&report)))?;
    }
    match interrupted {
        Some(error) => Err(error),
        None => Ok(Outcome::good_if(report.valid && report.failed_if.is_empty())),
    }
}

/// One window and what speaks against it.
fn measure(
    engine: &mut Engine,
    load: Load,
    interrupt: &Interrupt,
    watch: &mut dyn FnMut(Live),
) -> anyhow::Result<(Window, Vec<Reason>)> {
    let before = HostCpu::sample().ok();
    let window = engine.run_as(load, interrupt, watch)?;
    let idle_share = before
        .zip(HostCpu::sample().ok())
        .and_then(|(before, after)| after.shares_since(before))
        .map(|shares| shares.idle);
    let reasons = judge(&window, idle_share);
    Ok((window, reasons))
}

/// The conditions that are true of a window, or cannot be told: what was found, each in one line.
fn failures(conditions: &[Condition], window: &Window) -> Vec<String> {
    let fails = |condition: &&Condition| condition.holds(window) != Some(false);
    conditions.iter().filter(fails).map(|condition| format!("{condition}: {}", condition.found(window))).collect()
}

fn keep_to_cpus(cpus: &[usize]) -> anyhow::Result<()> {
    let allowed = allowed_cpus().context("cannot ask which CPUs may be used")?;
    let foreign = cpus.iter().find(|cpu| !allowed.contains(cpu));
    ensure!(
        foreign.is_none(),
        "--cpus {} is not among the CPUs this process may use: choose from {}",
        foreign.copied().unwrap_or_default(),
        allowed.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    );
    keep_to(cpus).context("cannot keep to --cpus")
}

/// How far the window is, on a terminal, drawn over itself.
struct LiveLine {
    is_shown: bool,
    window: Duration,
    /// Second that was shown last, and what had been counted by then.
    last: Live,
}

impl LiveLine {
    fn new(is_hidden: bool, window: Duration) -> Self {
        let is_shown = !is_hidden && std::io::stderr().is_terminal();
        Self { is_shown, window, last: Live::default() }
    }

    fn show(&mut self, live: Live) {
        const EVERY: Duration = Duration::from_millis(500);
        let since = live.elapsed.saturating_sub(self.last.elapsed);
        if !self.is_shown || since < EVERY {
            return;
        }
        let rate = live.requests_ok.saturating_sub(self.last.requests_ok) as f64 / since.as_secs_f64();
        self.last = live;
        let errors = if live.errors > 0 { format!(", {} errors", live.errors) } else { String::new() };
        let (done, all) = (live.elapsed.as_secs_f64(), self.window.as_secs_f64());
        // A closed stderr is no reason to stop measuring.
        let _ = write!(std::io::stderr(), "\r\x1b[K{done:.0} of {all:.0} s: {rate:.0} requests/s{errors}");
    }

    fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
