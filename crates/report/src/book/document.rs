//! A book as a [`Document`]: verdicts first, then a section a paper, then what was run.

use super::{Answer, Book, Claim, Exhibit, Pair, Pairs, PaperSection, Sentence, Standing, Step, Test};
use crate::document::{
    Cell, Column, Document, Effect, Intervals, Item, Link, Part, Section, Share, Table, Tone,
};
use crate::format::{NOT_DECIDED, and_list, plural};

/// So many warnings stand before the verdicts, the others are folded.
const WARNINGS: usize = 3;
/// Each standing in the order of its part of the bar.
const STANDINGS: [(Standing, &str); 4] = [
    (Standing::BorneOut, "confirmed"),
    (Standing::Contradicted, "contradicted"),
    (Standing::Undecided, NOT_DECIDED),
    (Standing::NotMeasured, "not measured"),
];

impl Book {
    /// All of it.
    pub fn document(&self) -> Document {
        let mut whole = self.front();
        whole.sections.extend(self.papers.iter().map(paper_section));
        whole.sections.extend((!self.steps.is_empty()).then(|| steps_section(&self.steps)));
        whole
    }

    /// The abstracts of its papers, a sentence a row.
    pub fn abstracts(&self) -> Document {
        let of_paper = |paper: &PaperSection| {
            let items = vec![Item::Table(summary(paper)?)];
            Some(Section { title: paper.title.clone(), items, ..Section::default() })
        };
        let sections = self.papers.iter().filter_map(of_paper).collect();
        Document { title: self.title.clone(), sections, ..Document::default() }
    }

    /// What this is, and whether each claim holds.
    pub fn front(&self) -> Document {
        let mut warnings = self.warnings.clone();
        // One more is no longer than the line that folds it.
        let first = if warnings.len() > WARNINGS + 1 { WARNINGS } else { warnings.len() };
        let more = warnings.split_off(first);
        let lead = Section { text: self.lead.clone(), ..Section::default() };
        let sections = (!self.lead.is_empty()).then_some(lead).into_iter();
        Document {
            title: self.title.clone(),
            subtitle: self.dateline.join(" · "),
            warnings,
            sections: sections.chain([self.verdicts(&more)]).collect(),
            facts: self.facts.clone(),
            command: self.command.clone(),
            ..Document::default()
        }
    }

    fn verdicts(&self, more_warnings: &[String]) -> Section {
        let claims = || self.papers.iter().flat_map(|paper| &paper.claims);
        let of_papers = || claims().filter(|claim| !claim.ours);
        let ours = || claims().filter(|claim| claim.ours);
        let mut items = vec![Item::Tally(shares(of_papers()))];
        if !more_warnings.is_empty() {
            let title = plural(more_warnings.len(), "more warning");
            items.push(folded(title, more_warnings.to_vec(), vec![]));
        }
        if !self.how.is_empty() {
            items.push(folded("How to read this".into(), self.how.clone(), vec![]));
        }
        items.extend(self.papers.iter().filter(|paper| !paper.claims.is_empty()).map(verdicts_of));
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
}

/// `20 confirmed, 6 contradicted`: how claims stand to their paper; what no claim does is left out.
fn standings<'a>(claims: impl Iterator<Item = &'a Claim>) -> String {
    let counted = shares(claims).into_iter().filter(|share| share.count > 0);
    let parts: Vec<String> = counted.map(|share| format!("{} {}", share.count, share.name)).collect();
    if parts.is_empty() { Answer::NotMeasured.label().into() } else { parts.join(", ") }
}

fn shares<'a>(claims: impl Iterator<Item = &'a Claim>) -> Vec<Share> {
    let standings: Vec<Standing> = claims.map(Claim::standing).collect();
    let share = |(standing, name): (Standing, &str)| Share {
        name: name.into(),
        count: standings.iter().filter(|one| **one == standing).count(),
        tone: tone(standing),
    };
    STANDINGS.map(share).into()
}

