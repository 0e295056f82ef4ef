//! What the sections of a [`Document`](crate::document::Document) hold, as HTML: each kind of item has a template.

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::drawing::{self, Key, Names};
use super::grid;
use super::views::{LONG, class, is_sortable, links, texts};
use crate::ReportError;
use crate::document::{Chart, Item, Part, Share, Table};
use crate::format::printable;

/// Level of the deepest heading.
const DEEPEST: usize = 6;

#[derive(Template)]
#[template(path = "items/table.html")]
struct TableView {
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

#[derive(Template)]
#[template(path = "items/chart.html")]
struct ChartView {
    id: String,
    title: String,
    caption: String,
    keys: Vec<Key>,
}

#[derive(Template)]
#[template(path = "items/part.html")]
struct PartView {
    id: String,
    title: String,
    level: usize,
    text: Vec<String>,
    /// HTML.
    items: Vec<String>,
    see: Vec<(String, String)>,
    folded: bool,
}

#[derive(Template)]
#[template(path = "items/tally.html")]
struct TallyView {
    shares: Vec<ShareView>,
}

struct ShareView {
    name: String,
    count: usize,
    class: &'static str,
}

#[derive(Template)]
#[template(path = "items/commands.html")]
struct CommandsView {
    commands: Vec<String>,
}

/// Each item as HTML; headings of parts have this level.
///
/// # Errors
/// `Encode` when a template cannot be filled.
pub(super) fn render(
    items: &[Item],
    level: usize,
    registry: &mut ChartRegistry,
) -> Result<Vec<String>, ReportError> {
    items.iter().map(|item| render_item(item, level, registry)).collect()
}

fn render_item(item: &Item, level: usize, registry: &mut ChartRegistry) -> Result<String, ReportError> {
    let html = match item {
        Item::Table(table) => table_view(table).render(),
        Item::Grid(grid) => grid::view(grid).render(),
        Item::Chart(chart) => return render_chart(chart, registry),
        Item::Tally(shares) => tally_view(shares).render(),
        Item::Commands(commands) => CommandsView { commands: texts(commands) }.render(),
        Item::Part(part) => part_view(part, level, registry)?.render(),
    };
    html.map_err(encode)
}

/// Nothing without a point that can be shown.
fn render_chart(chart: &Chart, registry: &mut ChartRegistry) -> Result<String, ReportError> {
    let slot = drawing::add_chart(chart, Names::Outside, registry);
    slot.map_or_else(
        || Ok(String::new()),
        |slot| {
            let view = ChartView { id: slot.id, title: slot.title, caption: slot.caption, keys: slot.keys };
            view.render().map_err(encode)
        },
    )
}

/// An error of a template.
pub(super) fn encode(error: askama::Error) -> ReportError {
    ReportError::Encode { form: "HTML", detail: error.to_string() }
}

fn part_view(part: &Part, level: usize, registry: &mut ChartRegistry) -> Result<PartView, ReportError> {
    Ok(PartView {
        id: part.id.clone(),
        title: printable(&part.title),
        level,
        text: texts(&part.text),
        items: render(&part.items, (level + 1).min(DEEPEST), registry)?,
        see: links(&part.see),
        folded: part.folded,
    })
}

fn tally_view(shares: &[Share]) -> TallyView {
    let some = shares.iter().filter(|share| share.count > 0);
    let view = |share: &Share| ShareView {
        name: printable(&share.name),
        count: share.count,
        class: class(share.tone),
    };
    TallyView { shares: some.map(view).collect() }
}

fn table_view(table: &Table) -> TableView {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_part_is_unfolded_on_demand_and_holds_its_items() {
        let inner = Part { title: "Inner".into(), ..Part::default() };
        let commands = Item::Commands(vec!["heaptoll run <x>".into()]);
        let part = Part {
            id: "one".into(),
            title: "Outer".into(),
            items: vec![Item::Part(inner), commands],
            folded: true,
            ..Part::default()
        };
        let html = render(&[Item::Part(part)], 3, &mut ChartRegistry::default()).expect("HTML").concat();
        for text in
            ["<details class=\"unfold\" id=\"one\">", "<h4>Inner</h4>", "<pre>heaptoll run &#60;x&#62;</pre>"]
        {
            assert!(html.contains(text), "{text} in {html}");
        }
    }
}
