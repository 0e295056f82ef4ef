//! Exact counts of a program.

use heaptoll_experiment::comparison::{Comparison, ExactRow, ExactTable};

use super::super::palette::Palette;
use super::super::views::{Chip, Ratio};
use crate::exact;
use crate::format::{self, NONE};

/// Exact counts.
#[derive(Default)]
pub struct Exact {
    /// Headings of the figures.
    pub headings: Vec<String>,
    /// One a stack.
    pub rows: Vec<ExactLine>,
    /// Where counts and time disagree, what was left out, how to read it.
    pub notes: Vec<String>,
}

/// One stack's exact counts.
pub struct ExactLine {
    /// Stack.
    pub chip: Chip,
    /// Is the baseline.
    pub baseline: bool,
    /// As many as headings.
    pub cells: Vec<String>,
    /// The measured CPU ratio.
    pub cpu: Ratio,
}

/// A program's exact counts as lines, with what they do not show.
pub fn of(found: &ExactTable, comparison: &Comparison, palette: &Palette) -> Exact {
    let line = |row: &ExactRow| {
        let baseline = row.stack == comparison.baseline;
        ExactLine {
            chip: Chip::of(&row.stack, palette),
            baseline,
            cells: exact::cells(found, row),
            cpu: Ratio::of(row.cpu.as_ref(), if baseline { "baseline" } else { NONE }),
        }
    };
    let mut notes = exact::disagreements(found);
    notes.extend(found.notes.iter().cloned());
    if exact::has_rows(found) {
        notes.push(exact::sentence(found));
    }
    Exact {
        headings: exact::headings(found).iter().map(|heading| format::printable(heading)).collect(),
        rows: found.rows.iter().map(line).collect(),
        notes: notes.iter().map(|note| format::printable(note)).collect(),
    }
}
