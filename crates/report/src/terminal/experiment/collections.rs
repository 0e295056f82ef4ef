//! Garbage collections of the managers that count them: a table of its own, for the one of figures is wide.

use heaptoll_experiment::comparison::ProgramTable;

use super::super::style::{Style, Tone, right};
use crate::format;

/// What the collectors of those managers did that report it: a table of its own, for the one above is wide.
pub fn collections(table: &ProgramTable, style: &Style) -> String {
    let narrow = style.width.is_some_and(|width| width < 72);
    let headings = match narrow {
        false => ["garbage collections", "number", "pauses ms", "longest ms", "reclaimed MiB"],
        true => ["collector", "GCs", "ms", "max ms", "MiB"],
    };
    // A table of five columns has its least width; below that the figures go into lines.
    if style.width.is_some_and(|width| width < 52) {
        let mut out = String::new();
        for (row, collections) in table.rows.iter().filter_map(|row| Some((row, row.collections?))) {
            let text = format!(
                "{}: {} collections, pauses {} ms, longest {} ms, {} MiB reclaimed",
                row.stack,
                format::count(collections.count),
                format::milliseconds(collections.pause_total_s),
                format::milliseconds(collections.pause_max_s),
                format::mib_from_bytes(collections.reclaimed_bytes)
            );
            out.push_str(&style.paragraph("", &text, Tone::Plain));
        }
        return out;
    }
    let mut text = style.table(&headings);
    for (row, collections) in table.rows.iter().filter_map(|row| Some((row, row.collections?))) {
        text.add_row([
            style.cell(&row.stack, Tone::Plain),
            style.cell(&format::count(collections.count), Tone::Plain),
            style.cell(&format::milliseconds(collections.pause_total_s), Tone::Plain),
            style.cell(&format::milliseconds(collections.pause_max_s), Tone::Plain),
            style.cell(&format::mib_from_bytes(collections.reclaimed_bytes), Tone::Plain),
        ]);
    }
    style.pad(&mut text);
    right(&mut text, &[1, 2, 3, 4]);
    style.lines(&text)
}
