//! Exact counts of a program next to its measured CPU ratio.

use heaptoll_experiment::comparison::{Comparison, ExactRow, ExactTable};

use super::exact_text::{self, cell};
use super::parts::name;
use crate::document::{Cell, Column, Part, Table};
use crate::format::NONE;

/// The table, the sentences on what disagrees, and what was left out.
pub(super) fn part(comparison: &Comparison, table: &ExactTable) -> Part {
    let cpu = |row: &&ExactRow| {
        let words = if row.stack == comparison.baseline { "baseline" } else { NONE };
        Cell::ratio(row.cpu.as_ref(), words)
    };
    let caches = table.rows.first().into_iter().flat_map(|row| &row.misses).enumerate();
    let has_pages = table.rows.iter().any(|row| row.pages.is_some());
    let shown = Table::of(&table.rows)
        .text("exact counts", |row| name(&row.stack, &comparison.baseline))
        .notes(exact_text::disagreements(table))
        .notes(table.notes.iter().cloned())
        .when(!table.rows.is_empty(), |shown| {
            shown
                .figure("instructions", |row| cell(Some(&row.instructions)))
                .each(
                    caches,
                    |(_, cache)| Column::figures(&cache.cache),
                    |row, (at, _)| cell(row.misses.get(*at).map(|cache| &cache.misses)),
                )
                .when(has_pages, |shown| shown.figure("pages", |row| cell(row.pages.as_ref())))
                .figure("faults", |row| cell(row.faults.as_ref()))
                .figure("CPU ratio, measured", cpu)
                .note(exact_text::sentence(table))
        });
    Part::new("Exact counts", [shown.wide()])
}
