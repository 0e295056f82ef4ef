//! A [`Book`] as a page that needs nothing but itself: verdicts, sections, what was run.

use std::collections::BTreeMap;

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::drawing::{self, DrawingSlot, Names};
use super::engine;
use super::sparkline::{Scale, Sparkline};
use super::views::Fact;
use crate::book::{Answer, Book, Claim, Exhibit, Pair, Pairs, PaperSection, Standing, Step, Test, Tone};
use crate::format::{plural, printable};
use crate::{ReportError, format};

/// Tables with more columns of values than this have the published values under ours, the others side by side.
const SIDE_BY_SIDE: usize = 3;
/// So many warnings stand before the verdicts, the others are folded.
const WARNINGS: usize = 3;
/// Longer tables scroll in their box.
const LONG: usize = 40;
/// Each standing in the order of its part of the bar.
const STANDINGS: [(Standing, &str, &str); 4] = [
    (Standing::BorneOut, "agree", "as in the paper"),
    (Standing::Contradicted, "against", "contrary to the paper"),
    (Standing::Undecided, "open", "undecided"),
    (Standing::NotMeasured, "none", "not measured"),
];

#[derive(Template)]
#[template(path = "book.html")]
struct Filled {
    title: String,
    lead: Vec<String>,
    dateline: String,
    warnings: Vec<String>,
    /// Those after the first few, folded.
    more_warnings: Vec<String>,
    how: Vec<String>,
    version: &'static str,
    style: &'static str,
    script: &'static str,
    engine: String,
    charts: String,
    tally: Vec<Part>,
    total: String,
    papers: Vec<PaperView>,
    steps: Vec<Step>,
    facts: Vec<Fact>,
    command: String,
}

/// A part of the bar of verdicts.
struct Part {
    class: &'static str,
    label: &'static str,
    count: usize,
}

/// An answer as a coloured word.
struct AnswerView {
    label: &'static str,
    class: &'static str,
}

struct PaperView {
    id: String,
    title: String,
    /// In the contents of the page.
    short: String,
    source: String,
    about: Vec<String>,
    counts: String,
    names: Vec<(String, String, String)>,
    contents: Vec<(String, String)>,
    claims: Vec<ClaimView>,
    exhibits: Vec<ExhibitView>,
}

struct ClaimView {
    id: String,
    place: String,
    words: String,
    myth: bool,
    answer: AnswerView,
    reason: String,
    /// Of the test that decided.
    sparkline: Option<Sparkline>,
    /// Links with short names.
    short: Vec<(String, String)>,
    /// Links with whole names.
    exhibits: Vec<(String, String)>,
    /// How many tests and comparisons.
    extent: String,
    tests: Vec<TestView>,
}

struct TestView {
    words: String,
    answer: AnswerView,
    reason: String,
    detectable: String,
    long: bool,
    effects: Vec<EffectView>,
}

struct EffectView {
    words: String,
    text: String,
    range: String,
    basis: String,
    sparkline: Option<Sparkline>,
}

struct ExhibitView {
    id: String,
    title: String,
    text: Vec<String>,
    chart: Option<DrawingSlot>,
    table: PairsView,
    notes: Vec<String>,
    bears: Vec<(String, String)>,
    commands: Vec<String>,
}

struct PairsView {
    corner: String,
    /// Heading of each column, and whether anything published stands in it.
    headings: Vec<(String, bool)>,
    rows: Vec<(String, Vec<PairView>)>,
    /// Rows without any value, ours or published, and why.
    left_out: Vec<(String, String)>,
    /// Published values have columns of their own.
    side_by_side: bool,
    /// There are published values.
    published: bool,
    /// There are intervals, or ranges, of values without a ratio.
    ranges: bool,
    baseline: String,
    long: bool,
    /// Why values are missing, numbered from 1.
    reasons: Vec<String>,
}

impl PairsView {
    /// It has not even a row without values.
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.left_out.is_empty()
    }
}

struct PairView {
    ours: String,
    range: String,
    ratio: String,
    ratio_range: String,
    tone: &'static str,
    paper: String,
    missing: String,
    /// Number of the reason; 0 for none.
    note: usize,
    /// The column has published values.
    published: bool,
}

