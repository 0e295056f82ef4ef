//! A table of a document. It gets its columns one by one, each with the cells of all rows, so no row is short of a cell.

use super::cell::Cell;
use super::column::Column;

/// Rows of cells.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Above it; may be empty.
    pub caption: String,
    /// Headings, with their units; the first is that of the rows' names.
    pub columns: Vec<Column>,
    /// As many cells a row as columns.
    pub rows: Vec<Vec<Cell>>,
    /// What becomes of the parts of cells.
    pub layout: Layout,
    /// What ratios are to; empty where there are none.
    pub baseline: String,
    /// The drawings of a column share one scale; otherwise each has its own.
    pub one_scale: bool,
    /// Below it, sentences.
    pub notes: Vec<String>,
}

/// What becomes of the parts of cells: intervals, ratios, published values, drawings, marks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// There are none: each cell is a text.
    #[default]
    Texts,
    /// The page shows the parts of a cell together; where there is one line a cell, each part has a column.
    Parts,
    /// Columns stay columns however many they are; where a terminal has no place for them, intervals go under their
    /// ratios, then optional columns are left out. Names of the palette have their marks.
    Wide,
}

/// A table in the making, with the rows that its cells are made of.
#[derive(Debug)]
pub struct Columns<R> {
    rows: Vec<R>,
    table: Table,
}

impl Table {
    /// A table of these rows, without a column yet.
    pub fn of<R>(rows: impl IntoIterator<Item = R>) -> Columns<R> {
        let rows: Vec<R> = rows.into_iter().collect();
        let table = Table { rows: vec![Vec::new(); rows.len()], ..Table::default() };
        Columns { rows, table }
    }

    /// A table of rows that are there already.
    pub fn listed<C: Into<Cell>, const N: usize>(
        columns: [Column; N],
        rows: impl IntoIterator<Item = [C; N]>,
    ) -> Columns<()> {
        let rows = rows.into_iter().map(|row| row.map(Into::into).into()).collect();
        Columns { rows: Vec::new(), table: Table { columns: columns.into(), rows, ..Table::default() } }
    }
}

impl<R> Columns<R> {
    /// Adds a column.
    pub fn column<C: Into<Cell>>(mut self, column: Column, mut cell: impl FnMut(&R) -> C) -> Self {
        self.table.columns.push(column);
        for (cells, row) in self.table.rows.iter_mut().zip(&self.rows) {
            cells.push(cell(row).into());
        }
        self
    }

    /// Adds a column for each key.
    pub fn each<K, C: Into<Cell>>(
        self,
        keys: impl IntoIterator<Item = K>,
        column: impl Fn(&K) -> Column,
        mut cell: impl FnMut(&R, &K) -> C,
    ) -> Self {
        keys.into_iter().fold(self, |table, key| table.column(column(&key), |row| cell(row, &key)))
    }

    /// Adds what only some tables have.
    pub fn when(self, is: bool, add: impl FnOnce(Self) -> Self) -> Self {
        if is { add(self) } else { self }
    }

    /// Adds a column of text.
    pub fn text<C: Into<Cell>>(self, title: &str, cell: impl FnMut(&R) -> C) -> Self {
        self.column(Column::text(title), cell)
    }

    /// Adds a column of call sites.
    pub fn sites<C: Into<Cell>>(self, title: &str, cell: impl FnMut(&R) -> C) -> Self {
        self.column(Column::sites(title), cell)
    }

    /// Adds a column of figures.
    pub fn figure<C: Into<Cell>>(self, title: &str, cell: impl FnMut(&R) -> C) -> Self {
        self.column(Column::figures(title), cell)
    }

    /// Adds a column of figures that a narrow terminal does without.
    pub fn optional<C: Into<Cell>>(self, title: &str, cell: impl FnMut(&R) -> C) -> Self {
        self.column(Column::optional(title), cell)
    }

    /// What is above it.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.table.caption = caption.into();
        self
    }

    /// Adds a sentence below it.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.table.notes.push(note.into());
        self
    }

    /// Adds sentences below it.
    pub fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.table.notes.extend(notes);
        self
    }

    /// The table, each cell a text.
    pub fn table(self) -> Table {
        self.table
    }

    /// The table, with all parts of its cells; ratios are to this baseline.
    pub fn parts(self, baseline: &str) -> Table {
        Table { layout: Layout::Parts, baseline: baseline.into(), ..self.table }
    }

    /// The table, with all its columns.
    pub fn wide(self) -> Table {
        Table { layout: Layout::Wide, ..self.table }
    }

    /// The table; none without a row.
    pub fn if_any(self) -> Option<Table> {
        Some(self.table).filter(|table| !table.rows.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_has_a_cell_of_every_row_and_a_dash_where_none_is_known() {
        let rows = [("glibc", Some("1.5")), ("bump", None)];
        let table = Table::of(rows)
            .text("manager", |(name, _)| *name)
            .figure("time", |(_, time)| *time)
            .each(["a", "b"], |key| Column::figures(key), |(name, _), key| format!("{name} {key}"))
            .when(false, |table| table.text("left out", |_| ""))
            .table();
        let titles: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
        assert_eq!(titles, ["manager", "time", "a", "b"]);
        assert_eq!(table.rows, [["glibc", "1.5", "glibc a", "glibc b"], ["bump", "–", "bump a", "bump b"]]);
        assert!(Table::of([(); 0]).text("x", |()| "").if_any().is_none());
    }
}
