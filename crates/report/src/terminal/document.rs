//! A [`Document`] in the terminal: its sentences and tables. Charts are for the page; the tables hold their figures.

use heaptoll_units::each_once;

use super::style::Style;
use super::table;
use crate::document::{Document, Item, Part, Section, Tone, tally};
use crate::format::and_list;

/// The option of parts that the page alone unfolds.
const PAGE: &str = "--html";

/// Renders a document.
pub fn render_document(document: &Document, style: &Style) -> String {
    let mut out = String::new();
    if !document.title.is_empty() {
        out += &style.paragraph("", &document.title, Tone::Strong);
    }
    if !document.subtitle.is_empty() {
        out += &style.paragraph("", &document.subtitle, Tone::Same);
    }
    for warning in &document.warnings {
        out += &style.paragraph("!", warning, Tone::More);
    }
    for section in document.sections.iter().filter(|section| is_shown(section)) {
        if !out.is_empty() {
            out.push('\n');
        }
        out += &render_section(section, style);
    }
    let mut folded = Vec::new();
    document.sections.iter().for_each(|section| unfoldable(&section.items, &mut folded));
    let folded = each_once(folded);
    if !folded.is_empty() {
        let text = format!("In the page (--html FILE), or here with the named option: {}", and_list(&folded));
        out += &style.paragraph("", &text, Tone::Dim);
    }
    out
}

/// Whether a section has more than what only pages show; one without any item has its heading, if any.
fn is_shown(section: &Section) -> bool {
    let is_folded = |item: &Item| {
        matches!(
            item,
            Item::Part(Part { folded: true, .. }) | Item::Chart(_) | Item::Flame(_) | Item::Mosaic(_)
        )
    };
    match section.items.is_empty() {
        true => !section.text.is_empty() || !section.title.is_empty(),
        false => !section.text.is_empty() || !section.items.iter().all(is_folded),
    }
}

/// Adds the folded parts that an option unfolds.
fn unfoldable(items: &[Item], found: &mut Vec<String>) {
    for item in items {
        let Item::Part(part) = item else { continue };
        if part.folded && !part.option.is_empty() {
            let title = part.title.split(',').next().unwrap_or_default();
            let title = title.split(": ").last().unwrap_or_default().to_lowercase();
            found.push(match part.option.as_str() {
                PAGE => title,
                option => format!("{title} ({option})"),
            });
        }
        unfoldable(&part.items, found);
    }
}

fn render_section(section: &Section, style: &Style) -> String {
    let mut out = headed(&section.title, &section.text, style);
    render_items(&section.items, style, &mut out);
    out
}

fn headed(title: &str, text: &[String], style: &Style) -> String {
    let mut out = String::new();
    if !title.is_empty() {
        out += &style.paragraph("", title, Tone::Strong);
    }
    for text in text {
        out += &style.paragraph("", text, Tone::Same);
    }
    out
}

/// Tables follow their sentences at once, and each other after an empty line, as parts do.
fn render_items(items: &[Item], style: &Style, out: &mut String) {
    let mut is_first = true;
    for item in items {
        let (drawn, is_apart) = match item {
            Item::Table(table) => (table::render(table, style), false),
            Item::Tally(shares) => (style.paragraph("", &tally(shares), Tone::Strong), false),
            Item::Warnings(warnings) => {
                warnings.iter().for_each(|warning| *out += &style.paragraph("!", warning, Tone::More));
                continue;
            }
            Item::Part(part) if !part.folded => (render_part(part, style), true),
            Item::Part(_) | Item::Chart(_) | Item::Flame(_) | Item::Mosaic(_) | Item::Commands(_) => continue,
        };
        if is_apart || !is_first {
            out.push('\n');
        }
        is_first = false;
        *out += &drawn;
    }
}