/// The colour of a claim's answer is its standing to the paper, not the answer itself.
fn tone(standing: Standing) -> Tone {
    match standing {
        Standing::BorneOut => Tone::Less,
        Standing::Contradicted => Tone::More,
        Standing::Undecided | Standing::NotMeasured => Tone::Same,
    }
}

fn folded(title: String, text: Vec<String>, items: Vec<Item>) -> Item {
    Item::Part(Part { title, text, items, folded: true, ..Part::default() })
}

/// Letters, digits and hyphens of an anchor; anything else would not be one.
fn anchor(paper: &PaperSection, id: &str) -> String {
    let whole = format!("{}-{id}", paper.id);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    whole.chars().map(plain).collect()
}

/// `Table 3` of `Table 3: CPU seconds`.
fn short(title: &str) -> String {
    title.split_once(':').map_or(title, |(name, _)| name).to_owned()
}

fn exhibits<'a>(claim: &'a Claim, paper: &'a PaperSection) -> impl Iterator<Item = &'a Exhibit> {
    claim.exhibits.iter().filter_map(|id| paper.exhibits.iter().find(|one| one.id == *id))
}

/// Where in the paper a claim stands.
fn place(claim: &Claim) -> String {
    let myth = claim.myth.then_some("the paper: a myth");
    let ours = claim.ours.then_some("a claim of ours");
    let place = (!claim.place.is_empty()).then_some(claim.place.as_str());
    place.into_iter().chain(myth).chain(ours).collect::<Vec<_>>().join(" · ")
}

fn verdicts_of(paper: &PaperSection) -> Item {
    let words = |claim: &&Claim| {
        let to_claim = Link { id: anchor(paper, &claim.id), text: String::new() };
        Cell { range: place(claim), links: vec![to_claim], ..Cell::text(&claim.words) }
    };
    let reason = |claim: &&Claim| {
        // The test that decided the claim.
        let decided = claim.tests.iter().find(|test| test.answer == claim.answer && !test.effects.is_empty());
        let see =
            exhibits(claim, paper).map(|one| Link { id: anchor(paper, &one.id), text: short(&one.title) });
        Cell { intervals: decided.map(intervals), links: see.collect(), ..Cell::text(&claim.reason) }
    };
    let table = Table::of(&paper.claims)
        .text("Today", |claim| Cell::text(claim.answer.label()).toned(tone(claim.standing())))
        .text("The claim", words)
        .text("What decided", reason)
        .parts("");
    let items = vec![Item::Table(table)];
    let items = match summary(paper) {
        None => items,
        Some(summary) => {
            let (title, option) = ("Claim by claim".into(), "--html".into());
            vec![
                Item::Table(summary),
                Item::Part(Part { title, option, items, folded: true, ..Part::default() }),
            ]
        }
    };
    Item::Part(Part { title: paper.title.clone(), items, ..Part::default() })
}

/// The abstract sentence by sentence, with what its claims say today; none where the study has no sentences of it.
fn summary(paper: &PaperSection) -> Option<Table> {
    let of = |sentence: &Sentence| -> Vec<&Claim> {
        paper.claims.iter().filter(|claim| sentence.claims.contains(&claim.id)).collect()
    };
    let today = |sentence: &&Sentence| {
        let claims = of(sentence);
        let first = claims.first().map(|claim| claim.standing());
        let all_one = first.filter(|first| claims.iter().all(|claim| claim.standing() == *first));
        let today = match all_one.and_then(|all| STANDINGS.iter().find(|(standing, _)| *standing == all)) {
            Some((_, name)) => (*name).to_owned(),
            None => standings(claims.iter().copied()),
        };
        Cell::text(today).toned(all_one.map_or(Tone::Same, tone))
    };
    // One figure: that of the first claim that is decided, else of the first that has any.
    let figure = |sentence: &&Sentence| {
        let claims = of(sentence);
        let links = claims
            .iter()
            .map(|claim| Link { id: anchor(paper, &claim.id), text: claim.answer.label().into() });
        let measured = claims.iter().filter(|claim| claim.answer != Answer::NotMeasured);
        let shown = measured.min_by_key(|claim| claim.answer == Answer::Undecided);
        Cell { links: links.collect(), ..Cell::text(shown.map_or("", |claim| figures(claim))) }
    };
    let table = Table::of(&paper.summary)
        .text("The paper found", |sentence| Cell::text(&sentence.words))
        .text("Today", today)
        .text("One figure", figure)
        .text("Since", |sentence| Cell::text(&sentence.since));
    (!paper.summary.is_empty()).then(|| table.parts(""))
}

