//! Tables as the bench prints them.

use comfy_table::{CellAlignment, Table, presets};

/// An empty table; all columns but the first are figures.
pub fn with(header: &[&str], markdown: bool) -> Table {
    let mut table = Table::new();
    table.load_style(if markdown { presets::ASCII_MARKDOWN } else { presets::UTF8_FULL_CONDENSED });
    table.set_header(header.iter().copied());
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
