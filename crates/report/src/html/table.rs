//! A table on the page: the parts of a cell together, intervals drawn.

use askama::Template;

use super::palette::Palette;
use super::sparkline::{Scale, Sparkline};
use super::views::{Chip, LONG, class, is_sortable, links, texts};
use crate::document::{Cell, Column, Effect, Intervals, Layout, Table, Tone, number};
use crate::format::{printable, printable_lines};

/// With more columns of values the figures are set smaller.
const PACKED: usize = 4;

#[derive(Template)]
#[template(path = "items/table.html")]
pub(super) struct TableView {
    caption: String,
    /// Each heading with whether its column has figures.
    columns: Vec<(Chip, bool)>,
    /// Whether any column has a heading.
    named: bool,
    rows: Vec<RowView>,
    baseline: String,
    /// There are published values.
    published: bool,
    /// There are intervals, or ranges, of values.
    ranges: bool,
    /// Why values are missing, numbered from 1.
    reasons: Vec<String>,
    notes: Vec<String>,
    /// Of the style sheet.
    class: String,
    /// Its cells are texts, without parts.
    plain: bool,
    long: bool,
}

struct RowView {
    /// What the other rows are compared with.
    is_baseline: bool,
    cells: Vec<CellView>,
}

struct CellView {
    /// Its text; of the palette's names with their mark.
    chip: Chip,
    /// A text without parts.
    is_plain: bool,
    /// Monospaced, with its line ends.
    is_code: bool,
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
    tag: String,
    marks: Vec<String>,
    figures: bool,
}

/// What the template shows.
pub(super) fn view(table: &Table, palette: &Palette) -> TableView {
    let mut reasons: Vec<String> = Vec::new();
    let scales: Vec<Option<Scale>> = (0..table.columns.len()).map(|at| column_scale(table, at)).collect();
    let plain = table.layout == Layout::Texts;
    let (mut rows, no_names) = (Vec::new(), Palette::default());
    let palette = if plain { &no_names } else { palette };
    for row in &table.rows {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let scale = scales.get(at).and_then(Option::as_ref);
            // Names stand in the first column; elsewhere a text may be one by chance.
            let palette = if at == 0 { palette } else { &no_names };
            let cell = cell_view(cell, table.columns.get(at), scale, palette, &mut reasons);
            CellView { is_plain: plain, absent: cell.absent && !plain, ..cell }
        });
        let is_baseline = row.first().is_some_and(|cell| cell.tone == Tone::Strong);
        rows.push(RowView { is_baseline, cells: cells.collect() });
    }
    let figures =
        || table.rows.iter().flat_map(|row| row.iter().zip(&table.columns).filter(|(_, c)| c.figures));
    let named = table.columns.iter().any(|column| !column.title.is_empty());
    let names = table.rows.iter().map(|row| row.first().map(|cell| cell.text.as_str()));
    let class = [
        ("grid", !plain),
        ("packed", table.layout == Layout::Parts && table.columns.len() > PACKED),
        ("sortable", named && is_sortable(names)),
    ];
    let columns = table.columns.iter().map(|column| (Chip::of(&column.title, palette), column.figures));
    TableView {
        caption: printable(&table.caption),
        columns: columns.collect(),
        named,
        rows,
        baseline: printable(&table.baseline),
        published: figures().any(|(cell, _)| !cell.published.is_empty()),
        ranges: table.layout == Layout::Parts && figures().any(|(cell, _)| !cell.range.is_empty()),
        reasons: texts(&reasons),
        notes: texts(&table.notes),
        class: class.iter().filter(|(_, is)| *is).map(|(class, _)| *class).collect::<Vec<_>>().join(" "),
        plain,
        long: table.rows.len() > LONG,
    }
}

/// The scale of a column's drawings, where they share one.
fn column_scale(table: &Table, at: usize) -> Option<Scale> {
    let drawn = || table.rows.iter().filter_map(|row| row.get(at)?.intervals.as_ref());
    let region = drawn().next().filter(|_| table.one_scale)?.region;
    let effects: Vec<Effect> = drawn().flat_map(|intervals| intervals.effects.iter().cloned()).collect();
    Scale::around(&effects, region)
}

fn drawing(intervals: &Intervals, scale: Option<&Scale>) -> Option<Sparkline> {
    let own = if scale.is_none() { Scale::around(&intervals.effects, intervals.region) } else { None };
    let mut drawn = scale.or(own.as_ref())?.all(&intervals.effects)?;
    drawn.label = printable(&drawn.label);
    Some(drawn)
}

