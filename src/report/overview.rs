//! The first table: every server on every route, with both headrooms.

use super::document::{Column, Document, Notes, Table};
use super::figures::{Cell, base_of, cpu_headroom, headroom, is_base};
use super::number::{NONE, rate, ratio};
use super::trouble::why_missing;
use crate::record::{Cores, Record, Server};
use crate::stats::Ratio;

pub(super) fn write(record: &Record, document: &mut Document) {
    for &connections in &record.run.settings.connections {
        document.heading(format!("Requests per second, {connections} connections"));
        let mut notes = Notes::default();
        let mut table = Table { columns: columns(record), rows: Vec::new() };
        // Rows on all cores come last: nothing above them is divided by anything below.
        for cores in [Cores::One, Cores::All] {
            for server in record.run.servers.iter().filter(|server| server.cores == cores) {
                rows(record, server, connections, &mut table, &mut notes);
            }
        }
        document.table(table);
        document.list(notes.lines());
    }
}

fn columns(record: &Record) -> Vec<Column> {
    let routes = record.run.settings.routes.iter().map(|route| Column::number(route));
    std::iter::once(Column::text("server")).chain(routes).collect()
}

fn rows(record: &Record, server: &Server, connections: u32, table: &mut Table, notes: &mut Notes) {
    let routes = &record.run.settings.routes;
    let cells: Vec<Cell<'_>> = routes.iter().map(|r| Cell::of(record, &server.name, r, connections)).collect();
    let mut rates = vec![shown_name(record, server)];
    for (cell, route) in cells.iter().zip(routes) {
        rates.push(shown_rate(record, server, cell, route, connections, notes));
    }
    table.rows.push(rates);
    let Some(base) = base_of(record, server) else { return };
    let bases: Vec<Cell<'_>> = routes.iter().map(|r| Cell::of(record, &base.name, r, connections)).collect();
    let mut line = |title: &str, of: fn(&Cell<'_>, &Cell<'_>) -> Option<Ratio>| {
        let ratios: Vec<Option<Ratio>> = bases.iter().zip(&cells).map(|(base, cell)| of(base, cell)).collect();
        if ratios.iter().any(Option::is_some) {
            let texts = ratios.iter().map(|r| r.map_or_else(|| NONE.to_owned(), |r| ratio(r.mean)));
            table.rows.push(std::iter::once(title.to_owned()).chain(texts).collect());
        }
    };
    line("· headroom", headroom);
    line("· CPU headroom", cpu_headroom);
}

/// The name, and what its rows stand for where that is not plain.
pub(super) fn shown_name(record: &Record, server: &Server) -> String {
    match server.cores {
        Cores::All => format!("{} (all cores)", server.name),
        Cores::One if is_base(record, server) => format!("{} (base)", server.name),
        Cores::One => server.name.clone(),
    }
}

/// The median over valid rounds, with a mark where some or all windows are void or missing.
pub(super) fn shown_rate(
    record: &Record,
    server: &Server,
    cell: &Cell<'_>,
    route: &str,
    connections: u32,
    notes: &mut Notes,
) -> String {
    if let Some(sample) = cell.rate() {
        let missing = (record.run.settings.rounds as usize).saturating_sub(sample.len());
        let mark = match missing {
            0 => String::new(),
            _ => notes.mark(format!(
                "{missing} of {} rounds have no valid window and are left out",
                record.run.settings.rounds
            )),
        };
        return format!("{}{mark}", rate(sample.median()));
    }
    let mark = notes.mark(why_missing(record, server, cell, route, connections));
    if cell.void() { format!("void{mark}") } else { format!("{NONE}{mark}") }
}
