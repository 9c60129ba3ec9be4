//! From rows to the figures of a cell: which windows count, which servers may be divided by which.

use std::collections::BTreeMap;

use super::Share;
use crate::record::{Record, Server, Window};
use crate::stats::{Ratio, Sample};

/// All windows of a server on a route at a number of connections.
#[derive(Debug, Default)]
pub(super) struct Cell<'a> {
    /// By round; the last one where several are valid.
    pub(super) valid: BTreeMap<u32, &'a Window>,
    /// In the order measured.
    pub(super) invalid: Vec<&'a Window>,
}

impl<'a> Cell<'a> {
    pub(super) fn of(record: &'a Record, server: &str, route: &str, connections: u32) -> Self {
        let mut cell = Self::default();
        let belongs = |w: &&Window| w.server == server && w.route == route && w.connections == connections;
        for window in record.windows.iter().filter(belongs) {
            if window.valid {
                cell.valid.insert(window.round, window);
            } else {
                cell.invalid.push(window);
            }
        }
        cell
    }

    /// One value a valid round. Values come out of JSON, which has no NaN.
    pub(super) fn sample(&self, value: impl Fn(&Window) -> Option<f64>) -> Option<Sample> {
        let values: Vec<f64> = self.valid.values().filter_map(|window| value(window)).collect();
        Sample::new(&values).ok().flatten()
    }

    pub(super) fn rate(&self) -> Option<Sample> {
        self.sample(|window| window.requests_per_s)
    }

    /// Rounds with a window, none of them valid.
    pub(super) fn void(&self) -> bool {
        self.valid.is_empty() && !self.invalid.is_empty()
    }
}

/// `value` of the first ÷ `value` of the second, round by round. Rounds in which one has none, or 0, have no ratio.
pub(super) fn paired(first: &Cell<'_>, second: &Cell<'_>, value: impl Fn(&Window) -> Option<f64>) -> Option<Ratio> {
    let positive = |window: &Window| value(window).filter(|value| *value > 0.0);
    let pairs: Vec<(f64, f64)> = first
        .valid
        .iter()
        .filter_map(|(round, window)| Some((positive(window)?, positive(second.valid.get(round)?)?)))
        .collect();
    Ratio::of_pairs(&pairs).ok().flatten()
}

/// Requests per second of the base ÷ those of the server.
pub(super) fn headroom(base: &Cell<'_>, server: &Cell<'_>) -> Option<Ratio> {
    paired(base, server, |window| window.requests_per_s)
}

/// The inverse of every headroom, by server, route and connections: what a threshold is held against.
pub(super) fn shares(record: &Record) -> Vec<Share> {
    let mut shares = Vec::new();
    for server in &record.run.servers {
        let Some(base) = base_of(record, server) else { continue };
        for route in &record.run.settings.routes {
            for &connections in &record.run.settings.connections {
                let cell = |server: &Server| Cell::of(record, &server.name, route, connections);
                let value = headroom(&cell(base), &cell(server)).map(|over| over.mean.recip());
                shares.push(Share { server: server.name.clone(), route: route.clone(), connections, value });
            }
        }
    }
    shares
}

/// CPU per request of server plus Postgres, server ÷ base.
pub(super) fn cpu_headroom(base: &Cell<'_>, server: &Cell<'_>) -> Option<Ratio> {
    paired(server, base, |window| window.cpu_ns_per_request.server_and_postgres().map(|ns| ns as f64))
}

/// The native server a server is divided by: of the same cores, pipelined if there is one. A base has none itself.
pub(super) fn base_of<'a>(record: &'a Record, server: &Server) -> Option<&'a Server> {
    let equal = || record.run.servers.iter().filter(|other| other.native && other.cores == server.cores);
    let base = equal().find(|other| other.pipelined).or_else(|| equal().next())?;
    (base.name != server.name).then_some(base)
}

/// Whether other rows are divided by it.
pub(super) fn is_base(record: &Record, server: &Server) -> bool {
    server.native && base_of(record, server).is_none()
}
