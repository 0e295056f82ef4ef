//! What the terminal can do, and text and tables made to fit it.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle};

use crate::format::printable;

/// What the terminal can do; the caller finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour (green: claims cheaper; red: claims dearer; dim: no difference seen).
    pub color: bool,
    /// Columns; `None` never wraps, as for a file or a pipe.
    pub width: Option<u16>,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
}

/// What a cell means, for terminals with colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// Nothing in particular.
    Plain,
    /// Claims cheaper, or works.
    Good,
    /// Claims dearer, or is broken.
    Bad,
    /// Nothing was seen.
    Dim,
    /// A heading.
    Bold,
}

impl Style {
    /// Text that may come from anywhere, fit for this terminal.
    pub(super) fn text(&self, text: &str) -> String {
        let text = printable(text);
        if self.unicode {
            return text;
        }
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                c if c.is_ascii() => out.push(c),
                '–' | '─' | '·' => out.push('-'),
                '\u{202f}' | '\u{a0}' => out.push(' '),
                '×' => out.push('x'),
                '…' => out.push_str("..."),
                c => out.extend(c.escape_default()),
            }
        }
        out
    }

    /// A cell; line ends in `text` are kept.
    pub(super) fn cell(&self, text: &str, tone: Tone) -> Cell {
        let lines: Vec<String> = text.split('\n').map(|line| self.text(line)).collect();
        let cell = Cell::new(lines.join("\n"));
        match tone {
            Tone::Plain => cell,
            Tone::Good => cell.fg(Color::Green),
            Tone::Bad => cell.fg(Color::Red),
            Tone::Dim => cell.add_attribute(Attribute::Dim),
            Tone::Bold => cell.add_attribute(Attribute::Bold),
        }
    }

    /// An empty table with these headings: no frame, a line under the head, two spaces between columns.
    pub(super) fn table(&self, headings: &[&str]) -> Table {
        let mut table = self.bare();
        table.set_header(headings.iter().map(|heading| self.cell(heading, Tone::Bold)));
        let line = if self.unicode { '─' } else { '-' };
        let line = LineStyle::none().fill(line).junction(line);
        table.load_style(TableStyle::new().header_separator(line));
        self.pad(&mut table);
        table
    }

    /// An empty table without headings.
    pub(super) fn bare(&self) -> Table {
        let mut table = Table::new();
        table.load_style(TableStyle::new());
        match self.width {
            Some(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.max(24));
            }
            None => {
                table.set_content_arrangement(ContentArrangement::Disabled);
            }
        }
        if self.color {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table
    }

    /// One space after each column; the second is the place of the line between columns that is not drawn.
    pub(super) fn pad(&self, table: &mut Table) {
        for column in table.column_iter_mut() {
            column.set_padding((0, 1));
        }
    }

    /// Lines of a table, without the spaces at their ends.
    pub(super) fn lines(&self, table: &Table) -> String {
        let mut out = String::new();
        for line in table.lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    /// A paragraph, wrapped; the first line begins with `lead`, the others with as many spaces.
    pub(super) fn paragraph(&self, lead: &str, text: &str, tone: Tone) -> String {
        let mut table = self.bare();
        if lead.is_empty() {
            table.add_row([self.cell(text, tone)]);
        } else {
            table.add_row([self.cell(lead, Tone::Plain), self.cell(text, tone)]);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 0));
        }
        if !lead.is_empty()
            && let Some(column) = table.column_mut(0)
        {
            column.set_padding((0, 1));
            column.set_constraint(comfy_table::ColumnConstraint::ContentWidth);
        }
        self.lines(&table)
    }
}

/// Aligns the columns at these positions to the right.
pub(super) fn right(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}