fn cell_view(
    cell: &Cell,
    column: Option<&Column>,
    scale: Option<&Scale>,
    palette: &Palette,
    reasons: &mut Vec<String>,
) -> CellView {
    let figures = column.is_some_and(|column| column.figures);
    let is_code = column.is_some_and(|column| column.code);
    let code = || Chip { name: printable_lines(&cell.text), mark: None };
    let ratio = cell.ratio.clone().unwrap_or_default();
    // A link without a text of its own is the cell's text.
    let (own, see): (Vec<_>, Vec<_>) = links(&cell.links).into_iter().partition(|(_, text)| text.is_empty());
    let is_missing = cell.text.is_empty() && !cell.missing.is_empty();
    CellView {
        chip: if is_code { code() } else { Chip::of(&cell.text, palette) },
        is_code,
        range: printable(&cell.range),
        tone: class(cell.tone),
        ratio: printable(&ratio.text),
        ratio_range: printable(&ratio.range),
        ratio_tone: class(ratio.tone),
        published: printable(&cell.published),
        missing: printable(&cell.missing),
        note: if is_missing { number(&cell.missing, reasons) } else { 0 },
        is_plain: false,
        absent: figures,
        drawing: cell.intervals.as_ref().and_then(|intervals| drawing(intervals, scale)),
        href: own.into_iter().next().map_or_else(String::new, |(href, _)| href),
        see,
        tag: printable(&cell.tag),
        marks: texts(&cell.marks),
        figures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Column, Region};

    fn table(cells: Vec<Cell>) -> Table {
        let table = Table::of(["gawk"]).text("program", |name| *name);
        table.each(cells, |_| Column::figures("a"), |_, cell| cell.clone()).parts("")
    }

    #[test]
    fn a_reason_why_a_value_is_missing_is_shown_once() {
        let missing = |why: &str| Cell { missing: why.into(), ..Cell::default() };
        let cells = vec![missing("crashed"), missing("refused"), missing("crashed"), Cell::default()];
        let view = view(&table(cells), &Palette::default());
        assert_eq!(view.reasons, ["crashed", "refused"]);
        let notes: Vec<usize> = view.rows[0].cells.iter().map(|cell| cell.note).collect();
        assert_eq!(notes, [0, 1, 2, 1, 0]);
    }

    #[test]
    fn drawings_of_a_column_share_a_scale_where_the_table_wants_it() {
        let drawn = |value: f64| {
            let effect = Effect { value, ends: Some((0.9 * value, 1.1 * value)), ..Effect::default() };
            let region = Region { above: Some(1.0), ..Region::default() };
            Cell { intervals: Some(Intervals { region, effects: vec![effect] }), ..Cell::default() }
        };
        let mut table = table(vec![drawn(2.0)]);
        table.rows.push(vec![Cell::text("perl"), drawn(50.0)]);
        let x = |table: &Table| {
            view(table, &Palette::default()).rows[0].cells[1].drawing.as_ref().expect("a drawing").marks[0].x
        };
        let apart = x(&table);
        table.one_scale = true;
        assert!(x(&table) < apart);
    }

    #[test]
    fn names_of_the_palette_have_their_mark_where_names_stand() {
        let mut table = table(vec![Cell::text("gawk")]);
        table.rows[0][0] =
            Cell { marks: vec!["one crashed".into()], ..Cell::text("gawk").toned(Tone::Strong) };
        table.rows[0].push(Cell::text("a\nb"));
        table.columns.push(Column::code("end"));
        let palette = Palette::new(["gawk", "end"].into_iter());
        let view = view(&table, &palette);
        let row = &view.rows[0];
        assert!(row.is_baseline && row.cells[0].chip.mark.is_some() && row.cells[1].chip.mark.is_none());
        assert!(view.columns[0].0.mark.is_none() && view.columns[2].0.mark.is_some());
        let html = view.render().expect("HTML");
        for text in ["<tr class=\"baseline\">", "<span class=\"mark\">one crashed</span>", "<pre>a\nb</pre>"]
        {
            assert!(html.contains(text), "{text} in {html}");
        }
    }

    /// The page's script stopped at the first table that had no headings to click.
    #[test]
    fn a_table_without_headings_is_not_sorted() {
        let mut table = table(vec![Cell::text("1")]);
        table.rows.push(vec![Cell::text("perl"), Cell::text("2")]);
        assert_eq!(view(&table, &Palette::default()).class, "grid sortable");
        table.columns.iter_mut().for_each(|column| column.title.clear());
        let html = view(&table, &Palette::default()).render().expect("HTML");
        assert!(!html.contains("sortable") && !html.contains("<thead>"), "{html}");
    }
}
