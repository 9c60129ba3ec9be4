//! The highest rate that keeps an objective: a search over open-loop windows.
//!
//! Halving between a rate that kept it and one that did not. Noise of the host only ever makes latency worse, so a rate
//! counts as kept when one of three windows keeps it, and as lost when all lose.

use std::time::Duration;

use anyhow::bail;
use serde::Serialize;

use super::{Condition, Engine, LatencySummary, Load, Window};
use crate::interrupt::Interrupt;

/// How long the closed loop runs that says where to search, after as long a warm-up.
const CEILING_WINDOW: Duration = Duration::from_secs(2);
/// The search ends when the rates kept and lost differ by less than this part.
const RESOLUTION: f64 = 0.02;
/// Windows at one rate before it counts as lost.
const ATTEMPTS: usize = 3;
/// What is taken off a rate that did not keep the objective again when the search was over.
const STEP_BACK: f64 = 0.97;
/// How often.
const STEPS_BACK: usize = 5;
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
    /// Requests per second of a closed loop over the same connections: no open loop goes beyond it.
    pub ceiling_per_s: f64,
    /// The highest rate that kept the objective, found and confirmed; `None` where none did.
    pub capacity_per_s: Option<f64>,
    /// The rate at which the search ended because its windows had too few requests to tell.
    pub unknown_at: Option<f64>,
    /// Every window, in the order they ran: the curve of latency against rate.
    pub probes: Vec<Probe>,
}

/// Runs one window and says what speaks against it.
pub type Run<'r> = dyn FnMut(&mut Engine, Load) -> anyhow::Result<(Window, Vec<String>)> + 'r;

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
    let mut probes: Vec<Probe> = Vec::new();
    let mut keeps = |rate: f64, engine: &mut Engine| -> anyhow::Result<Kept> {
        for _ in 0..ATTEMPTS {
            let (probe, kept) = probe(engine, objective, Load { duration: window, rate: Some(rate) }, judge)?;
            told(&probe);
            probes.push(probe);
            if kept != Kept::No {
                return Ok(kept);
            }
        }
        Ok(Kept::No)
    };
    let (mut kept, mut lost) = (0.0, ceiling_per_s);
    let mut unknown_at = None;
    while lost - kept > lost * RESOLUTION && lost > ceiling_per_s * LOWEST_PART {
        let middle = f64::midpoint(kept, lost).round().max(1.0);
        if middle <= kept || middle >= lost {
            break;
        }
        match keeps(middle, engine)? {
            Kept::Yes => kept = middle,
            Kept::No => lost = middle,
            // So have those of every lower rate.
            Kept::Unknown => {
                unknown_at = Some(middle);
                break;
            }
        }
    }
    // Once more: the search keeps the luckiest of its windows.
    let mut confirmed = None;
    for _ in 0..STEPS_BACK {
        if kept <= 0.0 {
            break;
        }
        if keeps(kept, engine)? == Kept::Yes {
            confirmed = Some(kept);
            break;
        }
        kept *= STEP_BACK;
    }
    Ok(Capacity { objective: objective.to_string(), ceiling_per_s, capacity_per_s: confirmed, unknown_at, probes })
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
    let (window, reasons) = judge(engine, load)?;
    let (kept, why) = match objective.holds(&window) {
        _ if !reasons.is_empty() => (Kept::No, Some(reasons.join("; "))),
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
