//! Garbage collections of the managers that count them: a table of its own, for the one of figures is wide.

use heaptoll_experiment::comparison::{CollectionFigures, ProgramTable, Row};

use super::parts::Extras;
use crate::document::{Cell, Column, Grid, Item, Part};
use crate::format;

/// What the collectors did; none where no manager counts collections.
pub(super) fn part(table: &ProgramTable, extras: Extras) -> Option<Part> {
    if !table.has_collections() {
        return None;
    }
    let row = |(row, found): (&Row, CollectionFigures)| {
        [
            row.stack.clone(),
            format::count(found.count),
            format::milliseconds(found.pause_total_s),
            format::milliseconds(found.pause_max_s),
            format::mib_from_bytes(found.reclaimed_bytes),
        ]
        .map(Cell::text)
        .into()
    };
    let figures = ["number", "pauses, wall ms", "longest, wall ms", "reclaimed MiB"].map(Column::figures);
    let grid = Grid {
        columns: std::iter::once(Column::text("collector")).chain(figures).collect(),
        rows: table.rows.iter().filter_map(|row| Some((row, row.collections?))).map(row).collect(),
        wide: true,
        ..Grid::default()
    };
    Some(Part {
        title: "Garbage collections".into(),
        items: vec![Item::Grid(grid)],
        folded: !extras.collections,
        option: "--collections".into(),
        ..Part::default()
    })
}
