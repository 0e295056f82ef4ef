//! The section of one paper: what stands for its programs and managers, its claims, its tables and figures.

use heaptoll_report::document::{Item, Link, Section, Table};

use super::{claims, exhibits, folded};
use crate::definition::{Names, Study};
use crate::exhibit::Shown;
use crate::results::{PaperResult, Results};
use crate::verdict::Verdict;

/// A paper as it is shown: without the claims that rest on steps that were not run.
pub struct Paper<'a> {
    /// As it was written.
    pub study: &'a Study,
    /// In the order of its claims.
    pub verdicts: Vec<&'a Verdict>,
    /// In the paper's order.
    pub exhibits: &'a [Shown],
}

impl<'a> Paper<'a> {
    /// Those of these results.
    pub fn all(results: &'a Results) -> Vec<Paper<'a>> {
        let of = |found: &'a PaperResult| Paper {
            study: &found.study,
            verdicts: results.judged(found).collect(),
            exhibits: &found.exhibits,
        };
        results.papers.iter().map(of).collect()
    }

    /// The anchor of a claim or an exhibit. Anything but letters, digits and hyphens would make none.
    pub fn anchor(&self, id: &str) -> String {
        let whole = format!("{}-{id}", self.study.name);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        whole.chars().map(plain).collect()
    }

    /// Links to the exhibits that show a claim.
    pub fn links(&self, verdict: &Verdict, text: impl Fn(&Shown) -> String) -> Vec<Link> {
        let shown = verdict.exhibits.iter().filter_map(|id| self.exhibits.iter().find(|one| one.id == *id));
        shown.map(|one| Link { id: self.anchor(&one.id), text: text(one) }).collect()
    }

    /// All of it.
    pub fn section(&self) -> Section {
        let Study { title, source, about, names, .. } = self.study;
        let mut items: Vec<Item> = substitutes(names).into_iter().collect();
        items.extend(self.verdicts.iter().map(|verdict| claims::claim(verdict, self)));
        items.extend(self.exhibits.iter().map(|shown| exhibits::exhibit(shown, self)));
        let text = std::iter::once(source).filter(|source| !source.is_empty()).chain(about);
        Section { title: title.clone(), text: text.cloned().collect(), items }
    }
}

/// Our names for the paper's, and why there is none.
fn substitutes(names: &Names) -> Option<Item> {
    let kinds = [("program", &names.programs), ("manager", &names.managers), ("none", &names.missing)];
    let rows = kinds.into_iter().flat_map(|(kind, of)| of.iter().map(move |(theirs, ours)| (kind, theirs, ours)));
    let table = Table::of(rows)
        .text("", |(kind, ..)| *kind)
        .text("The paper", |(_, theirs, _)| theirs.as_str())
        .text("Here", |(.., ours)| ours.as_str())
        .if_any()?;
    Some(folded("Substitutes", vec![], vec![Item::Table(table)]))
}
