//! A table in the terminal: a row a name in as many columns as fit.

use heaptoll_units::text_table;

use super::fit::{fit, heading, is_too_narrow, limits};
use super::style::Style;
use crate::document::{Cell, Column, Layout, Table, Tone};

/// Characters of a row's name in a table that is not made a list.
const SHORT_NAME: usize = 8;
/// Columns that a sentence at the end of a row needs before its wrapping hurts, and a name at its beginning.
const LEAST: usize = 22;
/// A name longer than this wraps wherever it is written.
const LONGEST_NAME: usize = 60;
/// A cell of this number of words is a sentence, which may wrap.
const SENTENCE: usize = 3;

/// The table in the widest form that fits, under its caption and above its notes.
pub(super) fn render(table: &Table, style: &Style) -> String {
    let (drawn, notes) = match table.layout {
        Layout::Wide => (wide(table, style), table.notes.clone()),
        layout => {
            let flat = table.flat();
            let is_short_of = |width| layout == Layout::Parts && figures_need(&flat) > usize::from(width);
            let is_list = style.width.is_some_and(is_short_of) || is_too_narrow(&flat, style);
            (if is_list { list(&flat, style) } else { columns(&flat, style) }, flat.notes)
        }
    };
    let caption = style.paragraph("", &table.caption, Tone::Dim);
    let caption = if table.caption.is_empty() { String::new() } else { caption };
    let notes = notes.iter().map(|note| style.paragraph("-", note, Tone::Dim));
    caption + &drawn + &notes.collect::<String>()
}

/// Characters that whole figures need in columns, with a short name in front of them.
fn figures_need(table: &Table) -> usize {
    let figures = table.columns.iter().enumerate().filter(|(_, column)| column.figures);
    let widest = |at: usize| table.rows.iter().map(|row| row[at].text.chars().count()).max().unwrap_or(0);
    SHORT_NAME + figures.map(|(at, _)| 2 + widest(at)).sum::<usize>()
}

/// Rows one under the other: the name, and its figures in a sentence.
fn list(table: &Table, style: &Style) -> String {
    let mut out = String::new();
    for row in &table.rows {
        let Some((name, figures)) = row.split_first() else { continue };
        out += &style.paragraph("", &name.text, Tone::Same);
        let titles = table.columns.iter().skip(1).map(|column| &column.title);
        let figures: Vec<String> =
            titles.zip(figures).map(|(title, figure)| format!("{title}: {}", figure.text)).collect();
        out += &style.paragraph(" ", &figures.join(", "), Tone::Dim);
    }
    out
}

fn columns(table: &Table, style: &Style) -> String {
    let headings: Vec<String> = (0..table.columns.len()).map(|at| heading(table, at, style)).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut drawn = style.table(&headings);
    let limits: Vec<_> = (0..table.columns.len()).map(|at| limits(table, at, style)).collect();
    for row in &table.rows {
        drawn.row(row.iter().zip(&limits).map(|(cell, limits)| match limits {
            Some(limits) => style.cell(&fit(&cell.text, *limits), cell.tone),
            None => style.cell(&cell.text, cell.tone),
        }));
    }
    drawn.figures((0..table.columns.len()).filter(|&at| table.columns[at].figures));
    style.lines(&drawn)
}

/// All columns where they fit. Where they do not, intervals go under their ratios, then optional columns are left out,
/// then the figures of a row go into sentences.
fn wide(table: &Table, style: &Style) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    for (split, optional) in [(false, true), (true, true), (true, false)] {
        let shown: Vec<usize> =
            (0..table.columns.len()).filter(|&at| optional || !table.columns[at].optional).collect();
        let first = filled(table, &shown, style, split, LEAST);
        let widths = first.widths();
        let last = shown.len().saturating_sub(1);
        let needs = |(at, width): (usize, &usize)| match at {
            0 => (*width).min(LEAST) + 2,
            at if at == last && wraps(table, shown[at]) => (*width).min(LEAST) + 2,
            _ => width + 2,
        };
        let needed: usize = widths.iter().enumerate().map(needs).sum();
        let longest = widths.first().copied().unwrap_or(0);
        let spare = style.width.map_or(Some(LONGEST_NAME), |width| usize::from(width).checked_sub(needed));
        match spare {
            Some(spare) if longest > LEAST && spare > 0 => {
                return style.lines(&filled(table, &shown, style, split, (LEAST + spare).min(LONGEST_NAME)));
            }
            Some(_) => return style.lines(&first),
            None => {}
        }
    }
    lines(table, style)
}

/// Whether the cells of a column are sentences, not figures or a ratio.
fn wraps(table: &Table, at: usize) -> bool {
    let is_sentence = |cell: &Cell| cell.range.is_empty() && cell.text.split(' ').count() >= SENTENCE;
    !table.columns[at].figures && table.rows.iter().filter_map(|row| row.get(at)).any(is_sentence)
}

/// Whether figures of a column have intervals.
fn has_ranges(table: &Table, at: usize) -> bool {
    table.rows.iter().filter_map(|row| row.get(at)).any(|cell| !cell.range.is_empty())
}

fn filled(
    table: &Table,
    shown: &[usize],
    style: &Style,
    split: bool,
    name_width: usize,
) -> text_table::Table {
    let heading = |column: &Column| match split {
        true => column.title.replacen(", ", ",\n", 1),
        false => column.title.clone(),
    };
    let headings: Vec<String> = shown.iter().map(|&at| heading(&table.columns[at])).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let mut drawn = style.table(&headings);
    for row in &table.rows {
        let cells = shown.iter().filter_map(|&at| row.get(at));
        drawn.row(cells.map(|cell| style.cell(&text(cell, split), cell.tone)));
    }
    let last = shown.len() - 1;
    for (index, column) in drawn.columns().iter_mut().enumerate() {
        match index {
            0 => column.most = Some(name_width),
            index => column.whole = index < last || !wraps(table, shown[index]),
        }
    }
    // Intervals are of different lengths: with them the ratios stand under each other on the left.
    let figures =
        (0..shown.len()).filter(|&at| table.columns[shown[at]].figures && !has_ranges(table, shown[at]));
    drawn.figures(figures);
    drawn
}

/// For terminals too narrow for columns: the name, and its figures one below the other.
fn lines(table: &Table, style: &Style) -> String {
    let mut out = String::new();
    for row in &table.rows {
        let Some((name, cells)) = row.split_first() else { continue };
        out += &style.paragraph("", &text(name, false), name.tone);
        for (column, cell) in table.columns.iter().skip(1).zip(cells) {
            let figure = text(cell, false);
            let line = if column.title.is_empty() { figure } else { format!("{}: {figure}", column.title) };
            out += &style.paragraph(" ", &line, cell.tone);
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
