//! Where the CPU went: the three parts of a request's cost, every server on every route, in one table.

use super::document::{Column, Document, Table};
use super::figures::Cell;
use super::number::{NONE, whole_us};
use super::overview::shown_name;
use crate::record::{Cores, Record, Window};

pub(super) fn write(record: &Record, document: &mut Document) {
    let routes = &record.run.settings.routes;
    for &connections in &record.run.settings.connections {
        // Where the terminal is narrow, the last routes go first.
        let spare = |index: usize| u8::try_from(index).unwrap_or(u8::MAX);
        let routes_columns = routes.iter().enumerate().map(|(index, route)| Column::number(route).spare(spare(index)));
        let columns = std::iter::once(Column::text("server")).chain(routes_columns).collect();
        let mut table = Table { columns, rows: Vec::new() };
        for cores in [Cores::One, Cores::All] {
            for server in record.run.servers.iter().filter(|server| server.cores == cores) {
                let costs = routes.iter().map(|route| parts(&Cell::of(record, &server.name, route, connections)));
                let costs: Vec<String> = costs.collect();
                if costs.iter().any(|cost| cost != NONE) {
                    table.rows.push(std::iter::once(shown_name(record, server)).chain(costs).collect());
                }
            }
        }
        if !table.rows.is_empty() {
            document.heading(format!("CPU per request in µs, {connections} connections: server + Postgres + driver"));
        }
        document.table(table);
    }
}

/// `11+12+7`; the sections of the routes show decimals.
fn parts(cell: &Cell<'_>) -> String {
    let part = |value: fn(&Window) -> Option<u64>| {
        cell.sample(|window| value(window).map(|ns| ns as f64)).map(|sample| whole_us(sample.median()))
    };
    let server = part(|window| window.cpu_ns_per_request.server);
    let postgres = part(|window| window.cpu_ns_per_request.postgres);
    let driver = part(|window| window.cpu_ns_per_request.driver);
    if server.is_none() && driver.is_none() {
        return NONE.to_owned();
    }
    [server, postgres, driver].map(|part| part.unwrap_or_else(|| "?".to_owned())).join("+")
}
