//! What a document holds as text is what a parser of Markdown finds in what we write.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::*;
use crate::document::{Axis, Column, Form, Share};
use crate::testing::HOSTILE;

/// The texts of a document, one a block or a cell, in the order of the file.
fn parsed(markdown: &str) -> Vec<String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_MATH
        | Options::ENABLE_GFM;
    let mut found = vec![String::new()];
    for event in Parser::new_ext(markdown, options) {
        let last = found.last_mut().expect("there is always one");
        match event {
            Event::Text(text) | Event::Code(text) => last.push_str(&text),
            Event::Html(html) => last.push_str(&unescaped(&html)),
            Event::InlineHtml(html) => assert_eq!(&*html, "<!-- -->"),
            Event::Start(
                Tag::Paragraph
                | Tag::Heading { .. }
                | Tag::Item
                | Tag::TableCell
                | Tag::CodeBlock(_)
                | Tag::HtmlBlock,
            ) => found.push(String::new()),
            Event::Start(
                Tag::Table(_) | Tag::TableHead | Tag::TableRow | Tag::List(None) | Tag::BlockQuote(Some(_)),
            ) => {}
            Event::End(end) => assert!(!matches!(end, TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link)),
            other => panic!("{other:?} in\n{markdown}"),
        }
    }
    let trimmed = found.iter().map(|text| text.trim().to_owned());
    trimmed.filter(|text| !text.is_empty()).collect()
}

fn unescaped(html: &str) -> String {
    let inner = html
        .replace("<summary>", "")
        .replace("</summary>", "")
        .replace("<details>", "")
        .replace("</details>", "");
    assert!(!inner.contains('<'), "{html}");
    let mut out = inner.replace("&lt;", "<").replace("&gt;", ">");
    for code in 33_u8..127 {
        out = out.replace(&format!("&#{code};"), &char::from(code).to_string());
    }
    out.replace("&amp;", "&")
}

