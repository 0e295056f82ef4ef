//! The section of one paper: what stands for its programs and managers, its claims, its tables and figures.

use heaptoll_report::document::{Item, Section, Table};

use super::paper::Paper;
use super::{claims, exhibits, folded};
use crate::definition::{Names, Study};

/// All of it.
pub fn section(paper: &Paper) -> Section {
    let Study { title, source, about, names, .. } = paper.study;
    let mut items: Vec<Item> = substitutes(names).into_iter().collect();
    items.extend(paper.verdicts.iter().map(|verdict| claims::claim(verdict, paper)));
    items.extend(paper.exhibits.iter().map(|shown| exhibits::exhibit(shown, paper)));
    let text = std::iter::once(source).filter(|source| !source.is_empty()).chain(about);
    Section { title: title.clone(), text: text.cloned().collect(), items }
}

/// Our names for the paper's, and why there is none.
fn substitutes(names: &Names) -> Option<Item> {
    let kinds = [("program", &names.programs), ("manager", &names.managers), ("none", &names.missing)];
    let rows =
        kinds.into_iter().flat_map(|(kind, of)| of.iter().map(move |(theirs, ours)| (kind, theirs, ours)));
    let table = Table::of(rows)
        .text("", |(kind, ..)| *kind)
        .text("The paper", |(_, theirs, _)| theirs.as_str())
        .text("Here", |(.., ours)| ours.as_str())
        .if_any()?;
    Some(folded("Substitutes", vec![], vec![Item::Table(table)]))
}
