//! A book's document holds all of the book, verdicts first.

use super::*;
use crate::format::printable;
use crate::html;
use crate::markdown;
use crate::terminal::{Style, render_document};
use crate::testing::{HOSTILE, book};

const PLAIN: Style = Style { color: false, width: None, unicode: true };

/// The page has many tables: once is enough.
fn page() -> &'static str {
    static PAGE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    PAGE.get_or_init(|| html::document::render(&book().document()).expect("a page"))
}

/// Text as HTML shows it.
fn html_text(text: &str) -> String {
    let text = printable(text).replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;");
    text.replace('"', "&#34;").replace('\'', "&#39;")
}

#[test]
fn every_value_text_and_command_of_the_book_is_on_the_page() {
    let book = book();
    let mut texts: Vec<&str> = vec![&book.title, &book.command];
    texts.extend(
        book.lead.iter().chain(&book.dateline).chain(&book.warnings).chain(&book.how).map(String::as_str),
    );
    for paper in &book.papers {
        texts.extend([paper.title.as_str(), &paper.source]);
        texts.extend(paper.about.iter().map(String::as_str));
        texts.extend(paper.names.iter().flat_map(|(kind, theirs, ours)| [kind.as_str(), theirs, ours]));
        for claim in &paper.claims {
            texts.extend([claim.words.as_str(), &claim.place, &claim.reason]);
            for test in &claim.tests {
                texts.extend([test.words.as_str(), &test.reason, &test.detectable]);
                let effects = test.effects.iter();
                texts.extend(effects.flat_map(|one| [one.words.as_str(), &one.text, &one.range, &one.basis]));
            }
        }
        for exhibit in &paper.exhibits {
            texts.push(&exhibit.title);
            let sentences = exhibit.text.iter().chain(&exhibit.notes).chain(&exhibit.commands);
            texts.extend(sentences.chain(&exhibit.table.columns).map(String::as_str));
            for (name, cells) in &exhibit.table.rows {
                texts.push(name);
                texts.extend(cells.iter().flat_map(|c| [c.ours.as_str(), &c.range, &c.paper, &c.missing]));
                let ratios = cells.iter().filter_map(|cell| cell.ratio.as_ref());
                texts.extend(ratios.flat_map(|ratio| [ratio.text.as_str(), &ratio.range]));
            }
        }
    }
    for step in &book.steps {
        texts.extend([
            step.name.as_str(),
            &step.extent,
            &step.took,
            &step.ending,
            &step.precision,
            &step.command,
        ]);
        texts.extend(step.warnings.iter().map(String::as_str));
    }
    assert!(texts.len() > 1000);
    for text in texts {
        assert!(page().contains(&html_text(text)), "{text}");
    }
}

#[test]
fn verdicts_stand_before_papers_and_every_link_leads_somewhere() {
    let book = book();
    let page = page();
    let at = |needle: &str| page.find(needle).unwrap_or_else(|| panic!("{needle}"));
    assert!(at("What holds today</bdi></h2>") < at("id=\"zorn1992-claim0\""));
    for paper in &book.papers {
        for claim in &paper.claims {
            let id = anchor(paper, &claim.id);
            assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
            assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
        }
    }
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
    }
}

