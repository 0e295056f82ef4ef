//! A grid on the page: the parts of a cell together, intervals drawn.

use askama::Template;

use super::sparkline::{Scale, Sparkline};
use super::views::{LONG, class, is_sortable, links, texts};
use crate::document::{Cell, Effect, Grid, Intervals, number};
use crate::format::printable;

/// With more columns of values the figures are set smaller.
const PACKED: usize = 4;

#[derive(Template)]
#[template(path = "items/grid.html")]
pub(super) struct GridView {
    caption: String,
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<CellView>>,
    baseline: String,
    /// There are published values.
    published: bool,
    /// There are intervals, or ranges, of values.
    ranges: bool,
    /// Why values are missing, numbered from 1.
    reasons: Vec<String>,
    notes: Vec<String>,
    sortable: bool,
    packed: bool,
    long: bool,
}

struct CellView {
    text: String,
    range: String,
    tone: &'static str,
    ratio: String,
    ratio_range: String,
    ratio_tone: &'static str,
    published: String,
    missing: String,
    /// Number of the reason; 0 for none.
    note: usize,
    /// A dash stands in the place of a value.
    absent: bool,
    drawing: Option<Sparkline>,
    /// Where the text leads; empty for nowhere.
    href: String,
    see: Vec<(String, String)>,
    figures: bool,
}

/// What the template shows.
pub(super) fn view(grid: &Grid) -> GridView {
    let mut reasons: Vec<String> = Vec::new();
    let scales: Vec<Option<Scale>> = (0..grid.columns.len()).map(|at| column_scale(grid, at)).collect();
    let mut rows = Vec::new();
    for row in &grid.rows {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let figures = grid.columns.get(at).is_some_and(|column| column.figures);
            cell_view(cell, figures, scales.get(at).and_then(Option::as_ref), &mut reasons)
        });
        rows.push(cells.collect());
    }
    let figures =
        || grid.rows.iter().flat_map(|row| row.iter().zip(&grid.columns).filter(|(_, c)| c.figures));
    GridView {
        caption: printable(&grid.caption),
        columns: grid.columns.iter().map(|column| (printable(&column.title), column.figures)).collect(),
        rows,
        baseline: printable(&grid.baseline),
        published: figures().any(|(cell, _)| !cell.published.is_empty()),
        ranges: figures().any(|(cell, _)| !cell.range.is_empty()),
        reasons: texts(&reasons),
        notes: texts(&grid.notes),
        sortable: is_sortable(grid.rows.iter().map(|row| row.first().map(|cell| cell.text.as_str()))),
        packed: grid.columns.len() > PACKED,
        long: grid.rows.len() > LONG,
    }
}

/// The scale of a column's drawings, where they share one.
fn column_scale(grid: &Grid, at: usize) -> Option<Scale> {
    let drawn = || grid.rows.iter().filter_map(|row| row.get(at)?.intervals.as_ref());
    let region = drawn().next().filter(|_| grid.one_scale)?.region;
    let effects: Vec<Effect> = drawn().flat_map(|intervals| intervals.effects.iter().cloned()).collect();
    Scale::around(&effects, region)
}

fn drawing(intervals: &Intervals, scale: Option<&Scale>) -> Option<Sparkline> {
    let own = if scale.is_none() { Scale::around(&intervals.effects, intervals.region) } else { None };
    let mut drawn = scale.or(own.as_ref())?.all(&intervals.effects)?;
    drawn.label = printable(&drawn.label);
    Some(drawn)
}

fn cell_view(cell: &Cell, figures: bool, scale: Option<&Scale>, reasons: &mut Vec<String>) -> CellView {
    let ratio = cell.ratio.clone().unwrap_or_default();
    // A link without a text of its own is the cell's text.
    let (own, see): (Vec<_>, Vec<_>) = links(&cell.links).into_iter().partition(|(_, text)| text.is_empty());
    let is_missing = cell.text.is_empty() && !cell.missing.is_empty();
    CellView {
        text: printable(&cell.text),
        range: printable(&cell.range),
        tone: class(cell.tone),
        ratio: printable(&ratio.text),
        ratio_range: printable(&ratio.range),
        ratio_tone: class(ratio.tone),
        published: printable(&cell.published),
        missing: printable(&cell.missing),
        note: if is_missing { number(&cell.missing, reasons) } else { 0 },
        absent: figures,
        drawing: cell.intervals.as_ref().and_then(|intervals| drawing(intervals, scale)),
        href: own.into_iter().next().map_or_else(String::new, |(href, _)| href),
        see,
        figures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Column, Region};

    fn grid(cells: Vec<Cell>) -> Grid {
        let columns =
            std::iter::once(Column::text("program")).chain(cells.iter().map(|_| Column::figures("a")));
        let row = std::iter::once(Cell::text("gawk")).chain(cells.clone()).collect();
        Grid { columns: columns.collect(), rows: vec![row], ..Grid::default() }
    }

    #[test]
    fn a_reason_why_a_value_is_missing_is_shown_once() {
        let missing = |why: &str| Cell { missing: why.into(), ..Cell::default() };
        let cells = vec![missing("crashed"), missing("refused"), missing("crashed"), Cell::default()];
        let view = view(&grid(cells));
        assert_eq!(view.reasons, ["crashed", "refused"]);
        let notes: Vec<usize> = view.rows[0].iter().map(|cell| cell.note).collect();
        assert_eq!(notes, [0, 1, 2, 1, 0]);
    }

    #[test]
    fn drawings_of_a_column_share_a_scale_where_the_grid_wants_it() {
        let drawn = |value: f64| {
            let effect = Effect { value, ends: Some((0.9 * value, 1.1 * value)), ..Effect::default() };
            let region = Region { above: Some(1.0), ..Region::default() };
            Cell { intervals: Some(Intervals { region, effects: vec![effect] }), ..Cell::default() }
        };
        let mut grid = grid(vec![drawn(2.0)]);
        grid.rows.push(vec![Cell::text("perl"), drawn(50.0)]);
        let x = |grid: &Grid| view(grid).rows[0][1].drawing.as_ref().expect("a drawing").marks[0].x;
        let apart = x(&grid);
        grid.one_scale = true;
        assert!(x(&grid) < apart);
    }
}
