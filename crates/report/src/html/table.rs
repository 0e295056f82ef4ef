//! A [`Table`] as HTML.

use askama::Template;

use super::views::{LONG, is_sortable, texts};
use crate::document::Table;
use crate::format::printable;

#[derive(Template)]
#[template(path = "items/table.html")]
pub(super) struct TableView {
    caption: String,
    columns: Vec<(String, bool)>,
    /// Whether any column has a heading.
    named: bool,
    /// Each cell with whether it is a figure; the first is the row's heading.
    rows: Vec<Vec<(String, bool)>>,
    notes: Vec<String>,
    sortable: bool,
    long: bool,
}

/// A table.
pub(super) fn table_view(table: &Table) -> TableView {
    let figures = |at: usize| table.columns.get(at).is_some_and(|column| column.figures);
    let named = table.columns.iter().any(|column| !column.title.is_empty());
    let row =
        |row: &Vec<String>| row.iter().enumerate().map(|(at, cell)| (printable(cell), figures(at))).collect();
    TableView {
        caption: printable(&table.caption),
        columns: table.columns.iter().map(|column| (printable(&column.title), column.figures)).collect(),
        named,
        rows: table.rows.iter().map(row).collect(),
        notes: texts(&table.notes),
        sortable: named && is_sortable(table.rows.iter().map(|row| row.first().map(String::as_str))),
        long: table.rows.len() > LONG,
    }
}
