//! The tables of an experiment file.

use crate::cell::ColumnType;
use crate::columns::stored;

/// `HTOL` in ASCII: marks our files.
pub(super) const APPLICATION_ID: i64 = 0x4854_4f4c;
/// Layout of the tables below.
pub(super) const LAYOUT: i64 = 1;

/// The column of `memory_mark` that files of the same layout may lack.
pub(super) const ANONYMOUS_PEAK: &str = "anonymous_peak_kib";

/// Key of the version of heaptoll that wrote the file last.
pub(super) const WRITTEN_BY: &str = "written_by";

/// Views for readers, whose columns never change; replaced in a file that is opened for more rows.
pub(super) const VIEWS: &str = include_str!("views.sql");

/// Phases of the first files are JSON; readers find plain text.
pub(super) const PLAIN_PHASES: &str =
    "UPDATE observation SET phase = trim(phase, '\"') WHERE phase LIKE '\"%';";

/// The tables of a new file.
pub(super) fn tables() -> String {
    let columns: Vec<String> = stored()
        .enumerate()
        .map(|(position, (column, stored))| {
            let constraint = match (position, column.optional) {
                (0, _) => " PRIMARY KEY",
                (_, false) => " NOT NULL",
                (_, true) => "",
            };
            format!("{} {}{constraint}", stored.name, sql_type(column.kind))
        })
        .collect();
    format!(
        "
CREATE TABLE description (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE observation ({});
CREATE TABLE memory_sample (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, t_s REAL NOT NULL, rss_kib INTEGER NOT NULL);
CREATE TABLE memory_mark (
    program TEXT NOT NULL, stack TEXT NOT NULL, repetition INTEGER NOT NULL, vm_hwm_kib INTEGER NOT NULL,
    {ANONYMOUS_PEAK} INTEGER);
",
        columns.join(", ")
    )
}

/// Columns that files of the same layout may lack, because they were begun before there were such figures: table,
/// name and type. They may be null.
pub(super) fn optional_columns() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    stored()
        .filter(|(column, _)| column.optional)
        .map(|(column, stored)| ("observation", stored.name, sql_type(column.kind)))
        .chain([("memory_mark", ANONYMOUS_PEAK, "INTEGER")])
}

fn sql_type(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Integer => "INTEGER",
        ColumnType::Real => "REAL",
        ColumnType::Text => "TEXT",
    }
}