/// Renders a book as one page.
///
/// # Errors
/// `Encode` when the page cannot be put together.
pub fn render(book: &Book) -> Result<String, ReportError> {
    let mut registry = ChartRegistry::default();
    let claims = || book.papers.iter().flat_map(|paper| &paper.claims);
    let papers = book.papers.iter().map(|paper| paper_view(paper, &mut registry)).collect();
    let mut warnings = texts(&book.warnings);
    // One more is no longer than the line that folds it.
    let first = if warnings.len() > WARNINGS + 1 { WARNINGS } else { warnings.len() };
    let more_warnings = warnings.split_off(first);
    let filled = Filled {
        title: printable(&book.title),
        lead: texts(&book.lead),
        dateline: texts(&book.dateline).join(" · "),
        warnings,
        more_warnings,
        how: texts(&book.how),
        version: env!("CARGO_PKG_VERSION"),
        style: include_str!("../../templates/style.css"),
        script: engine::SCRIPT,
        engine: engine::packed()?,
        charts: registry.json(),
        tally: parts(claims()),
        total: plural(claims().count(), "claim"),
        papers,
        steps: book.steps.iter().map(step_view).collect(),
        facts: book.facts.iter().map(|(name, text)| Fact::new(name, text)).collect(),
        command: printable(&book.command),
    };
    filled.render().map_err(|error| ReportError::Encode { form: "HTML", detail: error.to_string() })
}

fn texts(all: &[String]) -> Vec<String> {
    all.iter().map(|text| printable(text)).collect()
}

fn parts<'a>(claims: impl Iterator<Item = &'a Claim>) -> Vec<Part> {
    let mut counts: BTreeMap<Standing, usize> = BTreeMap::new();
    for claim in claims {
        *counts.entry(claim.standing()).or_default() += 1;
    }
    let part =
        |(standing, class, label)| Part { class, label, count: counts.get(&standing).copied().unwrap_or(0) };
    STANDINGS.map(part).into()
}

/// Letters, digits and hyphens of an anchor; anything else would not be one.
fn anchor(paper: &str, id: &str) -> String {
    let whole = if id.is_empty() { paper.to_owned() } else { format!("{paper}-{id}") };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    whole.chars().map(plain).collect()
}

/// `Table 3` of `Table 3: CPU seconds`.
fn short(title: &str) -> String {
    printable(title.split_once(':').map_or(title, |(name, _)| name))
}

fn paper_view(paper: &PaperSection, registry: &mut ChartRegistry) -> PaperView {
    let counts = parts(paper.claims.iter());
    let counts: Vec<String> = counts
        .iter()
        .filter(|part| part.count > 0)
        .map(|part| format!("{} {}", part.count, part.label))
        .collect();
    PaperView {
        id: anchor(&paper.id, ""),
        title: printable(&paper.title),
        short: short(&paper.title),
        source: printable(&paper.source),
        about: texts(&paper.about),
        counts: counts.join(", "),
        names: paper
            .names
            .iter()
            .map(|(kind, theirs, ours)| (printable(kind), printable(theirs), printable(ours)))
            .collect(),
        contents: paper.exhibits.iter().map(|one| (anchor(&paper.id, &one.id), short(&one.title))).collect(),
        claims: paper.claims.iter().map(|claim| claim_view(claim, paper)).collect(),
        exhibits: paper.exhibits.iter().map(|one| exhibit_view(one, paper, registry)).collect(),
    }
}

/// The colour of a claim's answer is its standing to the paper, not the answer itself.
fn standing_view(claim: &Claim) -> AnswerView {
    let class = STANDINGS.iter().find(|(standing, ..)| *standing == claim.standing());
    AnswerView { label: claim.answer.label(), class: class.map_or("none", |(_, class, _)| class) }
}

fn claim_view(claim: &Claim, paper: &PaperSection) -> ClaimView {
    let shown = |title: fn(&str) -> String| {
        let found = claim.exhibits.iter().filter_map(|id| paper.exhibits.iter().find(|one| one.id == *id));
        found.map(|one| (anchor(&paper.id, &one.id), title(&one.title))).collect()
    };
    // The test that decided the claim.
    let decided = claim.tests.iter().find(|test| test.answer == claim.answer && !test.effects.is_empty());
    let comparisons = claim.tests.iter().map(|test| test.effects.len()).sum();
    ClaimView {
        id: anchor(&paper.id, &claim.id),
        place: printable(&claim.place),
        words: printable(&claim.words),
        myth: claim.myth,
        answer: standing_view(claim),
        reason: printable(&claim.reason),
        sparkline: decided.and_then(|test| Scale::around(&test.effects, test.region)?.all(&test.effects)),
        short: shown(short),
        exhibits: shown(printable),
        extent: format!("{}, {}", plural(claim.tests.len(), "test"), plural(comparisons, "comparison")),
        tests: claim.tests.iter().map(|test| test_view(test, claim)).collect(),
    }
}

