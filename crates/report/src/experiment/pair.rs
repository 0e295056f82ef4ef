//! What changed between two experiments: `heaptoll compare A.db B.db`.

use heaptoll_statistics::Interval;

use crate::document::{Cell, Column, Document, Grid, Item, Section};
use crate::format::{NONE, significant};

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct PairRow {
    /// Program.
    pub program: String,
    /// Stack.
    pub stack: String,
    /// Label with its unit, e.g. `CPU s`, `peak RSS MiB`.
    pub metric: String,
    /// Median in A, in the label's unit; `None` where A has no good row.
    pub a_median: Option<f64>,
    /// Median in B.
    pub b_median: Option<f64>,
    /// B over A; `None` when there are too few rows.
    pub ratio: Option<Interval>,
    /// The verdict in words.
    pub verdict: String,
}

/// The comparison; `a` and `b` are how the two files are called in the heads of the columns.
pub fn pair(a: &str, b: &str, rows: &[PairRow]) -> Document {
    let figure = |value: Option<f64>| Cell::text(value.map_or(NONE.to_owned(), significant));
    let mut last = ("", "");
    let row = |row: &'_ PairRow, last: (&str, &str)| {
        // A name is written once, so that the eye finds where the next begins.
        let program = if last.0 == row.program { "" } else { row.program.as_str() };
        let stack = if last == (&row.program, &row.stack) { "" } else { row.stack.as_str() };
        vec![
            Cell::text(program),
            Cell::text(stack),
            Cell::text(&row.metric),
            figure(row.a_median),
            figure(row.b_median),
            Cell::ratio(row.ratio.as_ref(), "too few rows"),
            Cell::text(&row.verdict),
        ]
    };
    let mut cells = Vec::new();
    for one in rows {
        cells.push(row(one, last));
        last = (&one.program, &one.stack);
    }
    let mut columns = ["program", "stack", "metric"].map(Column::text).to_vec();
    columns.extend([
        Column::figures(a),
        Column::figures(b),
        Column::figures("B to A"),
        Column::text("verdict"),
    ]);
    let grid = Grid { columns, rows: cells, wide: true, ..Grid::default() };
    let section = Section { items: vec![Item::Grid(grid)], ..Section::default() };
    Document { title: format!("{b} (B) to {a} (A)"), sections: vec![section], ..Document::default() }
}
