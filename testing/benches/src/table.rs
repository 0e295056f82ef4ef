//! What benches print: tables, and figures with their targets.

use std::fmt::Display;

use heaptoll_units::text_table::Table;

/// A table whose first `texts` columns are text, the others figures.
pub fn table(headings: &[&str], texts: usize, rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new(headings.iter().copied());
    rows.into_iter().for_each(|row| table.row(row));
    table.figures(texts..headings.len());
    table
}

/// Prints one figure with its target. A missed target is shown and does not fail: benches inform, tests decide.
pub fn print_figure(what: &str, figure: impl Display, target: &str, met: bool) {
    let figure = figure.to_string();
    println!("{what:<58} {figure:>22}   target {target:<18} {}", if met { "met" } else { "MISSED" });
}
