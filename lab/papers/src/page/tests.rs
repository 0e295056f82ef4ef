//! The page holds all of the results, verdicts first.

use heaptoll_report::document::Tone;
use heaptoll_report::format::printable;
use heaptoll_report::terminal::{Style, render_document};
use heaptoll_report::{html, markdown};

use super::book::{abstracts, document, front};
use super::paper::Paper;
use super::standing::Standing;
use super::testing::results;
use crate::definition::Sentence;
use crate::exhibit::Body;
use crate::results::Results;
use crate::verdict::Answer;

const PLAIN: Style = Style { color: false, width: None, unicode: true };
/// What a page must escape.
const HOSTILE: &str = "<script>document.title='owned'</script>\u{1b}[31m\u{202e}\"'&`${1}";

/// A claim with each of these answers: `claim0`, ...
fn answered(answers: &[Answer]) -> Results {
    let mut results = results();
    let paper = &mut results.papers[0];
    let (claim, verdict) = (paper.study.claims.remove(0), paper.verdicts.remove(0));
    for (at, &answer) in answers.iter().enumerate() {
        let (mut claim, mut verdict) = (claim.clone(), verdict.clone());
        claim.id = format!("claim{at}");
        verdict.claim.clone_from(&claim.id);
        (verdict.answer, verdict.tests[0].answer, verdict.myth) = (answer, answer, false);
        paper.study.claims.push(claim);
        paper.verdicts.push(verdict);
    }
    results
}

/// One claim with each answer.
fn each() -> Results {
    answered(&[Answer::Holds, Answer::Fails, Answer::Undecided, Answer::NotMeasured])
}

fn page(results: &Results) -> String {
    html::document::render(&document(results)).expect("a page")
}

fn text(results: &Results) -> String {
    render_document(&front(results), &PLAIN)
}

/// Text as HTML shows it.
fn html_text(text: &str) -> String {
    let text = printable(text).replace('&', "&#38;").replace('<', "&#60;").replace('>', "&#62;");
    text.replace('"', "&#34;").replace('\'', "&#39;")
}

#[test]
fn every_value_text_and_command_of_the_results_is_on_the_page() {
    let mut results = each();
    results.warnings.push(format!("{HOSTILE} was refused"));
    let paper = &mut results.papers[0];
    paper.study.about.push(HOSTILE.into());
    paper.study.names.programs.insert("yacr".into(), HOSTILE.into());
    paper.verdicts[1].words = HOSTILE.into();
    paper.exhibits[0].notes.push("Programs have the same names.".into());
    results.steps[0].warnings.push(format!("{HOSTILE} crashed"));
    let page = page(&results);
    let (paper, step) = (&results.papers[0], &results.steps[0]);
    let mut texts =
        vec!["2026-11-", "took 4", "ratio to cartesian", "0.260", "1.04", "(0.234–0.286)", "88.1"];
    texts.extend([&results.command, &step.command, &step.planned.step, &step.precision].map(String::as_str));
    texts.extend(results.warnings.iter().chain(&step.warnings).map(String::as_str));
    texts.extend([paper.study.title.as_str(), &paper.study.source, "sunos", "cut at its deadline"]);
    texts.extend(paper.study.about.iter().map(String::as_str));
    for verdict in &paper.verdicts {
        let tested = &verdict.tests[0];
        texts.extend([&verdict.words, &verdict.place, &verdict.reason, &tested.words].map(String::as_str));
        texts.extend([tested.effects[0].words.as_str(), "6 pairs", verdict.answer.label()]);
    }
    let shown = &paper.exhibits[0];
    texts.extend(shown.notes.iter().chain(&shown.commands).chain([&shown.title]).map(String::as_str));
    for text in texts {
        assert!(page.contains(&html_text(text)), "{text}");
    }
    assert!(!page.contains(HOSTILE) && !page.contains("<script>document.title"));
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
}

#[test]
fn verdicts_stand_before_papers_and_every_link_leads_somewhere() {
    let results = each();
    let page = page(&results);
    let at = |needle: &str| page.find(needle).unwrap_or_else(|| panic!("{needle}"));
    assert!(at("What holds today</bdi></h2>") < at("id=\"made-claim0\""));
    for verdict in &results.papers[0].verdicts {
        let id = Paper::all(&results)[0].anchor(&verdict.claim);
        assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
    }
    for link in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
    }
}

#[test]
fn the_terminal_has_verdicts_and_values_and_counts_claims_in_words() {
    let results = each();
    let whole = render_document(&document(&results), &PLAIN);
    let first = results.papers[0].verdicts[0].words.as_str();
    let table = results.papers[0].exhibits[0].title.as_str();
    assert!(whole.find(first).expect("the claim") < whole.rfind(table).expect("the table"), "{whole}");
    let counts = "4 claims: 1 confirmed, 1 contradicted, 1 not decided, 1 not measured.";
    assert!(whole.contains(counts), "{whole}");
    let front = text(&results);
    assert!(front.contains(first) && !front.contains("CPU time"), "{front}");
}

