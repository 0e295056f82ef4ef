//! Lower bounds of overhead, of a program and over programs.

use heaptoll_experiment::comparison::{Comparison, ProgramBounds};
use heaptoll_statistics::Interval;

use super::bound_text;
use super::parts::Extras;
use crate::document::{Cell, Part, Table, Tone};
use crate::format::NONE;

const OPTION: &str = "--bounds";

/// What memory management costs a program at least; none where nothing can be shown.
pub(super) fn part(comparison: &Comparison, program: &str, extras: Extras) -> Option<Part> {
    let found = comparison.lower_bounds.programs.iter().find(|found| found.program == program)?;
    if !bound_text::is_shown(found) {
        return None;
    }
    Some(Part::new("Lower bounds of overhead", [table(found)]).folded(!extras.bounds, OPTION))
}

fn table(found: &ProgramBounds) -> Table {
    // The smallest bound in time first.
    let order = found.wall.as_ref().or(found.cpu.as_ref());
    Table::of(order.into_iter().flat_map(|order| &order.rows).map(|row| row.stack.as_str()))
        .text("lower bound of overhead", |stack| *stack)
        .figure("time", |stack| bound_text::cell(&found.wall, stack))
        .figure("CPU", |stack| bound_text::cell(&found.cpu, stack))
        .text("subtracted", |stack| bound_text::taken(found, stack))
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
    let text = "The whole cost divided by the cheapest manager's cost after known costs of memory management are \
                subtracted.";
    let part = Part::new("overall: lower bounds of overhead, geometric means over programs", [table.wide()]);
    Some(part.text(vec![text.into()]).folded(!extras.bounds, OPTION))
}