/// The figure of a claim's reason, without what stands after it.
fn figures(claim: &Claim) -> &str {
    claim.reason.split("; ").next().unwrap_or_default()
}

fn intervals(test: &Test) -> Intervals {
    Intervals { region: test.region, effects: test.effects.clone() }
}

fn paper_section(paper: &PaperSection) -> Section {
    let mut items = Vec::new();
    if !paper.names.is_empty() {
        let table = Table::of(&paper.names)
            .text("", |(kind, ..)| kind.clone())
            .text("The paper", |(_, theirs, _)| theirs.clone())
            .text("Here", |(.., ours)| ours.clone())
            .table();
        items.push(folded("Substitutes".into(), vec![], vec![Item::Table(table)]));
    }
    items.extend(paper.claims.iter().map(|claim| claim_part(claim, paper)));
    items.extend(paper.exhibits.iter().map(|exhibit| exhibit_part(exhibit, paper)));
    let source = std::iter::once(paper.source.clone()).filter(|source| !source.is_empty());
    Section { title: paper.title.clone(), text: source.chain(paper.about.iter().cloned()).collect(), items }
}

/// A claim with its tests.
fn claim_part(claim: &Claim, paper: &PaperSection) -> Item {
    let text = [place(claim), claim.reason.clone()].into_iter().filter(|text| !text.is_empty());
    let see = exhibits(claim, paper).map(|one| Link { id: anchor(paper, &one.id), text: one.title.clone() });
    Item::Part(Part {
        id: anchor(paper, &claim.id),
        title: format!("{}: {}", claim.answer.label(), claim.words),
        text: text.collect(),
        items: claim.tests.iter().map(|test| test_part(test, claim)).collect(),
        see: see.collect(),
        folded: true,
        ..Part::default()
    })
}

fn test_part(test: &Test, claim: &Claim) -> Item {
    // A claim with one test has its reason already.
    let reason = (test.reason != claim.reason && !test.reason.is_empty()).then(|| test.reason.clone());
    let detectable = Some(test.detectable.clone());
    let detectable = detectable.filter(|text| test.answer != Answer::NotMeasured && !text.is_empty());
    let value = |effect: &&Effect| {
        let drawn = Intervals { region: test.region, effects: vec![(*effect).clone()] };
        Cell { range: effect.range.clone(), intervals: Some(drawn), ..Cell::text(&effect.text) }
    };
    let table = Table::of(test.effects.iter().chain(&test.others))
        .text("Comparison", |effect| effect.words.clone())
        .figure("Effect", value)
        .text("Over", |effect| effect.basis.clone())
        .parts("");
    let table = Table { one_scale: true, ..table };
    Item::Part(Part {
        title: format!("{} {}", test.words, test.answer.label()),
        text: reason.into_iter().chain(detectable).collect(),
        items: (!test.effects.is_empty()).then_some(Item::Table(table)).into_iter().collect(),
        ..Part::default()
    })
}

