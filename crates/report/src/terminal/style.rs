//! What the terminal can do, and text and tables made to fit it.

use heaptoll_units::text_table::{Cell, Table, wrapped};

use crate::document::Tone;
use crate::format::printable;

/// Columns below which nothing becomes narrower.
const NARROWEST: usize = 24;

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

/// What a terminal with colours shows a tone by: green claims less, or works; red claims more, or is broken.
fn code(tone: Tone) -> &'static str {
    match tone {
        Tone::Same => "",
        Tone::Less => "\u{1b}[38;5;10m",
        Tone::More => "\u{1b}[38;5;9m",
        Tone::Dim => "\u{1b}[2m",
        Tone::Strong => "\u{1b}[1m",
    }
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
        Cell { text: lines.join("\n"), code: if self.color { code(tone) } else { "" } }
    }

    /// An empty table with these headings, or without where all are empty.
    pub(super) fn table(&self, headings: &[&str]) -> Table {
        let named = headings.iter().any(|heading| !heading.is_empty());
        Table::new(headings.iter().filter(|_| named).map(|heading| self.cell(heading, Tone::Strong)))
    }

    /// Lines of a table.
    pub(super) fn lines(&self, table: &Table) -> String {
        let lines = table.lines(self.columns(), if self.unicode { '─' } else { '-' });
        lines.iter().flat_map(|line| [line, "\n"]).collect()
    }

    /// A paragraph, wrapped; the first line begins with `lead`, the others with as many spaces.
    pub(super) fn paragraph(&self, lead: &str, text: &str, tone: Tone) -> String {
        let (lead, cell) = (self.text(lead), self.cell(text, tone));
        let lead = if lead.is_empty() { lead } else { lead + " " };
        let width = self.columns().map_or(usize::MAX, |width| width.saturating_sub(lead.len()));
        let mut out = String::new();
        for (number, line) in wrapped(&cell.text, width).iter().enumerate() {
            let before = if number == 0 { lead.clone() } else { " ".repeat(lead.len()) };
            out += format!("{before}{}", cell.shown(line.trim_end())).trim_end();
            out.push('\n');
        }
        out
    }

    /// Columns to keep to.
    fn columns(&self) -> Option<usize> {
        self.width.map(|width| usize::from(width).max(NARROWEST))
    }
}
