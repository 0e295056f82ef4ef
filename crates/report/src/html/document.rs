//! A [`Document`] as a page that needs nothing but itself, like an experiment's.

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::drawing::{self, DrawingSlot, Names};
use super::engine;
use super::views::Fact;
use crate::document::{Document, Item};
use crate::{ReportError, format};

#[derive(Template)]
#[template(path = "document.html")]
struct Filled {
    title: String,
    subtitle: String,
    warnings: Vec<String>,
    version: &'static str,
    style: &'static str,
    script: &'static str,
    engine: String,
    charts: String,
    sections: Vec<SectionView>,
    facts: Vec<Fact>,
    command: String,
}

struct SectionView {
    id: String,
    title: String,
    text: Vec<String>,
    items: Vec<ItemView>,
}

struct ItemView {
    table: Option<TableView>,
    chart: Option<DrawingSlot>,
}

struct TableView {
    caption: String,
    columns: Vec<(String, bool)>,
    /// Whether any column has a heading.
    named: bool,
    /// Each cell with whether it is a figure; the first is the row's heading.
    rows: Vec<Vec<(String, bool)>>,
    notes: Vec<String>,
}

/// Renders a document as one page.
///
/// # Errors
/// `Encode` when the page cannot be put together.
pub fn render(document: &Document) -> Result<String, ReportError> {
    let mut registry = ChartRegistry::default();
    let sections = document.sections.iter().enumerate().map(|(index, section)| {
        let items = section.items.iter().map(|item| match item {
            Item::Table(table) => ItemView { table: Some(table_view(table)), chart: None },
            Item::Chart(chart) => {
                ItemView { table: None, chart: drawing::add_chart(chart, Names::Inside, &mut registry) }
            }
            _ => ItemView { table: None, chart: None },
        });
        SectionView {
            id: format!("section-{index}"),
            title: format::printable(&section.title),
            text: section.text.iter().map(|text| format::printable(text)).collect(),
            items: items.collect(),
        }
    });
    let sections = sections.collect();
    let filled = Filled {
        title: format::printable(&document.title),
        subtitle: format::printable(&document.subtitle),
        warnings: document.warnings.iter().map(|text| format::printable(text)).collect(),
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("../../templates/style.css"),
        script: engine::SCRIPT,
        engine: engine::packed()?,
        charts: registry.json(),
        sections,
        facts: document.facts.iter().map(|(name, text)| Fact::new(name, text)).collect(),
        command: format::printable(&document.command),
    };
    filled.render().map_err(|error| ReportError::Encode { form: "HTML", detail: error.to_string() })
}

fn table_view(table: &crate::document::Table) -> TableView {
    let figures = |at: usize| table.columns.get(at).is_some_and(|column| column.figures);
    TableView {
        caption: format::printable(&table.caption),
        columns: table
            .columns
            .iter()
            .map(|column| (format::printable(&column.title), column.figures))
            .collect(),
        named: table.columns.iter().any(|column| !column.title.is_empty()),
        rows: table
            .rows
            .iter()
            .map(|row| {
                row.iter().enumerate().map(|(at, cell)| (format::printable(cell), figures(at))).collect()
            })
            .collect(),
        notes: table.notes.iter().map(|note| format::printable(note)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Axis, Chart, Column, Form, Section, Series, Table};

    fn chart(form: Form, log: bool) -> Chart {
        let axis = |title: &str| Axis { title: title.into(), log, names: vec![] };
        Chart {
            title: "Survival".into(),
            caption: "How to read it.".into(),
            form,
            x: axis("age, bytes"),
            y: axis("share"),
            series: vec![
                Series {
                    name: "all <b>".into(),
                    points: vec![(0.0, 1.0), (10.0, 0.5), (100.0, 0.25)],
                    ..Series::default()
                },
                Series {
                    name: "small".into(),
                    points: vec![(1.0, 0.75), (f64::NAN, 1.0)],
                    ..Series::default()
                },
            ],
        }
    }

    fn document(items: Vec<Item>) -> Document {
        Document {
            title: "t </script>".into(),
            warnings: vec!["cut & short".into()],
            sections: vec![Section { title: "One".into(), text: vec!["Text.".into()], items }],
            facts: vec![("Machine".into(), "two cores".into())],
            command: "heaptoll stat x".into(),
            ..Document::default()
        }
    }

    #[test]
    fn a_page_holds_tables_and_charts_and_no_markup_of_others() {
        let table = Table {
            caption: "by kind".into(),
            columns: vec![Column::text("kind"), Column::figures("calls")],
            rows: vec![vec!["<img>".into(), "1,200".into()]],
            notes: vec!["a note".into()],
        };
        let forms = [Form::Lines, Form::Steps, Form::Stacked, Form::Bars];
        let charts = forms.iter().map(|form| Item::Chart(chart(*form, false)));
        let page = render(&document(charts.chain([Item::Table(table)]).collect())).expect("a page");
        for text in ["1,200", "a note", "cut &#38; short", "two cores", "heaptoll stat x", "id=\"chart-3\""] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<img>") && !page.contains("t </script>"));
        assert_eq!(page.matches("<script").count(), 3);
        for needle in ["src=", "<link", "url("] {
            assert!(!page.contains(needle), "{needle}");
        }
    }

    #[test]
    fn a_chart_without_a_point_has_no_slot() {
        let mut empty = chart(Form::Lines, false);
        empty.series.clear();
        assert!(!render(&document(vec![Item::Chart(empty)])).expect("a page").contains("id=\"chart-0\""));
    }
}
