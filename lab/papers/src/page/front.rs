//! The front of the page: what this is, and whether each claim holds.

use heaptoll_report::document::{Cell, Document, Item, Link, Part, Section, Table, Tone};
use heaptoll_report::format::plural;
use heaptoll_units::figure;

use super::claims::{decided, place};
use super::paper::Paper;
use super::standing::{Standing, shares, standings};
use super::{folded, summary};
use crate::definition::{Sentence, filled};
use crate::exhibit::Shown;
use crate::results::Results;
use crate::verdict::{Answer, Verdict};

/// How many warnings stand before the verdicts at most; the others are folded.
const WARNINGS: usize = 3;

/// All of it.
pub fn front(results: &Results, papers: &[Paper]) -> Document {
    let mut warnings = summary::warnings(results);
    // One more is no longer than the line that folds it.
    let first = if warnings.len() > WARNINGS + 1 { WARNINGS } else { warnings.len() };
    let more = warnings.split_off(first);
    let lead = Section { text: summary::lead(results), ..Section::default() };
    Document {
        title: summary::title(results),
        subtitle: summary::dateline(results).join(" · "),
        warnings,
        sections: vec![lead, verdicts(results, papers, more)],
        facts: results.facts.clone(),
        command: results.command.clone(),
        ..Document::default()
    }
}

fn verdicts(results: &Results, papers: &[Paper], more_warnings: Vec<String>) -> Section {
    let claims = || papers.iter().flat_map(|paper| &paper.verdicts).copied();
    let of_papers = || claims().filter(|claim| !claim.ours);
    let ours = || claims().filter(|claim| claim.ours);
    let mut items = vec![Item::Tally(shares(of_papers()))];
    if !more_warnings.is_empty() {
        items.push(folded(plural(more_warnings.len(), "more warning"), more_warnings, vec![]));
    }
    items.push(folded("How to read this", summary::how(results), vec![]));
    items.extend(papers.iter().filter(|paper| !paper.verdicts.is_empty()).map(verdicts_of));
    let counted = |count: usize, whose: &str| format!("{}{whose}", plural(count, "claim"));
    let mut text = match ours().count() {
        0 => vec![format!("{}: {}.", counted(claims().count(), ""), standings(claims()))],
        count => vec![
            format!("{}: {}.", counted(of_papers().count(), " of the papers"), standings(of_papers())),
            format!("{}: {}.", counted(count, " of ours"), standings(ours())),
        ],
    };
    if claims().any(|claim| claim.myth) {
        text.push("A myth that fails confirms its author.".into());
    }
    Section { title: "What holds today".into(), text, items }
}

/// `Table 3` of `Table 3: CPU seconds`.
fn short(title: &str) -> String {
    title.split_once(':').map_or(title, |(name, _)| name).to_owned()
}

fn verdicts_of(paper: &Paper) -> Item {
    let words = |verdict: &&Verdict| {
        let to_claim = Link { id: paper.anchor(&verdict.claim), text: String::new() };
        Cell { range: place(verdict), links: vec![to_claim], ..Cell::text(&verdict.words) }
    };
    let reason = |verdict: &&Verdict| Cell {
        intervals: decided(verdict, paper.study),
        links: paper.links(verdict, |shown: &Shown| short(&shown.title)),
        ..Cell::text(&verdict.reason)
    };
    let table = Table::of(paper.verdicts.iter().copied())
        .text("Today", |verdict| Cell::text(verdict.answer.label()).toned(Standing::of(verdict).tone()))
        .text("The claim", words)
        .text("What decided", reason)
        .parts("");
    let items = vec![Item::Table(table)];
    let items = match abstract_of(paper) {
        None => items,
        Some(found) => {
            let (title, option) = ("Claim by claim".into(), "--html".into());
            vec![
                Item::Table(found),
                Item::Part(Part { title, option, items, folded: true, ..Part::default() }),
            ]
        }
    };
    Item::Part(Part { title: paper.study.title.clone(), items, ..Part::default() })
}

/// The abstract sentence by sentence, with what its claims say today; none where the study has no sentences of it.
pub fn abstract_of(paper: &Paper) -> Option<Table> {
    let of = |sentence: &Sentence| -> Vec<&Verdict> {
        paper.verdicts.iter().copied().filter(|verdict| sentence.claims.contains(&verdict.claim)).collect()
    };
    let today = |sentence: &&Sentence| {
        let claims = of(sentence);
        let first = claims.first().map(|claim| Standing::of(claim));
        match first.filter(|first| claims.iter().all(|claim| Standing::of(claim) == *first)) {
            Some(all_one) => Cell::text(all_one.name()).toned(all_one.tone()),
            None => Cell::text(standings(claims.into_iter())).toned(Tone::Same),
        }
    };
    // Where the study has no sentence, the figure of the first claim that is decided, else of the first that has any.
    let figure = |sentence: &&Sentence| {
        let claims = of(sentence);
        let link =
            |claim: &&Verdict| Link { id: paper.anchor(&claim.claim), text: claim.answer.label().into() };
        let links = claims.iter().map(link).collect();
        let measured = claims.iter().filter(|claim| claim.answer != Answer::NotMeasured);
        let shown = measured.min_by_key(|claim| claim.answer == Answer::Undecided);
        let sentences: Vec<String> = sentence
            .figures
            .iter()
            .filter_map(|words| filled(words, |id, test| least_and_most(&claims, id, test)))
            .collect();
        let text = match sentences.as_slice() {
            [] => shown.map_or("", |claim| figures(claim)).to_owned(),
            some => some.join(" "),
        };
        Cell { links, ..Cell::text(text) }
    };
    let table = Table::of(&paper.study.summary)
        .text("The paper found", |sentence| Cell::text(&sentence.words))
        .text("Today", today)
        .text("Measured", figure)
        .text("Since", |sentence| sentence.since.clone().unwrap_or_default());
    (!paper.study.summary.is_empty()).then(|| table.parts(""))
}

/// The figure of a claim's test: of several comparisons the least and the most.
fn least_and_most(claims: &[&Verdict], id: &str, test: usize) -> Option<String> {
    let effects = &claims.iter().find(|claim| claim.claim == id)?.tests.get(test)?.effects;
    let values = || effects.iter().map(|effect| effect.value);
    let (least, most) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let (least, most) = (figure(least), figure(most));
    Some(if least == most { least } else { format!("{least} to {most}") })
}

/// The figure of a claim's reason, without what stands after it.
fn figures(verdict: &Verdict) -> &str {
    verdict.reason.split("; ").next().unwrap_or_default()
}
