//! The facts of one result: what `heaptoll report RESULT.json` shows.

use heaptoll_facts::{Basis, Fact, Facts, Known};
use heaptoll_report::document::{Document, Section, Table};
use heaptoll_report::format::{NONE, plural, shell_command};
use heaptoll_units::significant;

use crate::comparative::Comparable;

/// Facts that the table lists at most.
const LISTED: usize = 40;

/// The document of the facts in this file, which the command wrote.
pub fn document(facts: &Facts, command: &Comparable, file: &str) -> Document {
    let all = &facts.measured;
    let listed = &all[..all.len().min(LISTED)];
    let mut text = vec![format!("{}.", plural(all.len(), "figure"))];
    if listed.len() < all.len() {
        text.push(format!("The first {LISTED} follow; --csv has all."));
    }
    let known = |fact: &Fact| Known::of(&fact.value, all.len());
    let table = Table::of(listed)
        .text("program", |fact| fact.program.clone())
        .text("manager", |fact| fact.manager.clone())
        .text("figure", |fact| fact.metric.clone())
        .text("place", |fact| fact.at.map_or_else(String::new, |at| command.place(&fact.metric, at)))
        .figure("value", |fact| known(fact).map_or(NONE.into(), |known| significant(known.value)))
        .figure("95 % interval", |fact| known(fact).map_or(NONE.into(), interval))
        .notes(command.notes(listed))
        .if_any();
    Document {
        title: format!("What heaptoll {} found", command.name),
        subtitle: file.into(),
        warnings: facts.remarks().collect(),
        sections: vec![Section { text, ..Section::new("Figures") }.with_all(table)],
        facts: vec![("result".into(), file.into())],
        command: shell_command(&["heaptoll", "report", file]),
        ..Document::default()
    }
}

fn interval(known: Known) -> String {
    match known.basis {
        Basis::Exact => "exact".into(),
        Basis::None => NONE.into(),
        _ => format!("{} to {}", significant(known.low), significant(known.high)),
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::Value;

    use super::*;
    use crate::comparative::ALL;

    #[test]
    fn each_figure_has_its_place_its_interval_and_the_sentence_of_its_metric() {
        let mut facts = Facts::default();
        let mut writer = facts.of("cfrac", "lea");
        writer.put(
            "cpu_s",
            None,
            Value::Samples((0..8).map(|at| Some(1.0 + f64::from(at % 2) / 8.0)).collect()),
        );
        writer.put("heap_cpu_ratio", Some(1.5), Value::Exact(2.0));
        writer.put("wall_s", None, Value::Single(0.25));
        facts.lack("cfrac", "hoard", "it failed");
        let shown = heaptoll_report::markdown::render(&document(&facts, &ALL[0], "run.json"));
        assert!(shown.contains("cfrac under hoard: it failed") && shown.contains("3 figures."), "{shown}");
        assert!(shown.contains("at 1.5") && shown.contains("exact") && shown.contains(" to 1."), "{shown}");
        assert!(shown.contains("wall_s: without start-up."), "{shown}");
        (0..LISTED).for_each(|at| facts.of("gawk", "lea").exact("collections", Some(at as f64), 1.0));
        let shown = heaptoll_report::markdown::render(&document(&facts, &ALL[0], "run.json"));
        assert!(shown.contains("The first 40 follow; --csv has all."), "{shown}");
    }
}
