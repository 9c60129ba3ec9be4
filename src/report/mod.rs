//! Records → terminal and Markdown. Measures nothing, reads no file and no clock: the same record gives the same bytes.
//!
//! [`document`](self) decides what is said, once; `terminal` and `markdown` only decide how it looks.

mod beside;
mod costs;
mod document;
mod facts;
mod figures;
mod markdown;
mod number;
mod overview;
mod routes;
mod steps;
mod terminal;
#[cfg(test)]
mod tests;
mod threshold;
mod trouble;
mod words;

pub use beside::Named;
pub use threshold::{Share, Threshold};

use crate::record::Record;
use document::Document;

/// How a terminal shows a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns; tables leave out what does not fit and say so.
    pub width: usize,
    /// Bold and red, by escape sequences.
    pub colour: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self { width: 120, colour: false }
    }
}

/// The first look, for a terminal: what came out, where the CPU went, what went wrong. The rest is in the Markdown report.
pub fn terminal(record: &Record, look: Look) -> String {
    let mut document = Document::default();
    findings(record, &mut document);
    trouble::failed_servers(record, &mut document);
    terminal::render(&document, look)
}

/// The whole report, as Markdown.
pub fn markdown(record: &Record) -> String {
    let mut document = Document::default();
    findings(record, &mut document);
    steps::write(record, &mut document);
    routes::write(record, &mut document);
    trouble::failed_servers(record, &mut document);
    trouble::uncounted(record, &mut document);
    trouble::invalid_windows(record, &mut document);
    facts::servers(record, &mut document);
    facts::conditions(record, &mut document);
    words::write(record, &mut document);
    markdown::render(&document)
}

/// Requests per second and headrooms with where and how they were measured, as Markdown to be put into another document.
pub fn summary(record: &Record) -> String {
    let mut document = Document::default();
    document.paragraph(format!("{}; {}.", facts::when_and_how(record), facts::host_line(record)));
    trouble::debug_build(record, &mut document);
    trouble::busy_host(record, &mut document);
    trouble::loosened_limits(record, &mut document);
    overview::write(record, &mut document);
    markdown::render(&document)
}

/// What each server reaches of the native row it is divided by.
pub fn shares(record: &Record) -> Vec<Share> {
    figures::shares(record)
}

/// Several records side by side, as Markdown.
pub fn beside_markdown(records: &[Named<'_>]) -> String {
    let mut document = Document::default();
    beside::write(records, &mut document);
    markdown::render(&document)
}

/// The same for a terminal.
pub fn beside_terminal(records: &[Named<'_>], look: Look) -> String {
    let mut document = Document::default();
    beside::write(records, &mut document);
    terminal::render(&document, look)
}

fn findings(record: &Record, document: &mut Document) {
    facts::opening(record, document);
    trouble::debug_build(record, document);
    trouble::busy_host(record, document);
    trouble::loosened_limits(record, document);
    trouble::loud(record, document);
    overview::write(record, document);
    costs::write(record, document);
}