fn exhibit_part(exhibit: &Exhibit, paper: &PaperSection) -> Item {
    let mut text = exhibit.text.clone();
    let mut items: Vec<Item> = exhibit.chart.iter().cloned().map(Item::Chart).collect();
    if !exhibit.table.rows.is_empty() {
        items.push(Item::Table(values(&exhibit.table, &exhibit.notes)));
    } else {
        text.extend(exhibit.notes.iter().cloned());
        if exhibit.chart.is_none() {
            text.push("Nothing was measured for this.".into());
        }
    }
    if !exhibit.commands.is_empty() {
        items.push(folded("Repeat it".into(), vec![], vec![Item::Commands(exhibit.commands.clone())]));
    }
    let bears = paper.claims.iter().filter(|claim| claim.exhibits.contains(&exhibit.id)).map(|claim| {
        let name = if claim.place.is_empty() { &claim.id } else { &claim.place };
        Link { id: anchor(paper, &claim.id), text: format!("{name} ({})", claim.answer.label()) }
    });
    Item::Part(Part {
        id: anchor(paper, &exhibit.id),
        title: exhibit.title.clone(),
        text,
        items,
        see: bears.collect(),
        ..Part::default()
    })
}

/// The values of an exhibit. Rows without any value are named in a note.
fn values(table: &Pairs, notes: &[String]) -> Table {
    let mut left_out: Vec<(String, Vec<String>)> = Vec::new();
    let mut rows = Vec::new();
    for (name, cells) in &table.rows {
        match wholly_missing(cells) {
            Some(why) => match left_out.iter_mut().find(|(known, _)| known == why) {
                Some((_, names)) => names.push(name.clone()),
                None => left_out.push((why.to_owned(), vec![name.clone()])),
            },
            None => rows.push((name, cells)),
        }
    }
    let has_ratio = table.rows.iter().flat_map(|(_, cells)| cells).any(|cell| cell.ratio.is_some());
    let left_out = left_out.iter().map(|(why, names)| format!("{}: {why}.", and_list(names)));
    let mut titles = table.columns.iter();
    Table::of(rows)
        .text(titles.next().map_or("", String::as_str), |(name, _)| Cell::text(*name))
        .each(
            titles.enumerate(),
            |(_, title)| Column::figures(title),
            |(_, cells), (at, _)| cells.get(*at).map_or_else(Cell::default, cell),
        )
        .notes(left_out.chain(notes.iter().cloned()))
        .parts(if has_ratio { &table.baseline } else { "" })
}

/// Why a row has no value at all, where one reason is enough.
fn wholly_missing(cells: &[Pair]) -> Option<&str> {
    let why = &cells.first()?.missing;
    let none = |cell: &Pair| cell.ours.is_empty() && cell.paper.is_empty() && cell.missing == *why;
    (!why.is_empty() && cells.iter().all(none)).then_some(why)
}

fn cell(pair: &Pair) -> Cell {
    Cell {
        range: pair.range.clone(),
        ratio: pair.ratio.clone(),
        published: pair.paper.clone(),
        missing: if pair.ours.is_empty() { pair.missing.clone() } else { String::new() },
        ..Cell::text(&pair.ours)
    }
}

fn steps_section(steps: &[Step]) -> Section {
    let cost = |step: &&Step| {
        let cost = [&step.ending, &step.precision].into_iter().filter(|text| !text.is_empty());
        cost.cloned().collect::<Vec<_>>().join("; ")
    };
    let table = Table::of(steps)
        .text("Step", |step| step.name.clone())
        .text("Extent", |step| step.extent.clone())
        .figure("Took", |step| step.took.clone())
        .text("What it costs", cost)
        .table();
    let each = steps.iter().map(|step| {
        let title = match step.warnings.len() {
            0 => format!("{}: command", step.name),
            count => format!("{}: {} and command", step.name, plural(count, "warning")),
        };
        folded(title, step.warnings.clone(), vec![Item::Commands(vec![step.command.clone()])])
    });
    Section {
        title: "What was run".into(),
        text: vec![],
        items: std::iter::once(Item::Table(table)).chain(each).collect(),
    }
}

#[cfg(test)]
mod tests;
