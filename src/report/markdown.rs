//! A document as Markdown.

use std::fmt::Write as _;

use super::document::{Block, Document, Table};

pub(super) fn render(document: &Document) -> String {
    let mut out = String::new();
    for block in &document.blocks {
        match block {
            Block::Title(text) => line(&mut out, format_args!("# {text}")),
            Block::Heading(text) => line(&mut out, format_args!("## {text}")),
            Block::Paragraph(text) => line(&mut out, format_args!("{text}")),
            Block::Loud(text) => line(&mut out, format_args!("> **{text}**")),
            Block::List(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("- {}", escape(item))).collect();
                line(&mut out, format_args!("{}", items.join("\n")));
            }
            Block::Table(shown) => line(&mut out, format_args!("{}", table(shown))),
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}\n").expect("writing to a string");
}

fn table(table: &Table) -> String {
    let titles: Vec<String> = table.columns.iter().map(|column| escape(&column.title)).collect();
    let rules: Vec<&str> = table.columns.iter().map(|column| if column.number { "--:" } else { "---" }).collect();
    let mut lines = vec![joined(&titles), format!("|{}|", rules.join("|"))];
    lines.extend(table.rows.iter().map(|row| joined(&row.iter().map(|cell| escape(cell)).collect::<Vec<_>>())));
    lines.join("\n")
}

fn joined(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

/// Text of servers (logs, replies) must not end a cell or a line, nor become a tag.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}
