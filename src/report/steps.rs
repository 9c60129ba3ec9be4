//! Steps: two servers of equal cores that differ in one layer, so that a ratio has one cause.

use super::document::{Column, Document, Table};
use super::figures::{Cell, headroom};
use super::number::{NONE, ratio};
use crate::record::{self, Record, Server};

/// What a step changes; `to` stands earlier in the run's list than `from`.
#[derive(Debug, PartialEq)]
pub(super) struct Step<'a> {
    pub(super) from: &'a Server,
    pub(super) to: &'a Server,
    pub(super) layer: &'static str,
}

pub(super) fn write(record: &Record, document: &mut Document) {
    let steps = steps(&record.run.servers);
    for &connections in &record.run.settings.connections {
        let mut found = table(record);
        for Step { from, to, layer } in &steps {
            found.rows.extend(row(record, (from, to), connections, format!("{} → {}", from.name, to.name), layer));
        }
        let mut asked = table(record);
        for chain in chains(&record.run.settings.steps) {
            chain_rows(record, &chain, connections, &mut asked);
        }
        for (table, what) in [(asked, "the suite asks for"), (found, "of equal cores that differ in one layer")] {
            if !table.rows.is_empty() {
                document.heading(format!("Steps, {connections} connections"));
                document.paragraph(format!("Requests per second after ÷ before, between servers {what}."));
                document.table(table);
            }
        }
    }
}

fn table(record: &Record) -> Table {
    let mut columns = vec![Column::text("from → to"), Column::text("changes")];
    columns.extend(record.run.settings.routes.iter().map(|route| Column::number(route)));
    Table { columns, rows: Vec::new() }
}

/// Nothing where no route has a ratio.
fn row(
    record: &Record,
    (from, to): (&Server, &Server),
    connections: u32,
    title: String,
    changes: &str,
) -> Option<Vec<String>> {
    let ratios = ratios(record, from, to, connections);
    ratios.iter().any(Option::is_some).then(|| [title, changes.to_owned()].into_iter().chain(texts(&ratios)).collect())
}

/// One a route.
fn ratios(record: &Record, from: &Server, to: &Server, connections: u32) -> Vec<Option<f64>> {
    let of = |server: &Server, route: &str| Cell::of(record, &server.name, route, connections);
    let ratio = |route: &String| headroom(&of(to, route), &of(from, route)).map(|ratio| ratio.mean);
    record.run.settings.routes.iter().map(ratio).collect()
}

fn texts(ratios: &[Option<f64>]) -> impl Iterator<Item = String> {
    ratios.iter().map(|value| value.map_or_else(|| NONE.to_owned(), ratio))
}

/// The steps of a chain, their product, and the ratio of its ends measured directly: the two differ where rounds are void
/// in one row and not in another, and say by their distance how far the steps can be trusted.
fn chain_rows(record: &Record, chain: &[&record::Step], connections: u32, table: &mut Table) {
    let server = |name: &str| record.run.servers.iter().find(|server| server.name == name);
    // A ratio never mixes cores: such a step is a mistake of the suite and has no row.
    let between = |from: &str, to: &str| server(from).zip(server(to)).filter(|(from, to)| from.cores == to.cores);
    let mut product: Vec<Option<f64>> = vec![Some(1.0); record.run.settings.routes.len()];
    for step in chain {
        let Some((from, to)) = between(&step.from, &step.to) else { return };
        let title = format!("{} → {}", from.name, to.name);
        table.rows.extend(row(record, (from, to), connections, title, &step.changes));
        let ratios = ratios(record, from, to, connections);
        product.iter_mut().zip(ratios).for_each(|(product, ratio)| *product = product.zip(ratio).map(|(a, b)| a * b));
    }
    let (Some(first), Some(last)) = (chain.first(), chain.last()) else { return };
    let Some((from, to)) = between(&first.from, &last.to).filter(|_| chain.len() > 1) else { return };
    let title = |what: &str| [format!("· {what}"), format!("{} → {}", from.name, to.name)];
    table.rows.push(title("product").into_iter().chain(texts(&product)).collect());
    let direct = ratios(record, from, to, connections);
    table.rows.push(title("direct").into_iter().chain(texts(&direct)).collect());
}

/// Steps of which each begins where the one before ended.
pub(super) fn chains(steps: &[record::Step]) -> Vec<Vec<&record::Step>> {
    let mut chains: Vec<Vec<&record::Step>> = Vec::new();
    for step in steps {
        match chains.last_mut().filter(|chain| chain.last().is_some_and(|last| last.to == step.from)) {
            Some(chain) => chain.push(step),
            None => chains.push(vec![step]),
        }
    }
    chains
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
