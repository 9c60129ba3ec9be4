//! `headroom load --capacity 'p99<10ms'`

use std::fmt::Write as _;
use std::time::Duration;

use headroom::interrupt::Interrupt;
use headroom::load::capacity::{Capacity, Probe, search};
use headroom::load::{Condition, Engine};
use serde::Serialize;

use crate::cli;
use crate::commands::{Outcome, print};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    format: u32,
    url: &'a str,
    address: &'a str,
    threads: usize,
    connections: usize,
    window_s: f64,
    #[serde(flatten)]
    capacity: &'a Capacity,
}

pub(super) fn run(
    args: &cli::Load,
    address: &str,
    objective: &Condition,
    engine: &mut Engine,
    window: Duration,
    interrupt: &Interrupt,
) -> anyhow::Result<Outcome> {
    if !args.json {
        print(&format!(
            "Searching the highest rate that keeps {objective} @ {}, windows of {:?}\n{}\n",
            args.url,
            window,
            row(["rate", "replies/s", "p50", "p99", "p99.9", "kept"])
        ))?;
    }
    // A reader that has left stops nothing: the last line says what was found.
    let mut told = |probe: &Probe| {
        if !args.json {
            let _ = print(&line(probe));
        }
    };
    let mut judge = |engine: &mut Engine, load| super::measure(engine, load, interrupt, &mut |_| {});
    let capacity = search(engine, objective, window, interrupt, &mut judge, &mut told)?;
    if args.json {
        let report = Report {
            format: 1,
            url: &args.url,
            address,
            threads: args.threads,
            connections: args.connections,
            window_s: window.as_secs_f64(),
            capacity: &capacity,
        };
        print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(&summary(&capacity))?;
    }
    Ok(Outcome::good_if(capacity.capacity_per_s.is_some()))
}

fn summary(capacity: &Capacity) -> String {
    let mut text = format!("A closed loop over the same connections: {:.0} requests/s\n", capacity.ceiling_per_s);
    let found = match capacity.capacity_per_s {
        Some(rate) => {
            let [low, high] = capacity.capacity_range_per_s.unwrap_or([rate, rate]);
            let objective = &capacity.objective;
            writeln!(
                text,
                "Capacity: {rate:.0} requests/s (quarters of the search: {low:.0} to {high:.0}): half of the windows at this \
                 rate keep {objective}"
            )
        }
        None => writeln!(text, "Capacity: no rate kept {}", capacity.objective),
    };
    found.expect("a string takes everything");
    if let (None, Some(rate)) = (capacity.capacity_per_s, capacity.unknown_at) {
        let hint = "the windows have too few requests to tell: use a longer -d";
        writeln!(text, "At {rate:.0} requests/s and below {hint}").expect("a string takes everything");
    }
    text
}

fn line(probe: &Probe) -> String {
    let time = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.3} ms", ns as f64 / 1e6));
    let latency = probe.latency_ns;
    let columns = [
        format!("{:.0}", probe.rate),
        format!("{:.0}", probe.requests_per_s),
        time(latency.p50),
        time(latency.p99),
        time(latency.p99_9),
        probe.why.as_ref().map_or("yes".to_owned(), |why| format!("no: {why}")),
    ];
    format!("{}\n", row(columns.each_ref().map(String::as_str)))
}

fn row([rate, replies, p50, p99, p99_9, kept]: [&str; 6]) -> String {
    format!("{rate:>10} {replies:>10} {p50:>12} {p99:>12} {p99_9:>12}  {kept}")
}
