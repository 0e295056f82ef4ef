//! Garbage collections of the managers that count them: a table of its own, for the one of figures is wide.

use heaptoll_experiment::comparison::ProgramTable;

use super::parts::Extras;
use crate::document::{Part, Table};
use crate::format;

/// What the collectors did; none where no manager counts collections.
pub(super) fn part(table: &ProgramTable, extras: Extras) -> Option<Part> {
    if !table.has_collections() {
        return None;
    }
    let shown = Table::of(table.rows.iter().filter_map(|row| Some((row, row.collections?))))
        .text("collector", |(row, _)| row.stack.clone())
        .figure("number", |(_, found)| format::count(found.count))
        .figure("pauses, wall ms", |(_, found)| format::milliseconds(found.pause_total_s))
        .figure("longest, wall ms", |(_, found)| format::milliseconds(found.pause_max_s))
        .figure("reclaimed MiB", |(_, found)| format::mib_from_bytes(found.reclaimed_bytes));
    Some(Part::new("Garbage collections", [shown.wide()]).folded(!extras.collections, "--collections"))
}
