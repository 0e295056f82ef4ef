//! Lower bounds of overhead, of a program and over programs.

use heaptoll_experiment::comparison::{Comparison, OverallBound, ProgramBounds};
use heaptoll_statistics::Interval;

use super::bound_text::{self, Bound, StackBounds};
use super::parts::Extras;
use crate::document::{Cell, Column, Grid, Item, Part, Tone};
use crate::format::NONE;

const OPTION: &str = "--bounds";

/// What memory management costs a program at least; none where nothing can be shown.
pub(super) fn part(comparison: &Comparison, program: &str, extras: Extras) -> Option<Part> {
    let found = comparison.lower_bounds.programs.iter().find(|found| found.program == program)?;
    if !bound_text::is_shown(found) {
        return None;
    }
    Some(Part {
        title: "Lower bounds of overhead".into(),
        items: vec![Item::Grid(grid(found))],
        folded: !extras.bounds,
        option: OPTION.into(),
        ..Part::default()
    })
}

fn grid(found: &ProgramBounds) -> Grid {
    // These baselines were not chosen: no side of 1 is the better one.
    let cell = |bound: &Bound| match bound {
        Bound::Of(interval) => Cell::ratio(Some(interval), "").toned(Tone::Same),
        Bound::Words(words) => Cell::text(*words).toned(Tone::Dim),
    };
    let row = |line: &StackBounds| {
        vec![Cell::text(line.stack), cell(&line.wall), cell(&line.cpu), Cell::text(&line.taken)]
    };
    Grid {
        columns: vec![
            Column::text("lower bound of overhead"),
            Column::figures("time"),
            Column::figures("CPU"),
            Column::text("subtracted"),
        ],
        rows: bound_text::lines(found).iter().map(row).collect(),
        wide: true,
        notes: std::iter::once(bound_text::sentence(found)).chain(found.notes.iter().cloned()).collect(),
        ..Grid::default()
    }
}

/// Geometric means of lower bounds; none with one program.
pub(super) fn overall(comparison: &Comparison, extras: Extras) -> Option<Part> {
    if comparison.lower_bounds.overall.is_empty() {
        return None;
    }
    let cell = |interval: &Option<Interval>| Cell::ratio(interval.as_ref(), NONE).toned(Tone::Same);
    let row = |row: &OverallBound| {
        vec![Cell::text(&row.stack), Cell::text(row.programs.to_string()), cell(&row.wall), cell(&row.cpu)]
    };
    let grid = Grid {
        columns: vec![
            Column::text("manager"),
            Column::figures("programs"),
            Column::figures("time"),
            Column::figures("CPU"),
        ],
        rows: comparison.lower_bounds.overall.iter().map(row).collect(),
        wide: true,
        ..Grid::default()
    };
    Some(Part {
        title: "overall: lower bounds of overhead, geometric means over programs".into(),
        text: vec![
            "The whole cost divided by the cheapest manager's cost after known costs of memory management \
             are subtracted."
                .into(),
        ],
        items: vec![Item::Grid(grid)],
        folded: !extras.bounds,
        option: OPTION.into(),
        ..Part::default()
    })
}
