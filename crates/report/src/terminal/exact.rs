//! Exact counts of one program beside its measured CPU ratio.

use heaptoll_lab::comparison::{Comparison, ExactRow, ExactTable};

use super::experiment::{ratio_text, tone};
use super::style::{Style, Tone, right};
use crate::exact;
use crate::format::NONE;

/// Columns of the narrowest terminal that the table is shown on as one; else its figures go into lines.
const NARROWEST: u16 = 56;
/// What a column of figures takes, at most.
const FIGURE: usize = 14;

/// The table, the sentences on what disagrees, and what was left out.
pub(super) fn render(comparison: &Comparison, table: &ExactTable, style: &Style) -> String {
    let mut out = String::new();
    if exact::has_rows(table) {
        out.push_str(&figures(comparison, table, style));
        for text in exact::disagreements(table) {
            out.push_str(&style.paragraph("-", &text, Tone::Plain));
        }
    }
    for note in &table.notes {
        out.push_str(&style.paragraph("-", note, Tone::Plain));
    }
    if exact::has_rows(table) {
        out.push_str(&style.paragraph("-", &exact::sentence(table), Tone::Dim));
    }
    out
}

fn figures(comparison: &Comparison, table: &ExactTable, style: &Style) -> String {
    let headings = exact::headings(table);
    let needed = u16::try_from(16 + headings.len() * FIGURE).unwrap_or(u16::MAX);
    if style.width.is_some_and(|width| width < needed.max(NARROWEST)) {
        return list(comparison, table, &headings, style);
    }
    let all: Vec<&str> = std::iter::once("exact counts")
        .chain(headings.iter().map(String::as_str))
        .chain(["CPU ratio, measured"])
        .collect();
    let mut text = style.table(&all);
    for row in &table.rows {
        let mut cells = vec![style.cell(&row.stack, Tone::Plain)];
        cells.extend(exact::cells(table, row).iter().map(|cell| style.cell(cell, Tone::Plain)));
        cells.push(match &row.cpu {
            Some(interval) => style.cell(&ratio_text(interval, false), tone(interval)),
            None => style.cell(&without(comparison, row), Tone::Dim),
        });
        text.add_row(cells);
    }
    style.pad(&mut text);
    right(&mut text, &(1..=headings.len()).collect::<Vec<_>>());
    style.lines(&text)
}

/// For terminals too narrow for columns.
fn list(comparison: &Comparison, table: &ExactTable, headings: &[String], style: &Style) -> String {
    let mut out = String::new();
    for row in &table.rows {
        let figures: Vec<String> = headings
            .iter()
            .zip(exact::cells(table, row))
            .map(|(heading, cell)| format!("{heading} {cell}"))
            .collect();
        let cpu = row.cpu.as_ref().map_or_else(|| without(comparison, row), |cpu| ratio_text(cpu, false));
        let text = format!("exact counts, {}: {}; CPU ratio {cpu}", row.stack, figures.join(", "));
        out.push_str(&style.paragraph("", &text, Tone::Plain));
    }
    out
}

/// What stands in for a CPU ratio.
fn without(comparison: &Comparison, row: &ExactRow) -> String {
    if row.stack == comparison.baseline { "baseline" } else { NONE }.to_owned()
}
