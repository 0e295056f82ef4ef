//! A wide grid in the terminal: a row a name in as many columns as fit. Where they do not, intervals go under their
//! ratios, then optional columns are left out, then the figures of a row go into sentences.

use heaptoll_units::text_table::Table;

use super::style::{Style, Tone};
use crate::document::{Cell, Column, Grid, Tone as Claim};

/// Columns that a sentence at the end of a row needs before its wrapping hurts, and a name at its beginning.
const LEAST: usize = 22;
/// A name longer than this wraps wherever it is written.
const LONGEST_NAME: usize = 60;
/// So many words of a cell are a sentence, which may wrap.
const SENTENCE: usize = 3;

/// The grid in the widest form that fits.
pub(super) fn render(grid: &Grid, style: &Style) -> String {
    if grid.rows.is_empty() {
        return String::new();
    }
    for (split, optional) in [(false, true), (true, true), (true, false)] {
        let shown: Vec<usize> =
            (0..grid.columns.len()).filter(|&at| optional || !grid.columns[at].optional).collect();
        let first = filled(grid, &shown, style, split, LEAST);
        let widths = first.widths();
        let last = shown.len().saturating_sub(1);
        let needs = |(at, width): (usize, &usize)| match at {
            0 => (*width).min(LEAST) + 2,
            at if at == last && wraps(grid, shown[at]) => (*width).min(LEAST) + 2,
            _ => width + 2,
        };
        let needed: usize = widths.iter().enumerate().map(needs).sum();
        let longest = widths.first().copied().unwrap_or(0);
        let spare = style.width.map_or(Some(LONGEST_NAME), |width| usize::from(width).checked_sub(needed));
        match spare {
            Some(spare) if longest > LEAST && spare > 0 => {
                return style.lines(&filled(grid, &shown, style, split, (LEAST + spare).min(LONGEST_NAME)));
            }
            Some(_) => return style.lines(&first),
            None => {}
        }
    }
    list(grid, style)
}

/// Whether the cells of a column are sentences, not figures or a ratio.
fn wraps(grid: &Grid, at: usize) -> bool {
    let is_sentence = |cell: &Cell| cell.range.is_empty() && cell.text.split(' ').count() >= SENTENCE;
    !grid.columns[at].figures && grid.rows.iter().filter_map(|row| row.get(at)).any(is_sentence)
}

/// Whether figures of a column have intervals.
fn has_ranges(grid: &Grid, at: usize) -> bool {
    grid.rows.iter().filter_map(|row| row.get(at)).any(|cell| !cell.range.is_empty())
}

fn filled(grid: &Grid, shown: &[usize], style: &Style, split: bool, name_width: usize) -> Table {
    let heading = |column: &Column| match split {
        true => column.title.replacen(", ", ",\n", 1),
        false => column.title.clone(),
    };
    let headings: Vec<String> = shown.iter().map(|&at| heading(&grid.columns[at])).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut table = style.table(&headings);
    for row in &grid.rows {
        let cells = shown.iter().filter_map(|&at| row.get(at));
        table.row(cells.map(|cell| style.cell(&text(cell, split), cell.tone())));
    }
    let last = shown.len() - 1;
    for (index, column) in table.columns().iter_mut().enumerate() {
        match index {
            0 => column.most = Some(name_width),
            index => column.whole = index < last || !wraps(grid, shown[index]),
        }
    }
    // Intervals are of different lengths: with them the ratios stand under each other on the left.
    let figures =
        (0..shown.len()).filter(|&at| grid.columns[shown[at]].figures && !has_ranges(grid, shown[at]));
    table.figures(figures);
    table
}

/// For terminals too narrow for columns: the name, and its figures one below the other.
fn list(grid: &Grid, style: &Style) -> String {
    let mut out = String::new();
    for row in &grid.rows {
        let Some((name, cells)) = row.split_first() else { continue };
        out += &style.paragraph("", &text(name, false), name.tone());
        for (column, cell) in grid.columns.iter().skip(1).zip(cells) {
            let figure = text(cell, false);
            let line = if column.title.is_empty() { figure } else { format!("{}: {figure}", column.title) };
            out += &style.paragraph(" ", &line, cell.tone());
        }
    }
    out
}

/// The cell with its interval, on one line or two; `!` marks what warnings explain.
fn text(cell: &Cell, split: bool) -> String {
    let mark = if cell.marks.is_empty() { "" } else { "! " };
    let between = if split { "\n" } else { " " };
    match cell.range.is_empty() {
        true => format!("{mark}{}", cell.text),
        false => format!("{mark}{}{between}{}", cell.text, cell.range),
    }
}

impl Cell {
    /// Its colour.
    pub(super) fn tone(&self) -> Tone {
        match self.tone {
            Claim::Less => Tone::Good,
            Claim::More => Tone::Bad,
            Claim::Same => Tone::Plain,
            Claim::Dim => Tone::Dim,
            Claim::Strong => Tone::Bold,
        }
    }
}