#[test]
fn nothing_of_others_becomes_markup_and_the_page_needs_nothing() {
    let page = page();
    assert!(!page.contains(HOSTILE) && !page.contains("<script>document.title"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    assert_eq!(page.matches("<script").count(), 2);
    for needle in ["src=", "<link", "@import", "url("] {
        assert!(!page.contains(needle), "{needle}");
    }
    assert!(page.len() < 3_500_000, "{} bytes", page.len());
}

#[test]
fn the_terminal_has_verdicts_and_values_and_counts_claims_in_words() {
    let book = book();
    let text = render_document(&book.document(), &PLAIN);
    let first = book.papers[0].claims[0].words.as_str();
    let table = book.papers[0].exhibits[0].title.as_str();
    assert!(text.find(first).expect("the claim") < text.rfind(table).expect("the table"), "{text}");
    assert!(
        text.contains("20 claims: 8 confirmed, 4 contradicted, 4 not decided, 4 not measured."),
        "{text}"
    );
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
    let front = render_document(&book.front(), &PLAIN);
    assert!(front.contains(first) && !front.contains("CPU seconds"), "{front}");
}

/// Nine myths that fail were counted with the claims that fail, and the page read as if the papers were wrong.
#[test]
fn the_front_counts_a_myth_that_fails_for_its_author() {
    let text = |myth: bool, answer: Answer| {
        let mut book = book();
        book.papers.truncate(1);
        book.papers[0].claims.truncate(1);
        (book.papers[0].claims[0].myth, book.papers[0].claims[0].answer) = (myth, answer);
        render_document(&book.front(), &PLAIN)
    };
    let words = "A myth that fails confirms its author.";
    let fails = text(true, Answer::Fails);
    assert!(fails.contains("1 claim: 1 confirmed.") && fails.contains(words), "{fails}");
    assert!(text(true, Answer::Holds).contains("1 claim: 1 contradicted."));
    let plain = text(false, Answer::Fails);
    assert!(plain.contains("1 claim: 1 contradicted.") && !plain.contains(words), "{plain}");
}

/// Twelve sentences of ours were among "99 claims of the papers".
#[test]
fn claims_of_ours_are_counted_apart_from_those_of_the_papers() {
    let mut book = book();
    book.papers.truncate(1);
    book.papers[0].claims[1].ours = true;
    let (text, markdown) = (render_document(&book.front(), &PLAIN), markdown::render(&book.front()));
    for shown in [text, markdown] {
        assert!(shown.contains("4 claims of the papers: "), "{shown}");
        assert!(shown.contains("1 claim of ours: "), "{shown}");
        assert_eq!(shown.matches("a claim of ours").count(), 1, "{shown}");
    }
}

#[test]
fn an_abstract_is_answered_sentence_by_sentence_before_the_claims() {
    let mut book = book();
    book.papers.truncate(1);
    let ids = |range: std::ops::Range<usize>| range.map(|at| format!("claim{at}")).collect();
    let sentence =
        |words: &str, claims| Sentence { words: words.into(), claims, since: "Frees became cheap.".into() };
    book.papers[0].summary = vec![sentence("Both were so.", ids(0..2)), sentence("It was so.", ids(0..1))];
    let text = render_document(&book.front(), &PLAIN);
    assert!(text.contains("1 confirmed, 1 contradicted"), "{text}");
    assert!(!text.contains("1 confirmed "), "one answer needs no number: {text}");
    assert!(text.contains("It was so.") && text.contains("named option: claim by claim"), "{text}");
    let page = markdown::render(&book.front());
    assert!(
        page.contains("<summary>Claim by claim</summary>") && page.contains("| Frees became cheap. |"),
        "{page}"
    );
    assert!(markdown::render(&book.abstracts()).contains("| It was so. |"));
}

#[test]
fn a_front_is_kept_to_a_narrow_terminal() {
    let style = Style { width: Some(60), ..PLAIN };
    let text = render_document(&book().front(), &style);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn where_nothing_is_published_there_is_no_column_of_it() {
    let mut book = book();
    assert!(markdown::render(&book.document()).contains("| Paper |"));
    let exhibits = book.papers.iter_mut().flat_map(|paper| &mut paper.exhibits);
    for (_, cells) in exhibits.flat_map(|exhibit| &mut exhibit.table.rows) {
        cells.iter_mut().for_each(|cell| cell.paper = String::new());
    }
    let text = markdown::render(&book.document());
    assert!(!text.contains("| Paper |") && !text.contains(": paper |"), "{text}");
}

#[test]
fn what_the_paper_calls_a_myth_is_borne_out_where_it_fails() {
    let claim = |answer, myth| tone(Claim { answer, myth, ..Claim::default() }.standing());
    assert_eq!((claim(Answer::Fails, true), claim(Answer::Holds, true)), (Tone::Less, Tone::More));
    assert_eq!((claim(Answer::Fails, false), claim(Answer::Holds, false)), (Tone::More, Tone::Less));
}

#[test]
fn rows_without_any_value_are_named_in_a_note() {
    let missing = |why: &str| Pair { missing: why.into(), ..Pair::default() };
    let published = Pair { paper: "2".into(), ..missing("left out") };
    let row = |name: &str, cells: Vec<Pair>| (name.to_owned(), cells);
    let table = Pairs {
        columns: vec![String::new(); 3],
        rows: vec![
            row("make", vec![missing("left out"); 2]),
            row("lua", vec![missing("left out"); 2]),
            row("perl", vec![published, missing("left out")]),
            row("gawk", vec![missing("left out"), missing("crashed")]),
        ],
        ..Pairs::default()
    };
    let shown = values(&table, &[]);
    assert_eq!(shown.notes, ["make and lua: left out."]);
    let names: Vec<&str> = shown.rows.iter().map(|row| row[0].text.as_str()).collect();
    assert_eq!(names, ["perl", "gawk"]);
}

#[test]
fn many_warnings_are_folded_after_the_first() {
    let mut book = book();
    book.warnings = (0..6).map(|at| format!("warning {at}")).collect();
    let front = book.front();
    assert_eq!(front.warnings.len(), WARNINGS);
    let markdown = markdown::render(&front);
    assert!(markdown.contains("<summary>3 more warnings</summary>\n\nwarning 3\n"), "{markdown}");
}

#[test]
fn an_empty_book_is_still_a_document() {
    assert!(render_document(&Book::default().document(), &PLAIN).contains("0 claims"));
}
