//! The highest rate that keeps an objective: a search over open-loop windows.
//!
//! Near the edge the same rate keeps the objective in one window and loses it in the next, since the host's speed
//! differs from second to second. So the search is a staircase (up after a window that kept the objective, down after
//! one that did not) that goes back and forth over the edge until its time is over. The geometric mean of the rates it
//! visits is the rate that half of the windows keep, and windows of a bad moment move it by one step only.

use std::time::Duration;

use anyhow::bail;
use serde::Serialize;

use super::staircase::Staircase;
use super::{Condition, Engine, LatencySummary, Load, Reason, Window};
use crate::interrupt::Interrupt;

/// How long the closed loop runs that says where to search, after as long a warm-up.
const CEILING_WINDOW: Duration = Duration::from_secs(2);
/// How long the search may take, as far as its windows are not too few then.
const TIME: Duration = Duration::from_secs(100);
/// Windows of a search: at least, at most.
const WINDOWS: (u32, u32) = (24, 100);
/// Windows with too few requests to tell before the search gives up.
const UNKNOWN: u32 = 3;
/// Below this part of the ceiling there is nothing to find.
const LOWEST_PART: f64 = 0.01;

/// What one window of the search saw.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    /// Requests per second asked for.
    pub rate: f64,
    /// Good replies per second.
    pub requests_per_s: f64,
    /// Of good replies, counted from when each was due.
    pub latency_ns: LatencySummary,
    /// Why the objective was not kept; `None` where it was, in a valid window.
    pub why: Option<String>,
}

/// The outcome of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// As typed.
    pub objective: String,
    /// Requests per second of a closed loop over the same connections.
    pub ceiling_per_s: f64,
    /// The rate that half of the windows keep; `None` where no rate kept the objective.
    pub capacity_per_s: Option<f64>,
    /// The lowest and the highest result of the quarters of the search, each taken alone: how far the host moved.
    pub capacity_range_per_s: Option<[f64; 2]>,
    /// The rate at which the search ended because its windows had too few requests to tell.
    pub unknown_at: Option<f64>,
    /// Every window, in the order they ran: the curve of latency against rate.
    pub probes: Vec<Probe>,
}

/// Runs one window and says what speaks against it.
pub type Run<'r> = dyn FnMut(&mut Engine, Load) -> anyhow::Result<(Window, Vec<Reason>)> + 'r;

/// Searches with windows of `window`; `judge` runs each, `told` hears of it.
///
/// # Errors
/// Where the closed loop has no good reply, and those of the engine.
pub fn search(
    engine: &mut Engine,
    objective: &Condition,
    window: Duration,
    interrupt: &Interrupt,
    judge: &mut Run<'_>,
    told: &mut dyn FnMut(&Probe),
) -> anyhow::Result<Capacity> {
    engine.run(CEILING_WINDOW, interrupt)?;
    let ceiling_per_s = engine.run(CEILING_WINDOW, interrupt)?.requests_per_s;
    if ceiling_per_s <= 0.0 {
        bail!("the server gave no good reply: look at it with a plain `headroom load` first");
    }
    let mut staircase = Staircase::new(ceiling_per_s / 2.0);
    let (mut probes, mut unknown_at) = (Vec::new(), None);
    let mut unknown = 0;
    let windows = TIME.as_nanos().checked_div(window.as_nanos()).and_then(|windows| u32::try_from(windows).ok());
    let windows = windows.unwrap_or(u32::MAX);
    for _ in 0..windows.clamp(WINDOWS.0, WINDOWS.1) {
        let rate = staircase.rate();
        if rate < ceiling_per_s * LOWEST_PART || staircase.is_certain() {
            break;
        }
        let (probe, kept) = probe(engine, objective, Load { duration: window, rate: Some(rate) }, judge)?;
        told(&probe);
        probes.push(probe);
        match kept {
            Kept::Yes => staircase.step(true),
            Kept::No => staircase.step(false),
            // Only a higher rate can tell; where those lose, again and again, nothing can.
            Kept::Unknown if unknown < UNKNOWN => {
                unknown += 1;
                staircase.step(true);
            }
            Kept::Unknown => {
                unknown_at = Some(rate);
                break;
            }
        }
    }
    let was_kept = unknown_at.is_none() && probes.iter().any(|probe| probe.why.is_none());
    let (capacity_per_s, capacity_range_per_s) = staircase.edge().filter(|_| was_kept).unzip();
    Ok(Capacity {
        objective: objective.to_string(),
        ceiling_per_s,
        capacity_per_s,
        capacity_range_per_s,
        unknown_at,
        probes,
    })
}

/// What a window says of the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
    /// It is valid, and too short.
    Unknown,
}

fn probe(engine: &mut Engine, objective: &Condition, load: Load, judge: &mut Run<'_>) -> anyhow::Result<(Probe, Kept)> {
    let (window, mut reasons) = judge(engine, load)?;
    let holds = objective.holds(&window);
    // The driver's own delay is part of the latency: what holds with it holds without.
    reasons.retain(|reason| holds != Some(true) || !matches!(reason, Reason::DriverLag { .. }));
    let (kept, why) = match holds {
        _ if !reasons.is_empty() => {
            let texts: Vec<String> = reasons.iter().map(ToString::to_string).collect();
            (Kept::No, Some(texts.join("; ")))
        }
        Some(true) => (Kept::Yes, None),
        Some(false) => (Kept::No, Some(objective.found(&window))),
        // Requests without a reply have taken longer than any objective allows.
        None if window.latency_censored > 0 => (Kept::No, Some(objective.found(&window))),
        None => (Kept::Unknown, Some(objective.found(&window))),
    };
    let probe = Probe {
        rate: load.rate.unwrap_or_default(),
        requests_per_s: window.requests_per_s,
        latency_ns: window.latency_ns,
        why,
    };
    Ok((probe, kept))
}