/// Nine myths that fail were counted with the claims that fail, and the page read as if the papers were wrong.
#[test]
fn the_front_counts_a_myth_that_fails_for_its_author() {
    let of = |myth: bool, answer: Answer| {
        let mut results = answered(&[answer]);
        results.papers[0].verdicts[0].myth = myth;
        (text(&results), Standing::of(&results.papers[0].verdicts[0]).tone())
    };
    let words = "A myth that fails confirms its author.";
    let (fails, tone) = of(true, Answer::Fails);
    assert!(fails.contains("1 claim: 1 confirmed.") && fails.contains(words), "{fails}");
    assert_eq!((tone, of(true, Answer::Holds).1), (Tone::Less, Tone::More));
    assert!(of(true, Answer::Holds).0.contains("1 claim: 1 contradicted."));
    let (plain, tone) = of(false, Answer::Fails);
    assert!(plain.contains("1 claim: 1 contradicted.") && !plain.contains(words), "{plain}");
    assert_eq!((tone, of(false, Answer::Holds).1), (Tone::More, Tone::Less));
}

/// Twelve sentences of ours were among "99 claims of the papers".
#[test]
fn claims_of_ours_are_counted_apart_from_those_of_the_papers() {
    let mut results = each();
    results.papers[0].verdicts[1].ours = true;
    for shown in [text(&results), markdown::render(&front(&results))] {
        assert!(shown.contains("3 claims of the papers: "), "{shown}");
        assert!(shown.contains("1 claim of ours: "), "{shown}");
        assert_eq!(shown.matches("a claim of ours").count(), 1, "{shown}");
    }
}

#[test]
fn an_abstract_is_answered_sentence_by_sentence_before_the_claims() {
    let mut results = each();
    let ids = |range: std::ops::Range<usize>| range.map(|at| format!("claim{at}")).collect();
    let since = Some("Frees became cheap.".to_owned());
    let sentence = |words: &str, claims| Sentence {
        words: words.into(),
        claims,
        figures: vec!["It takes {claim0} times as much.".into(), "And {claim3:2} at most.".into()],
        since: since.clone(),
    };
    results.papers[0].study.summary =
        vec![sentence("Both were so.", ids(0..2)), sentence("It was so.", ids(0..1))];
    let shown = text(&results);
    assert!(shown.contains("1 confirmed, 1 contradicted"), "{shown}");
    assert!(!shown.contains("1 confirmed "), "one answer needs no number: {shown}");
    assert!(shown.contains("It was so.") && shown.contains("named option: claim by claim"), "{shown}");
    let page = markdown::render(&front(&results));
    let parts =
        ["<summary>Claim by claim</summary>", "It takes 1.04 times as much.", "| Frees became cheap. |"];
    assert!(parts.iter().all(|part| page.contains(part)), "{page}");
    assert!(markdown::render(&abstracts(&results)).contains("| It was so. |"));
    let paper = &mut results.papers[0];
    let mut more = paper.verdicts[0].tests[0].effects[0].clone();
    more.value = 2.0;
    paper.verdicts[0].tests[0].effects.push(more);
    let shown = markdown::render(&abstracts(&results));
    assert!(
        shown.contains("It takes 1.04 to 2.00 times as much."),
        "of several the least and the most: {shown}"
    );
    results.papers[0].study.summary[0].figures.clear();
    assert!(
        markdown::render(&abstracts(&results)).contains("1.04 (0.95 to 1.14)"),
        "else the reason's figure"
    );
}

#[test]
fn a_front_is_kept_to_a_narrow_terminal() {
    let style = Style { width: Some(60), ..PLAIN };
    let text = render_document(&front(&each()), &style);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn where_nothing_is_published_there_is_no_column_of_it() {
    let mut results = each();
    assert!(markdown::render(&document(&results)).contains(": paper |"));
    let Body::Table { rows, .. } = &mut results.papers[0].exhibits[0].body else { panic!("a table") };
    rows.iter_mut().flat_map(|(_, pairs)| pairs).for_each(|pair| pair.published.clear());
    let text = markdown::render(&document(&results));
    assert!(!text.contains("| Paper |") && !text.contains(": paper |"), "{text}");
}

#[test]
fn many_warnings_are_folded_after_the_first() {
    let results =
        Results { warnings: (0..6).map(|at| format!("warning {at}")).collect(), complete: true, ..each() };
    let front = front(&results);
    assert_eq!(front.warnings.len(), 3);
    let markdown = markdown::render(&front);
    assert!(markdown.contains("<summary>3 more warnings</summary>\n\nwarning 3\n"), "{markdown}");
}

#[test]
fn results_of_nothing_are_still_a_document() {
    let nothing = Results { papers: vec![], steps: vec![], ..results() };
    assert!(render_document(&document(&nothing), &PLAIN).contains("0 claims"));
}
