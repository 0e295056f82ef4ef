//! Exact counts of a program next to its measured CPU ratio.

use heaptoll_experiment::comparison::{Comparison, ExactRow, ExactTable};

use super::exact_text;
use super::parts::name;
use crate::document::{Cell, Column, Grid, Item, Part};
use crate::format::NONE;

/// The table, the sentences on what disagrees, and what was left out.
pub(super) fn part(comparison: &Comparison, table: &ExactTable) -> Part {
    let row = |row: &ExactRow| {
        let words = if row.stack == comparison.baseline { "baseline" } else { NONE };
        let counts = exact_text::cells(table, row).into_iter().map(Cell::text);
        let cpu = Cell::ratio(row.cpu.as_ref(), words);
        std::iter::once(name(&row.stack, &comparison.baseline)).chain(counts).chain([cpu]).collect()
    };
    let mut notes = exact_text::disagreements(table);
    notes.extend(table.notes.iter().cloned());
    let mut columns = vec![Column::text("exact counts")];
    if exact_text::has_rows(table) {
        notes.push(exact_text::sentence(table));
        columns.extend(exact_text::headings(table).iter().map(|heading| Column::figures(heading)));
        columns.push(Column::figures("CPU ratio, measured"));
    }
    let rows = table.rows.iter().map(row).collect();
    let grid = Grid { columns, rows, wide: true, notes, ..Grid::default() };
    Part { title: "Exact counts".into(), items: vec![Item::Grid(grid)], ..Part::default() }
}
