//! Steps: two servers of equal cores that differ in one layer, so that a ratio has one cause.

use super::document::{Column, Document, Table};
use super::figures::{Cell, headroom};
use super::number::{NONE, ratio};
use crate::record::{Record, Server};
use crate::stats::Ratio;

/// What a step changes; `to` stands earlier in the run's list than `from`.
#[derive(Debug, PartialEq)]
pub(super) struct Step<'a> {
    pub(super) from: &'a Server,
    pub(super) to: &'a Server,
    pub(super) layer: &'static str,
}

pub(super) fn write(record: &Record, document: &mut Document) {
    let steps = steps(&record.run.servers);
    if steps.is_empty() {
        return;
    }
    let routes = &record.run.settings.routes;
    for &connections in &record.run.settings.connections {
        let mut columns = vec![Column::text("from → to"), Column::text("changes")];
        columns.extend(routes.iter().map(|route| Column::number(route)));
        let mut table = Table { columns, rows: Vec::new() };
        for step in &steps {
            let ratios = routes.iter().map(|route| {
                let of = |server: &Server| Cell::of(record, &server.name, route, connections);
                headroom(&of(step.to), &of(step.from))
            });
            let ratios: Vec<Option<Ratio>> = ratios.collect();
            if ratios.iter().any(Option::is_some) {
                let mut row = vec![format!("{} → {}", step.from.name, step.to.name), step.layer.to_owned()];
                row.extend(ratios.iter().map(|r| r.map_or_else(|| NONE.to_owned(), |r| ratio(r.mean))));
                table.rows.push(row);
            }
        }
        if table.rows.is_empty() {
            continue;
        }
        document.heading(format!("Steps, {connections} connections"));
        document.paragraph("Requests per second after ÷ before, where two servers of equal cores differ in one layer.");
        document.table(table);
    }
}

/// Every pair that differs in exactly one layer.
pub(super) fn steps(servers: &[Server]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for (index, to) in servers.iter().enumerate() {
        for from in &servers[index + 1..] {
            if let Some(layer) = only_difference(from, to) {
                steps.push(Step { from, to, layer });
            }
        }
    }
    steps
}

/// A driver and how it is used (prepared, pipelined) are one layer: the contract has it stated because it decides so much.
fn only_difference(a: &Server, b: &Server) -> Option<&'static str> {
    if a.cores != b.cores {
        return None;
    }
    let driver = |server: &Server| (server.driver.clone(), server.prepared, server.pipelined);
    let mut layers = [
        (a.runtime != b.runtime, "runtime"),
        (a.framework != b.framework, "framework"),
        (driver(a) != driver(b), "driver"),
    ]
    .into_iter()
    .filter_map(|(differs, layer)| differs.then_some(layer));
    match (layers.next(), layers.next()) {
        (Some(only), None) => Some(only),
        // The same parts in other hands.
        (None, _) => (a.class != b.class).then_some("tuning"),
        (Some(_), Some(_)) => None,
    }
}
