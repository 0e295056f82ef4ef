//! A [`Document`] as a page that needs nothing but itself, like an experiment's.

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::engine;
use super::items::{self, encode};
use super::views::{Fact, texts};
use crate::ReportError;
use crate::document::{Document, Section};
use crate::format::printable;

/// Headings of sections have level 2, those of their parts this one.
const PARTS: usize = 3;

#[derive(Template)]
#[template(path = "document.html")]
struct Filled {
    title: String,
    subtitle: String,
    /// What was found: the text of a first section without a title.
    lead: Vec<String>,
    warnings: Vec<String>,
    version: &'static str,
    style: &'static str,
    script: &'static str,
    engine: String,
    charts: String,
    has_charts: bool,
    sections: Vec<SectionView>,
    facts: Vec<Fact>,
    command: String,
}

struct SectionView {
    id: String,
    title: String,
    /// In the contents of the page: `Zorn 1992` of `Zorn 1992: what conservative collection costs`.
    short: String,
    text: Vec<String>,
    /// HTML.
    items: Vec<String>,
}

/// Renders a document as one page.
///
/// # Errors
/// `Encode` when the page cannot be put together.
pub fn render(document: &Document) -> Result<String, ReportError> {
    let mut registry = ChartRegistry::default();
    let (lead, sections) = with_lead(&document.sections);
    let mut views = Vec::new();
    for (index, section) in sections.iter().enumerate() {
        let title = printable(&section.title);
        views.push(SectionView {
            id: format!("section-{index}"),
            short: title.split_once(": ").map_or_else(|| title.clone(), |(short, _)| short.to_owned()),
            title,
            text: texts(&section.text),
            items: items::render(&section.items, PARTS, &mut registry)?,
        });
    }
    let has_charts = !registry.is_empty();
    let filled = Filled {
        title: printable(&document.title),
        subtitle: printable(&document.subtitle),
        lead: texts(lead),
        warnings: texts(&document.warnings),
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("../../templates/style.css"),
        script: engine::SCRIPT,
        engine: engine::packed()?,
        charts: registry.json(),
        has_charts,
        sections: views,
        facts: document.facts.iter().map(|(name, text)| Fact::new(name, text)).collect(),
        command: printable(&document.command),
    };
    filled.render().map_err(encode)
}

/// What was found stands at the top: the text of a first section that has neither a title nor anything else.
fn with_lead(sections: &[Section]) -> (&[String], &[Section]) {
    match sections {
        [first, rest @ ..] if first.title.is_empty() && first.items.is_empty() => (&first.text, rest),
        all => (&[], all),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Axis, Chart, Column, Form, Item, Section, Series, Table};

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
