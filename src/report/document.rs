//! What a report says, before anybody decided how it looks.

/// Blocks in reading order.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) blocks: Vec<Block>,
}

#[derive(Debug)]
pub(super) enum Block {
    /// Once.
    Title(String),
    /// Starts a section.
    Heading(String),
    Paragraph(String),
    /// Must not be overlooked.
    Loud(String),
    List(Vec<String>),
    Table(Table),
}

/// Cells are text; a row may be shorter than the header.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) title: String,
    /// Numbers stand on the right.
    pub(super) number: bool,
    /// Where the width does not suffice, columns with the highest value go first; 0 always stays.
    pub(super) spare: u8,
}

impl Column {
    pub(super) fn text(title: &str) -> Self {
        Self { title: title.to_owned(), number: false, spare: 0 }
    }

    pub(super) fn number(title: &str) -> Self {
        Self { title: title.to_owned(), number: true, spare: 0 }
    }

    pub(super) fn spare(self, spare: u8) -> Self {
        Self { spare, ..self }
    }
}

impl Document {
    pub(super) fn title(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Title(text.into()));
    }

    pub(super) fn heading(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Heading(text.into()));
    }

    pub(super) fn paragraph(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Paragraph(text.into()));
    }

    pub(super) fn loud(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Loud(text.into()));
    }

    /// Nothing where the list is empty.
    pub(super) fn list(&mut self, items: Vec<String>) {
        if !items.is_empty() {
            self.blocks.push(Block::List(items));
        }
    }

    /// Nothing where the table has no rows.
    pub(super) fn table(&mut self, table: Table) {
        if !table.rows.is_empty() {
            self.blocks.push(Block::Table(table));
        }
    }
}

/// Numbered notes under a table; the same text has the same number.
#[derive(Debug, Default)]
pub(super) struct Notes {
    texts: Vec<String>,
}

impl Notes {
    /// `[2]`, to stand behind a figure.
    pub(super) fn mark(&mut self, text: String) -> String {
        let known = self.texts.iter().position(|known| *known == text);
        let index = known.unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        });
        format!("[{}]", index + 1)
    }

    pub(super) fn lines(self) -> Vec<String> {
        self.texts.into_iter().enumerate().map(|(index, text)| format!("[{}] {text}", index + 1)).collect()
    }
}
