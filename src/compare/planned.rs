//! What a run will measure, before anything is installed or started.

use std::path::PathBuf;
use std::time::Duration;

use super::plan::Plan;
use super::resume::Attempts;
use super::{Options, Timing};
use crate::peer::{Catalogue, Spec};
use crate::record::{Record, Settings};
use crate::setup;

/// A run that can be measured as far as can be said without looking at the host.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Conditions.
    pub settings: Settings,
    /// Servers, in table order.
    pub servers: Vec<Spec>,
    /// Where the record is or will be.
    pub dir: PathBuf,
    /// Cells to be measured, over all rounds; without the finished ones of a resumed run.
    pub cells: usize,
    /// Servers of the first round that is left, in their order there.
    pub first_round: Vec<String>,
    /// From the first start to the last stop when every window is valid at once; set-up and gates not counted.
    pub duration: Duration,
}

impl Planned {
    /// Resolves what was asked for.
    ///
    /// # Errors
    /// Names what cannot be measured.
    pub fn of(options: &Options) -> anyhow::Result<Self> {
        let before = options.resume.as_deref().map(Record::read).transpose()?;
        Self::after(options, before.as_ref())
    }

    /// With the record to be resumed.
    pub(super) fn after(options: &Options, before: Option<&Record>) -> anyhow::Result<Self> {
        let bench = setup::bench_folder(options.setup.bench.as_deref())?;
        let (settings, names): (Settings, Vec<String>) = match before {
            Some(record) => (record.run.settings.clone(), record.run.servers.iter().map(|s| s.name.clone()).collect()),
            None => options.resolve(&bench)?,
        };
        let catalogue = Catalogue::load(&bench)?;
        let servers = names.iter().map(|name| catalogue.find(name).cloned()).collect::<anyhow::Result<Vec<Spec>>>()?;
        let plan = Plan::of(&settings, &names);
        let plan = match before {
            Some(record) => {
                let attempts = Attempts::of(record);
                plan.without(|cell| attempts.finished(cell, settings.max_attempts))
            }
            None => plan,
        };
        let first = plan.turns.first().map(|turn| turn.round);
        let first_round = plan.turns.iter().filter(|turn| Some(turn.round) == first).map(|turn| turn.server.clone());
        Ok(Self {
            dir: options.folder(&settings.profile)?,
            cells: plan.cells(),
            first_round: first_round.collect(),
            duration: plan.expected(&Timing::of(&settings)),
            settings,
            servers,
        })
    }
}
