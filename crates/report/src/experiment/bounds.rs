//! Lower bounds of overhead, of a program and over programs.

use heaptoll_experiment::comparison::{Comparison, ProgramBounds};
use heaptoll_statistics::Interval;

use super::bound_text::{self, Bound};
use super::parts::Extras;
use crate::document::{Cell, Item, Part, Table, Tone};
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
        items: vec![Item::Table(table(found))],
        folded: !extras.bounds,
        option: OPTION.into(),
        ..Part::default()
    })
}

fn table(found: &ProgramBounds) -> Table {
    // These baselines were not chosen: no side of 1 is the better one.
    let cell = |bound: &Bound| match bound {
        Bound::Of(interval) => Cell::ratio(Some(interval), "").toned(Tone::Same),
        Bound::Words(words) => Cell::text(*words).toned(Tone::Dim),
    };
    Table::of(bound_text::lines(found))
        .text("lower bound of overhead", |line| line.stack)
        .figure("time", |line| cell(&line.wall))
        .figure("CPU", |line| cell(&line.cpu))
        .text("subtracted", |line| line.taken.clone())
        .note(bound_text::sentence(found))
        .notes(found.notes.iter().cloned())
        .wide()
}

/// Geometric means of lower bounds; none with one program.
pub(super) fn overall(comparison: &Comparison, extras: Extras) -> Option<Part> {
    if comparison.lower_bounds.overall.is_empty() {
        return None;
    }
    let cell = |interval: &Option<Interval>| Cell::ratio(interval.as_ref(), NONE).toned(Tone::Same);
    let table = Table::of(&comparison.lower_bounds.overall)
        .text("manager", |row| row.stack.clone())
        .figure("programs", |row| row.programs.to_string())
        .figure("time", |row| cell(&row.wall))
        .figure("CPU", |row| cell(&row.cpu));
    Some(Part {
        title: "overall: lower bounds of overhead, geometric means over programs".into(),
        text: vec![
            "The whole cost divided by the cheapest manager's cost after known costs of memory management \
             are subtracted."
                .into(),
        ],
        items: vec![Item::Table(table.wide())],
        folded: !extras.bounds,
        option: OPTION.into(),
        ..Part::default()
    })
}