fn test_view(test: &Test, claim: &Claim) -> TestView {
    let scale = Scale::around(&test.effects, test.region);
    let effects = test.effects.iter().map(|effect| EffectView {
        words: printable(&effect.words),
        text: printable(&effect.text),
        range: printable(&effect.range),
        basis: printable(&effect.basis),
        sparkline: scale.as_ref().and_then(|scale| scale.single(effect)),
    });
    TestView {
        words: printable(&test.words),
        answer: standing_view(&Claim { answer: test.answer, myth: claim.myth, ..Claim::default() }),
        // A claim with one test has it already.
        reason: if test.reason == claim.reason { String::new() } else { printable(&test.reason) },
        detectable: if test.answer == Answer::NotMeasured {
            String::new()
        } else {
            printable(&test.detectable)
        },
        long: test.effects.len() > LONG,
        effects: effects.collect(),
    }
}

fn exhibit_view(exhibit: &Exhibit, paper: &PaperSection, registry: &mut ChartRegistry) -> ExhibitView {
    let bears = paper.claims.iter().filter(|claim| claim.exhibits.contains(&exhibit.id));
    let bears = bears.map(|claim| {
        let name = if claim.place.is_empty() { &claim.id } else { &claim.place };
        (anchor(&paper.id, &claim.id), format!("{} ({})", printable(name), claim.answer.label()))
    });
    ExhibitView {
        id: anchor(&paper.id, &exhibit.id),
        title: printable(&exhibit.title),
        text: texts(&exhibit.text),
        chart: exhibit.chart.as_ref().and_then(|chart| drawing::add_chart(chart, Names::Outside, registry)),
        table: pairs_view(&exhibit.table),
        notes: texts(&exhibit.notes),
        bears: bears.collect(),
        commands: texts(&exhibit.commands),
    }
}

fn pairs_view(table: &Pairs) -> PairsView {
    let width = table.columns.len().saturating_sub(1);
    let cells = || table.rows.iter().flat_map(|(_, cells)| cells);
    let published = |at: usize| {
        table.rows.iter().any(|(_, cells)| cells.get(at).is_some_and(|cell| !cell.paper.is_empty()))
    };
    let side_by_side = width <= SIDE_BY_SIDE;
    let mut reasons: Vec<String> = Vec::new();
    let mut left_out: Vec<(String, String)> = Vec::new();
    let mut rows: Vec<(String, Vec<PairView>)> = Vec::new();
    for (name, cells) in &table.rows {
        if let Some(why) = wholly_missing(cells) {
            let why = printable(why);
            match left_out.iter_mut().find(|(_, known)| *known == why) {
                Some((names, _)) => *names += &format!(", {}", printable(name)),
                None => left_out.push((printable(name), why)),
            }
            continue;
        }
        let cells = cells.iter().enumerate().map(|(at, cell)| pair_view(cell, published(at), &mut reasons));
        rows.push((printable(name), cells.collect()));
    }
    PairsView {
        corner: table.columns.first().map_or_else(String::new, |text| printable(text)),
        headings: (0..width).map(|at| (printable(&table.columns[at + 1]), published(at))).collect(),
        rows,
        left_out,
        side_by_side,
        published: (0..width).any(published),
        ranges: cells().any(|cell| !cell.range.is_empty() && cell.ratio.is_none()),
        baseline: match cells().any(|cell| cell.ratio.is_some()) {
            true => printable(&table.baseline),
            false => String::new(),
        },
        long: table.rows.len() > LONG,
        reasons,
    }
}

/// Why a row has no value at all, where one reason is enough.
fn wholly_missing(cells: &[Pair]) -> Option<&str> {
    let why = &cells.first()?.missing;
    let none = |cell: &Pair| cell.ours.is_empty() && cell.paper.is_empty() && cell.missing == *why;
    (!why.is_empty() && cells.iter().all(none)).then_some(why)
}

fn pair_view(cell: &Pair, published: bool, reasons: &mut Vec<String>) -> PairView {
    let missing = printable(&cell.missing);
    let note = match (cell.ours.is_empty() && !missing.is_empty(), reasons.iter().position(|r| *r == missing))
    {
        (false, _) => 0,
        (true, Some(at)) => at + 1,
        (true, None) => {
            reasons.push(missing.clone());
            reasons.len()
        }
    };
    let ratio = cell.ratio.clone().unwrap_or_default();
    PairView {
        ours: printable(&cell.ours),
        range: printable(&cell.range),
        ratio: printable(&ratio.text),
        ratio_range: printable(&ratio.range),
        tone: match ratio.tone {
            Tone::Less => "less",
            Tone::More => "more",
            Tone::Same => "same",
        },
        paper: printable(&cell.paper),
        missing,
        note,
        published,
    }
}