/// What must be found of a text.
fn shown(text: &str) -> Option<String> {
    let text = printable(text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Texts with the characters that have a meaning somewhere.
fn text() -> impl Strategy<Value = String> {
    let plain = proptest::string::string_regex("[a-z0-9 ]{0,6}").expect("a pattern");
    let meaning =
        proptest::string::string_regex("[#|`*_~<>&\\[\\]()!:@$^+=.\\\\\"'/ a1\\-]{0,10}").expect("a pattern");
    let known = prop::sample::select(vec![
        "- [x] done",
        "1. one",
        "1) one",
        "| a | b |",
        "--- | ---",
        "```",
        "~~~",
        "<details>",
        "</details>",
        "&lt;",
        "<!--",
        "-->",
        "http://a.b",
        "www.a.b",
        "@user",
        "#12",
        ":tada:",
        "[a](b)",
        "[^1]: x",
        "$x$",
        "$$",
        "\\|",
        "\u{1b}[2J",
        "\n\n# x",
        "\u{202e}",
        "---",
        "===",
        "std::map<int, a::b::c>",
        "a_b_c",
        "**b**",
        "![x](y)",
        "<b>",
        "\u{a0}x\u{a0}",
        "> q",
        "=",
        "+ x",
        "* * *",
        "\t",
        HOSTILE,
    ]);
    let part = prop_oneof![plain, meaning, known.prop_map(str::to_owned), any::<String>()];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

fn table() -> impl Strategy<Value = Table> {
    (1usize..4, 0usize..4).prop_flat_map(|(width, height)| {
        let column = (text(), any::<bool>(), 0usize..2);
        let column =
            column.prop_map(|(title, figures, lines)| Column { title, figures, lines, ..Column::default() });
        let rows = prop::collection::vec(prop::collection::vec(text(), width), height);
        let whole = (text(), prop::collection::vec(column, width), rows, prop::collection::vec(text(), 0..3));
        whole.prop_map(|(caption, columns, rows, notes)| {
            let table = Table::of(rows).caption(caption).notes(notes);
            let each = columns.into_iter().enumerate();
            table.each(each, |(_, column)| column.clone(), |row, (at, _)| row[*at].clone()).table()
        })
    })
}

fn document() -> impl Strategy<Value = Document> {
    let texts = || prop::collection::vec(text(), 0..3);
    let part = (text(), texts(), table(), any::<bool>()).prop_map(|(title, text, table, folded)| {
        Item::Part(Part { title, text, items: vec![Item::Table(table)], folded, ..Part::default() })
    });
    let item = prop_oneof![table().prop_map(Item::Table), texts().prop_map(Item::Commands), part];
    let section = (text(), texts(), prop::collection::vec(item, 0..3))
        .prop_map(|(title, text, items)| Section { title, text, items });
    let facts = prop::collection::vec((text(), text()), 0..3);
    let whole = (text(), text(), texts(), prop::collection::vec(section, 0..3), facts, text());
    whole.prop_map(|(title, subtitle, warnings, sections, facts, command)| Document {
        title,
        subtitle,
        warnings,
        sections,
        facts,
        command,
        ..Document::default()
    })
}

/// All texts of a document, in the order in which they are written.
fn texts(document: &Document) -> Vec<String> {
    let mut all = vec![document.title.clone(), document.subtitle.clone()];
    all.extend(document.warnings.iter().cloned());
    for section in &document.sections {
        all.push(section.title.clone());
        all.extend(section.text.iter().cloned());
        all.extend(section.items.iter().flat_map(item_texts));
    }
    if !document.facts.is_empty() {
        all.push("Facts".into());
    }
    all.extend(document.facts.iter().map(|(name, value)| format!("{name}: {value}")));
    if !document.command.is_empty() {
        all.extend(["The command that repeats it:".into(), document.command.clone()]);
    }
    all.iter().filter_map(|text| shown(text)).collect()
}

fn item_texts(item: &Item) -> Vec<String> {
    match item {
        Item::Table(table) => {
            let mut all = vec![table.caption.clone()];
            all.extend(table.columns.iter().map(|column| column.title.clone()));
            all.extend(table.rows.iter().flatten().map(|cell| cell.text.clone()));
            all.extend(table.notes.iter().cloned());
            all
        }
        Item::Part(part) => {
            let own = std::iter::once(part.title.clone()).chain(part.text.iter().cloned());
            own.chain(part.items.iter().flat_map(item_texts)).collect()
        }
        Item::Commands(commands) => commands.clone(),
        _ => vec![],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_parser_finds_the_texts_of_the_document(document in document()) {
        let markdown = render(&document);
        prop_assert_eq!(parsed(&markdown), texts(&document), "{}", markdown);
    }
}

fn section(items: Vec<Item>) -> Document {
    let section = Section { title: "Calls".into(), text: vec!["Most are plain.".into()], items };
    Document {
        title: "gawk".into(),
        subtitle: "a trace".into(),
        warnings: vec!["It was cut off.".into(), "So was this.".into()],
        sections: vec![section],
        facts: vec![("machine".into(), "two cores".into())],
        command: "heaptoll trace stat gawk.heaptoll".into(),
        ..Document::default()
    }
}

fn sites(rows: usize) -> Table {
    let table = Table::of(vec![("f(a|b) `x` < main", "1,200"); rows]).caption("by site").note("counted");
    table.sites("site", |row| row.0).figure("calls", |row| row.1).table()
}

#[test]
fn a_document_is_headings_warnings_tables_and_folded_facts() {
    let written = render(&section(vec![Item::Table(sites(1))]));
    let expected = "## gawk\n\na trace\n\n> [!WARNING]\n> It was cut off.\n>\n> So was this.\n\n### Calls\n\nMost are plain.\n\n\
        by site\n\n| site | calls |\n| :-- | --: |\n| ``f(a\\|b) `x` < main`` | 1,200 |\n\n- counted\n\n\
        <details>\n<summary>Facts</summary>\n\n- machine: two cores\n\n</details>\n\nThe command that repeats it:\n\n\
        ```sh\nheaptoll trace stat gawk.heaptoll\n```\n";
    assert_eq!(written, expected);
}

#[test]
fn a_long_table_is_folded() {
    let written = render(&section(vec![Item::Table(sites(LONG + 1))]));
    assert!(written.contains("<summary>by site (41 rows)</summary>\n\n| site | calls |"), "{written}");
    assert!(!render(&section(vec![Item::Table(sites(LONG))])).contains("rows)"));
}

#[test]
fn charts_are_named_and_shares_counted() {
    let chart = Chart {
        title: "Live bytes".into(),
        caption: String::new(),
        form: Form::Lines,
        x: Axis::default(),
        y: Axis::default(),
        series: vec![],
    };
    let share = |name: &str, count| Share { name: name.into(), count, ..Share::default() };
    let shares = vec![share("agree", 2), share("undecided", 0), share("not measured", 1)];
    let written =
        render(&section(vec![Item::Tally(shares), Item::Chart(chart), Item::Table(Table::default())]));
    assert!(
        written.contains("\n2 agree, 1 not measured\n\nCharts on the page (--html): Live bytes.\n"),
        "{written}"
    );
}