fn render_part(part: &Part, style: &Style) -> String {
    let mut out = headed(&part.title, &part.text, style);
    render_items(&part.items, style, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Cell, Column, Share, Table};

    fn document() -> Document {
        let table = Table::of([("malloc", "1,200"), ("free\u{1b}[2J", "7")])
            .caption("by kind")
            .text("kind", |row| row.0)
            .figure("calls", |row| row.1)
            .note("counted by the recorder")
            .table();
        let section = Section {
            title: "Calls".into(),
            text: vec!["Most are plain.".into()],
            items: vec![Item::Table(table)],
        };
        Document {
            title: "gawk".into(),
            subtitle: "a trace".into(),
            warnings: vec!["the trace was cut off".into()],
            sections: vec![section],
            ..Document::default()
        }
    }

    #[test]
    fn a_document_is_sentences_and_aligned_tables() {
        let style = Style { color: false, width: None, unicode: true };
        let text = render_document(&document(), &style);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..6],
            ["gawk", "a trace", "! the trace was cut off", "", "Calls", "Most are plain."]
        );
        assert_eq!(lines[7].split_whitespace().collect::<Vec<_>>(), ["kind", "calls"]);
        let end = lines[9].len();
        assert!(lines[9].ends_with("1,200") && lines[10].ends_with('7'), "{text}");
        assert_eq!(lines[10].chars().count(), end, "figures stand under each other: {text}");
        assert_eq!(lines[11], "- counted by the recorder");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_table_without_headings_has_no_line_for_them() {
        let mut document = document();
        if let Some(Item::Table(table)) = document.sections[0].items.first_mut() {
            table.columns.iter_mut().for_each(|column| column.title.clear());
        }
        let style = Style { color: false, width: None, unicode: true };
        let text = render_document(&document, &style);
        assert!(!text.contains('─') && text.contains("by kind\nmalloc"), "{text}");
    }

    /// On 40 columns a call site had a column of four characters, and as many lines as it has syllables.
    #[test]
    fn a_long_name_has_lines_of_its_own_where_figures_leave_it_none() {
        let mut document = document();
        let figures = [("stacks", "4"), ("objects", "40 070"), ("bytes", "1.14 MiB"), ("never freed", "0 B")];
        let table = Table::of(["rs::Store::add (rs.rs:6) < rs::main"]).sites("site", |name| *name).each(
            figures,
            |(title, _)| Column::figures(title),
            |_, (_, figure)| *figure,
        );
        document.sections[0].items = vec![Item::Table(table.table())];
        let render =
            |width| render_document(&document, &Style { color: false, width: Some(width), unicode: true });
        let narrow = render(40);
        assert!(narrow.contains("\nrs::Store::add (rs.rs:6) < rs::main\n"), "{narrow}");
        assert!(narrow.contains("stacks: 4, objects: 40"), "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
        assert!(!render(100).contains("stacks: 4"), "{}", render(100));
    }

    #[test]
    fn a_narrow_terminal_is_kept_to() {
        let mut document = document();
        document.sections[0].text = vec!["word ".repeat(60)];
        let style = Style { color: false, width: Some(40), unicode: false };
        let text = render_document(&document, &style);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }

    /// Every kind of item, 40 columns, no UTF-8, no colour.
    #[test]
    fn a_poor_terminal_shows_every_value_in_plain_ascii() {
        let value =
            |text: &str| Cell { range: "(1.1–1.3)".into(), published: "9.9".into(), ..Cell::text(text) };
        let table = Table::of(["gawk"]).text("program", |name| *name);
        let table = table.figure("time", |_| value("1.25")).figure("space", |_| value("1.75")).parts("");
        let share = Share { name: "undecided".into(), count: 3, ..Share::default() };
        let mut document = document();
        let part = Part { title: "Part · one".into(), items: vec![Item::Table(table)], ..Part::default() };
        document.sections[0].items.extend([Item::Tally(vec![share]), Item::Part(part)]);
        let style = Style { color: false, width: Some(40), unicode: false };
        let text = render_document(&document, &style);
        assert!(text.is_ascii() && !text.contains('\u{1b}'), "{text}");
        assert!(text.lines().all(|line| line.len() <= 40), "{text}");
        for value in ["1.25", "1.75", "9.9", "1.1-1.3", "3 undecided", "Part - one", "1,200"] {
            assert!(text.contains(value), "{value} in\n{text}");
        }
    }

    #[test]
    fn colour_is_used_only_where_it_is_wanted() {
        let cell = |_: &()| Cell::text("holds").toned(crate::document::Tone::Less);
        let table = Table::of([()]).text("Today", cell).parts("");
        let section = Section { items: vec![Item::Table(table)], ..Section::default() };
        let document = Document { sections: vec![section], ..Document::default() };
        let drawn = |color| render_document(&document, &Style { color, width: Some(40), unicode: true });
        assert!(drawn(true).contains('\u{1b}') && !drawn(false).contains('\u{1b}'));
    }
}
