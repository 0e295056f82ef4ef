//! Tables as the bench prints them.

use heaptoll_units::text_table::Table;

/// An empty table; all columns but the first are figures.
pub fn with(header: &[&str], markdown: bool) -> Table {
    let mut table = Table::new(header.iter().copied()).in_markdown(markdown);
    table.figures(1..header.len());
    table
}