fn step_view(step: &Step) -> Step {
    Step {
        name: printable(&step.name),
        extent: printable(&step.extent),
        took: printable(&step.took),
        ending: printable(&step.ending),
        precision: printable(&step.precision),
        warnings: texts(&step.warnings),
        command: format::printable(&step.command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{HOSTILE, book};

    /// Packing the charts' engine takes long: once is enough.
    fn page() -> &'static str {
        static PAGE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
        PAGE.get_or_init(|| render(&book()).expect("a page"))
    }

    #[test]
    fn verdicts_stand_before_papers_and_lead_to_them() {
        let book = book();
        let page = page();
        let at = |needle: &str| page.find(needle).unwrap_or_else(|| panic!("{needle}"));
        assert!(at("id=\"verdicts\"") < at("id=\"zorn1992\""));
        for paper in &book.papers {
            for claim in &paper.claims {
                let id = anchor(&paper.id, &claim.id);
                assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
                assert!(page.contains(&format!("href=\"#{id}\"")), "{id}");
            }
            for exhibit in &paper.exhibits {
                assert!(page.contains(&format!("id=\"{}\"", anchor(&paper.id, &exhibit.id))));
            }
        }
    }

    #[test]
    fn every_link_leads_somewhere_on_the_page() {
        let page = page();
        let links = page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next());
        for link in links {
            assert!(page.contains(&format!("id=\"{link}\"")), "{link}");
        }
    }

    #[test]
    fn every_published_value_and_every_value_of_ours_is_on_the_page() {
        let book = book();
        let page = page();
        let tables = book.papers.iter().flat_map(|paper| &paper.exhibits).map(|exhibit| &exhibit.table);
        for cell in tables.flat_map(|table| &table.rows).flat_map(|(_, cells)| cells) {
            for text in [&cell.ours, &cell.range, &cell.paper, &cell.missing] {
                assert!(page.contains(text.as_str()), "{text}");
            }
        }
    }

    #[test]
    fn what_the_paper_calls_a_myth_is_borne_out_where_it_fails() {
        let claim = |answer, myth| standing_view(&Claim { answer, myth, ..Claim::default() }).class;
        assert_eq!((claim(Answer::Fails, true), claim(Answer::Holds, true)), ("agree", "against"));
        assert_eq!((claim(Answer::Fails, false), claim(Answer::Holds, false)), ("against", "agree"));
        assert!(page().contains("the paper: a myth"));
    }

    #[test]
    fn nothing_of_others_becomes_markup_and_the_page_needs_nothing() {
        let page = page();
        assert!(!page.contains(HOSTILE) && !page.contains("<script>document.title"));
        assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
        assert_eq!(page.matches("<script").count(), 3);
        for needle in ["src=", "<link", "@import", "url("] {
            assert!(!page.contains(needle), "{needle}");
        }
        assert_eq!(page.matches("id=\"engine\"").count(), 1);
        assert!(page.len() < 3_500_000, "{} bytes", page.len());
    }

    #[test]
    fn few_columns_are_side_by_side_with_the_published_and_many_above_them() {
        let cell = Pair { ours: "1".into(), paper: "2".into(), ..Pair::default() };
        let table = |columns: usize| Pairs {
            columns: vec![String::new(); columns + 1],
            rows: vec![("row".into(), vec![cell.clone(); columns])],
            ..Pairs::default()
        };
        assert!(pairs_view(&table(3)).side_by_side && !pairs_view(&table(4)).side_by_side);
    }

    #[test]
    fn a_reason_why_a_value_is_missing_is_shown_once() {
        let missing = |why: &str| Pair { missing: why.into(), ..Pair::default() };
        let cells = vec![missing("crashed"), missing("refused"), missing("crashed"), Pair::default()];
        let table =
            Pairs { columns: vec![String::new(); 5], rows: vec![("gawk".into(), cells)], ..Pairs::default() };
        let view = pairs_view(&table);
        assert_eq!(view.reasons, ["crashed", "refused"]);
        let notes: Vec<usize> = view.rows[0].1.iter().map(|cell| cell.note).collect();
        assert_eq!(notes, [1, 2, 1, 0]);
    }

    #[test]
    fn rows_without_any_value_are_named_in_a_line() {
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
        let view = pairs_view(&table);
        assert_eq!(view.left_out, [("make, lua".to_owned(), "left out".to_owned())]);
        let names: Vec<&str> = view.rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["perl", "gawk"]);
    }

    #[test]
    fn an_empty_book_is_still_a_page() {
        assert!(render(&Book::default()).expect("a page").contains("0 claims"));
    }
}
