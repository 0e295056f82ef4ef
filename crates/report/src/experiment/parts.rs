//! What several sections of an experiment share.

use crate::document::{Cell, Item, Part, Table, Tone};
use crate::format;

/// What a document of an experiment has besides costs and verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extras {
    /// Lower bounds of overhead are not folded.
    pub bounds: bool,
    /// Garbage collections of the managers that count them are not folded.
    pub collections: bool,
    /// All notes are under their table; otherwise those that change its reading most.
    pub explain: bool,
    /// Sections of other experiments that come before it in the same document.
    pub sections_before: usize,
}

/// A stack's name as the heading of a row.
pub(super) fn name(stack: &str, baseline: &str) -> Cell {
    let tone = if stack == baseline { Tone::Strong } else { Tone::Same };
    Cell::text(stack).toned(tone)
}

/// A table that is unfolded on demand.
pub(super) fn folded(title: &str, table: Table) -> Item {
    Part::new(title, [table]).folded(true, "").into()
}

/// Pinned variables in shell syntax.
pub(super) fn environment(pairs: &[(String, String)]) -> String {
    // The value alone is quoted: in quotes as a whole, a shell would take it for a command.
    let pair = |(name, value): &(String, String)| {
        format!("{name}={}", format::shell_command(std::slice::from_ref(value)))
    };
    pairs.iter().map(pair).collect::<Vec<_>>().join(" ")
}
