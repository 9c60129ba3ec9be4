//! A document for a terminal of a given width.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use super::Look;
use super::document::{Block, Document, Table};

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[1;31m";
const PLAIN: &str = "\u{1b}[0m";
/// Space between columns.
const GAP: usize = 2;
/// Nothing can be laid out in fewer columns.
const MIN_WIDTH: usize = 40;

pub(super) fn render(document: &Document, look: Look) -> String {
    let width = look.width.max(MIN_WIDTH);
    let dressed = |style: &str, text: String| if look.colour { format!("{style}{text}{PLAIN}") } else { text };
    let blocks: Vec<String> = document
        .blocks
        .iter()
        .map(|block| match block {
            Block::Title(text) | Block::Heading(text) => dressed(BOLD, wrap(&printable(text), width, "", "")),
            Block::Paragraph(text) => wrap(&printable(text), width, "", ""),
            Block::Loud(text) => dressed(RED, wrap(&printable(text), width, "!! ", "!! ")),
            Block::List(items) => {
                let items: Vec<String> = items.iter().map(|item| wrap(&printable(item), width, "- ", "  ")).collect();
                items.join("\n")
            }
            Block::Table(shown) => table(shown, width),
        })
        .collect();
    blocks.join("\n\n") + "\n"
}

/// Leaves out spare columns until the rest fits; what still does not is wrapped within its cells.
fn table(table: &Table, width: usize) -> String {
    let natural = natural_widths(table);
    let (kept, dropped) = fitting(table, &natural, width);
    let mut drawn = comfy_table::Table::new();
    drawn.load_style(comfy_table::TableStyle::new());
    // No junctions: one would cost a column between any two.
    drawn.style_mut().header_separator.fill = Some('─');
    drawn.set_content_arrangement(ContentArrangement::Dynamic);
    drawn.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    drawn.set_header(kept.iter().map(|&index| table.columns[index].title.clone()));
    for row in &table.rows {
        drawn.add_row(kept.iter().map(|&index| row.get(index).map_or_else(String::new, |cell| printable(cell))));
    }
    let fits = widest(&kept, &natural) <= width;
    for (position, &index) in kept.iter().enumerate() {
        let column = drawn.column_mut(position).expect("one column for each title");
        let gap = if position + 1 == kept.len() { 0 } else { GAP };
        column.set_padding((0, u16::try_from(gap).expect("a gap is small")));
        // Left alone, the arrangement squeezes names and figures for the sake of titles.
        if fits || table.columns[index].number {
            let cells = u16::try_from(natural[index] + gap).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(cells)));
        }
        if table.columns[index].number {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text: Vec<String> = drawn.lines().map(|line| line.trim_end().to_owned()).collect();
    if !dropped.is_empty() {
        text.push(wrap(&format!("(left out at this width: {})", dropped.join(", ")), width, "", ""));
    }
    text.join("\n")
}

fn natural_widths(table: &Table) -> Vec<usize> {
    // Titles may wrap at spaces, so only their longest word counts.
    let title = |text: &str| text.split(' ').map(columns_of).max().unwrap_or(0);
    let cells = |index: usize| table.rows.iter().filter_map(move |row| row.get(index)).map(|cell| columns_of(cell));
    (0..table.columns.len()).map(|i| cells(i).max().unwrap_or(0).max(title(&table.columns[i].title))).collect()
}

/// Of these columns side by side, none wrapped.
fn widest(kept: &[usize], natural: &[usize]) -> usize {
    (kept.iter().map(|&index| natural[index] + GAP).sum::<usize>()).saturating_sub(GAP)
}

/// Indices of the columns that stay, titles of those that go.
fn fitting(table: &Table, natural: &[usize], width: usize) -> (Vec<usize>, Vec<String>) {
    let mut kept: Vec<usize> = (0..table.columns.len()).collect();
    let mut dropped = Vec::new();
    // Each turn takes one column away: bounded by their number.
    while widest(&kept, natural) > width {
        let sparest = kept.iter().copied().max_by_key(|&index| table.columns[index].spare);
        let Some(index) = sparest.filter(|&index| table.columns[index].spare > 0) else { break };
        kept.retain(|&other| other != index);
        dropped.push(table.columns[index].title.clone());
    }
    (kept, dropped)
}

/// Figures use no wide characters: one column each.
fn columns_of(text: &str) -> usize {
    text.chars().count()
}

/// What a server wrote may hold escape sequences; none reaches the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Breaks at spaces; a longer word stays whole, since it is most likely a path to be copied.
fn wrap(text: &str, width: usize, first: &str, rest: &str) -> String {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && columns_of(&line) + 1 + columns_of(word) > width {
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    lines.push(line);
    lines.join("\n")
}
