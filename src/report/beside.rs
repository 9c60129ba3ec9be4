//! Two or more records side by side: each with its own figures, none divided by another.

use std::collections::BTreeSet;

use super::document::{Column, Document, Table};
use super::facts::{host_line, when_and_how};
use super::figures::{Cell, base_of, headroom};
use super::number::{NONE, rate, ratio};
use super::overview::shown_name;
use crate::record::{Record, Server};

/// A record and how its column is called.
pub type Named<'a> = (&'a str, &'a Record);

pub(super) fn write(records: &[Named<'_>], document: &mut Document) {
    document.title("Records side by side");
    let of = |(name, record): &Named<'_>| format!("{name}: {}; {}", when_and_how(record), host_line(record));
    document.list(records.iter().map(of).collect());
    document.paragraph(
        "A rate belongs to its host and its conditions: compare the headrooms, which each record takes within its own rounds. \
         Nothing here is scaled from one host to another.",
    );
    for connections in numbers(records) {
        for route in routes(records) {
            let table = table(records, &route, connections);
            if !table.rows.is_empty() {
                document.heading(format!("Route {route}, {connections} connections: requests/s and headroom"));
            }
            document.table(table);
        }
    }
}

fn numbers(records: &[Named<'_>]) -> BTreeSet<u32> {
    records.iter().flat_map(|(_, record)| record.run.settings.connections.iter().copied()).collect()
}

/// In the order of the first record that has them.
fn routes(records: &[Named<'_>]) -> Vec<String> {
    let all = records.iter().flat_map(|(_, record)| &record.run.settings.routes);
    in_order(all.map(String::as_str)).into_iter().map(str::to_owned).collect()
}

fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect()
}

/// A row for each server that any of the records measured here.
fn table(records: &[Named<'_>], route: &str, connections: u32) -> Table {
    let mut columns = vec![Column::text("server")];
    for (name, _) in records {
        columns.extend([Column::number(name), Column::number("headroom")]);
    }
    let servers = in_order(records.iter().flat_map(|(_, record)| record.run.servers.iter().map(|s| s.name.as_str())));
    let rows = servers.into_iter().filter_map(|name| {
        let entries: Vec<Option<(&Record, &Server)>> = records
            .iter()
            .map(|(_, record)| Some((*record, record.run.servers.iter().find(|server| server.name == name)?)))
            .collect();
        let figures: Vec<[String; 2]> = entries.iter().map(|entry| figures(*entry, route, connections)).collect();
        let (record, server) = entries.iter().flatten().next()?;
        let measured = figures.iter().any(|[rate, _]| rate != NONE);
        measured.then(|| std::iter::once(shown_name(record, server)).chain(figures.into_iter().flatten()).collect())
    });
    let rows = rows.collect();
    Table { columns, rows }
}

fn figures(entry: Option<(&Record, &Server)>, route: &str, connections: u32) -> [String; 2] {
    let none = || NONE.to_owned();
    let Some((record, server)) = entry else { return [none(), none()] };
    let cell = |server: &Server| Cell::of(record, &server.name, route, connections);
    let base = base_of(record, server);
    let over = base.and_then(|base| headroom(&cell(base), &cell(server)));
    [
        cell(server).rate().map_or_else(none, |sample| rate(sample.median())),
        over.map_or_else(none, |over| ratio(over.mean)),
    ]
}
