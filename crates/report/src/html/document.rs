//! A [`Document`] as a page that needs nothing but itself: no network, no other file.
//!
//! Sections are written straight into the page, without a copy: the rows of an experiment may be a million.

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::flame;
use super::items;
use super::mosaic;
use super::palette::Palette;
use super::views::{Chip, Fact, encode, texts};
use crate::ReportError;
use crate::document::{Document, Item, Section, section_id};
use crate::format::printable;

/// What draws charts, answers buttons, and sorts tables.
const SCRIPT: &str = concat!(
    include_str!("../../templates/charts.js"),
    include_str!("../../templates/page.js"),
    include_str!("../../templates/tables.js")
);
/// Headings of sections have level 2, those of their parts this one.
const PARTS: usize = 3;

/// What comes before the sections.
#[derive(Template)]
#[template(path = "document.html")]
struct Front<'a> {
    title: String,
    subtitle: String,
    /// What was found: the text of a first section without a title.
    lead: Vec<String>,
    warnings: Vec<String>,
    version: &'static str,
    style: &'static str,
    has_charts: bool,
    /// Anchors and short titles of the sections.
    contents: Vec<(String, String)>,
    /// Names with their marks.
    legend: Vec<Chip>,
    facts: &'a [Fact],
    command: &'a str,
}

/// What comes before the items of a section.
#[derive(Template)]
#[template(path = "section.html")]
struct SectionStart {
    id: String,
    title: String,
    text: Vec<String>,
}

/// What comes after the sections.
#[derive(Template)]
#[template(path = "end.html")]
struct End<'a> {
    version: &'static str,
    script: &'static str,
    /// What draws flame graphs; empty without one.
    flame_script: &'static str,
    mosaic_script: &'static str,
    charts: String,
    facts: &'a [Fact],
    command: &'a str,
}

/// Renders a document as one page.
///
/// # Errors
/// `Encode` when the page cannot be put together.
pub fn render(document: &Document) -> Result<String, ReportError> {
    let palette = Palette::new(document.palette.iter().map(String::as_str));
    let facts: Vec<Fact> = document.facts.iter().map(|(name, text)| Fact::new(name, text)).collect();
    let command = printable(&document.command);
    let (lead, first) = lead(&document.sections);
    // Anchors count every section, so that links within the document hold.
    let sections = || document.sections.iter().enumerate().skip(first);
    let titled = sections().filter(|(_, section)| !section.title.is_empty());
    let has = |is: fn(&Item) -> bool| sections().any(|(_, section)| any(&section.items, is));
    let has_flames = has(|item| matches!(item, Item::Flame(_)));
    let has_charts = has_flames || has(|item| matches!(item, Item::Chart(_)));
    let front = Front {
        title: printable(&document.title),
        subtitle: printable(&document.subtitle),
        lead: texts(lead),
        warnings: texts(&document.warnings),
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("../../templates/style.css"),
        has_charts,
        contents: titled.map(|(at, section)| (section_id(at), short(&section.title))).collect(),
        legend: document.palette.iter().map(|name| Chip::of(name, &palette)).collect(),
        facts: &facts,
        command: &command,
    };
    let mut page = front.render().map_err(encode)?;
    let mut registry = ChartRegistry::new(palette);
    for (at, section) in sections() {
        let start =
            SectionStart { id: section_id(at), title: printable(&section.title), text: texts(&section.text) };
        start.render_into(&mut page).map_err(encode)?;
        items::write(&section.items, PARTS, &mut registry, &mut page)?;
        page += "</section>\n";
    }
    let end = End {
        version: env!("CARGO_PKG_VERSION"),
        script: SCRIPT,
        flame_script: if has_flames { flame::SCRIPT } else { "" },
        mosaic_script: if has(|item| matches!(item, Item::Mosaic(_))) { mosaic::SCRIPT } else { "" },
        charts: registry.json(),
        facts: &facts,
        command: &command,
    };
    end.render_into(&mut page).map_err(encode)?;
    Ok(page)
}

/// What was found stands at the top: the text of a first section that has neither a title nor anything else. Also the
/// place of the first section after it.
fn lead(sections: &[Section]) -> (&[String], usize) {
    match sections {
        [first, ..] if first.title.is_empty() && first.items.is_empty() => (&first.text, 1),
        _ => (&[], 0),
    }
}

/// In the contents of the page: `Zorn 1992` of `Zorn 1992: what conservative collection costs`.
fn short(title: &str) -> String {
    printable(title.split_once(": ").map_or(title, |(short, _)| short))
}

/// Whether one of these items, or of those in their parts, is such.
fn any(items: &[Item], is: fn(&Item) -> bool) -> bool {
    items.iter().any(|item| match item {
        Item::Part(part) => any(&part.items, is),
        item => is(item),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Form, Table};
    use crate::testing::chart;

    fn document(items: Vec<Item>) -> Document {
        Document {
            title: "t </script>".into(),
            warnings: vec!["cut & short".into()],
            sections: vec![Section { title: "One".into(), text: vec!["Text.".into()], items }],
            facts: vec![("Machine".into(), "two cores".into())],
            command: "heaptoll trace stat x".into(),
            ..Document::default()
        }
    }

    #[test]
    fn a_page_holds_tables_and_charts_and_no_markup_of_others() {
        let table = Table::of(["<img>"]).caption("by kind").note("a note");
        let table = table.text("kind", |name| *name).figure("calls", |_| "1,200").table();
        let forms = [Form::Lines, Form::Steps, Form::Stacked, Form::Bars];
        let charts = forms.iter().map(|form| Item::Chart(chart(*form, false)));
        let page = render(&document(charts.chain([Item::Table(table)]).collect())).expect("a page");
        for text in
            ["1,200", "a note", "cut &#38; short", "two cores", "heaptoll trace stat x", "id=\"chart-3\""]
        {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<img>") && !page.contains("t </script>"));
        assert_eq!(page.matches("<script").count(), 2);
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

    #[test]
    fn a_legend_names_the_palette_and_a_lead_leaves_anchors_as_they_are() {
        let mut document = document(vec![]);
        document.sections.insert(0, Section { text: vec!["Found.".into()], ..Section::default() });
        document.palette = vec!["glibc".into(), "<bump>".into()];
        let page = render(&document).expect("a page");
        for text in [
            "<p class=\"lead\">Found.</p>",
            "<bdi>&#60;bump&#62;</bdi>",
            "href=\"#section-1\"",
            "id=\"section-1\"",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("id=\"section-0\""));
    }
}
