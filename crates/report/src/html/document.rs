//! A [`Document`] as a page that needs nothing but itself: no network, no other file. About 1.9 MB, nearly all of it the
//! charting library.
//!
//! Sections are written straight into the page, without a copy: the rows of an experiment may be a million.

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::drawing::{self, Names};
use super::engine;
use super::palette::Palette;
use super::table::{self, escaped, push_chip};
use super::views::Fact;
use crate::document::{Chart, Document, Item, Part, section_id, tally};
use crate::{ReportError, format};

/// What comes before the sections.
#[derive(Template)]
#[template(path = "document.html")]
struct Front<'a> {
    title: String,
    subtitle: String,
    warnings: Vec<String>,
    version: &'static str,
    style: &'static str,
    /// Anchors and titles of the sections.
    contents: Vec<(String, String)>,
    /// Names with their marks.
    legend: String,
    facts: &'a [Fact],
    command: &'a str,
}

/// What comes after them.
#[derive(Template)]
#[template(path = "end.html")]
struct End<'a> {
    version: &'static str,
    script: &'static str,
    engine: String,
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
    let mut legend = String::new();
    document.palette.iter().for_each(|name| push_chip(name, &palette, &mut legend));
    let facts: Vec<Fact> = document.facts.iter().map(|(name, text)| Fact::new(name, text)).collect();
    let command = format::printable(&document.command);
    let sections = document.sections.iter().enumerate();
    let contents = sections.filter(|(_, section)| !section.title.is_empty());
    let front = Front {
        title: format::printable(&document.title),
        subtitle: format::printable(&document.subtitle),
        warnings: document.warnings.iter().map(|text| format::printable(text)).collect(),
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("../../templates/style.css"),
        contents: contents.map(|(at, section)| (section_id(at), format::printable(&section.title))).collect(),
        legend,
        facts: &facts,
        command: &command,
    };
    let failed = |error: askama::Error| ReportError::Encode { form: "HTML", detail: error.to_string() };
    let mut body = Body { out: front.render().map_err(failed)?, registry: ChartRegistry::new(palette) };
    for (at, section) in document.sections.iter().enumerate() {
        body.out += &format!("<section id=\"{}\">\n", section_id(at));
        body.headed("h2", &section.title, &section.text);
        body.items(&section.items);
        body.out += "</section>\n";
    }
    let end = End {
        version: env!("CARGO_PKG_VERSION"),
        script: engine::SCRIPT,
        engine: engine::packed()?,
        charts: body.registry.json(),
        facts: &facts,
        command: &command,
    };
    end.render_into(&mut body.out).map_err(failed)?;
    Ok(body.out)
}

/// The sections so far.
struct Body {
    out: String,
    registry: ChartRegistry,
}

impl Body {
    fn headed(&mut self, heading: &str, title: &str, text: &[String]) {
        if !title.is_empty() {
            self.out += &format!("<{heading}><bdi>{}</bdi></{heading}>\n", escaped(title));
        }
        for text in text {
            self.out += &format!("<p>{}</p>\n", escaped(text));
        }
    }

    fn items(&mut self, items: &[Item]) {
        let mut charts = Vec::new();
        for item in items {
            if let Item::Chart(chart) = item {
                charts.push(chart);
                continue;
            }
            self.charts(&std::mem::take(&mut charts));
            self.item(item);
        }
        self.charts(&charts);
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Table(table) => table::push_table(table, &mut self.out),
            Item::Grid(grid) => table::push_grid(grid, &self.registry.palette, &mut self.out),
            Item::Chart(chart) => self.charts(&[chart]),
            Item::Tally(shares) => self.out += &format!("<p><b>{}</b></p>\n", escaped(&tally(shares))),
            Item::Warnings(warnings) => warnings
                .iter()
                .for_each(|text| self.out += &format!("<p class=\"alert\">{}</p>\n", escaped(text))),
            Item::Commands(commands) => commands.iter().for_each(|command| {
                let command = escaped(command);
                self.out += &format!(
                    "<div class=\"command\"><pre>{command}</pre><button type=\"button\" hidden>Copy</button></div>\n"
                );
            }),
            Item::Part(part) => self.part(part),
            Item::Raw(raw) => table::push_raw(raw, &mut self.out),
        }
    }

    fn part(&mut self, part: &Part) {
        let id = if part.id.is_empty() { String::new() } else { format!(" id=\"{}\"", escaped(&part.id)) };
        if part.folded {
            self.out += &format!("<details{id}><summary>{}</summary>\n", escaped(&part.title));
            self.headed("h3", "", &part.text);
        } else {
            self.out += &format!("<div{id}>\n");
            self.headed("h3", &part.title, &part.text);
        }
        self.items(&part.items);
        if !part.see.is_empty() {
            self.out += "<p class=\"see\">";
            part.see.iter().for_each(|link| table::push_link(link, &mut self.out));
            self.out += "</p>\n";
        }
        self.out += if part.folded { "</details>\n" } else { "</div>\n" };
    }

    /// Charts that follow each other; in twos where the page has a legend of their names.
    fn charts(&mut self, charts: &[&Chart]) {
        let slots =
            charts.iter().filter_map(|chart| drawing::add_chart(chart, Names::Inside, &mut self.registry));
        let slots: Vec<_> = slots.collect();
        let in_twos = slots.len() > 1 && !self.registry.palette.is_empty();
        if in_twos {
            self.out += "<div class=\"charts\">";
        }
        for (at, slot) in slots.iter().enumerate() {
            let class = match in_twos {
                true if at + 1 == slots.len() && at % 2 == 0 => "wide",
                true => "two",
                false => "alone",
            };
            self.out += &format!(
                "<figure class=\"{class}\">\n<h4>{}</h4>\n<div class=\"chart\" id=\"{}\"></div>\n\
                 <noscript><p>This chart needs scripts, which are off.</p></noscript>\n\
                 <figcaption>{}</figcaption>\n</figure>\n",
                escaped(&slot.title),
                slot.id,
                escaped(&slot.caption)
            );
        }
        if in_twos {
            self.out += "</div>\n";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Axis, Column, Form, Section, Series, Table};

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
