//! Exact counts of one program next to its measured CPU ratio.

use comfy_table::Table;
use heaptoll_experiment::comparison::{Comparison, ExactRow, ExactTable};

use super::ratio::{ratio_text, tone};
use super::style::{Style, Tone, right};
use crate::exact;
use crate::format::NONE;

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

/// As wide a table as fits, the interval on the line of its ratio or under it; else lines.
fn figures(comparison: &Comparison, table: &ExactTable, style: &Style) -> String {
    for split in [false, true] {
        let filled = filled(comparison, table, style, split);
        let needed: u16 = filled.column_max_content_widths().iter().map(|width| width + 2).sum();
        if style.width.is_none_or(|width| width >= needed) {
            return style.lines(&filled);
        }
    }
    list(comparison, table, style)
}

fn filled(comparison: &Comparison, table: &ExactTable, style: &Style, split: bool) -> Table {
    let headings = exact::headings(table);
    let measured = if split { "CPU ratio,\nmeasured" } else { "CPU ratio, measured" };
    let all: Vec<&str> = std::iter::once("exact counts")
        .chain(headings.iter().map(String::as_str))
        .chain([measured])
        .collect();
    let mut text = style.table(&all);
    for row in &table.rows {
        let mut cells = vec![style.cell(&row.stack, Tone::Plain)];
        cells.extend(exact::cells(table, row).iter().map(|cell| style.cell(cell, Tone::Plain)));
        cells.push(match &row.cpu {
            Some(interval) => style.cell(&ratio_text(interval, split), tone(interval)),
            None => style.cell(&without(comparison, row), Tone::Dim),
        });
        text.add_row(cells);
    }
    style.pad(&mut text);
    right(&mut text, &(1..=headings.len()).collect::<Vec<_>>());
    text
}

/// For terminals too narrow for columns.
fn list(comparison: &Comparison, table: &ExactTable, style: &Style) -> String {
    let headings = exact::headings(table);
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
