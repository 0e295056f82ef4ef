//! The facts of one result: what `heaptoll report RESULT.json` shows.

use heaptoll_facts::{Basis, Fact, Facts, Known, Value};
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
    let table = Table::of(listed)
        .text("program", |fact| fact.program.clone())
        .text("manager", |fact| fact.manager.clone())
        .text("figure", |fact| fact.metric.clone())
        .text("place", |fact| fact.at.map_or_else(String::new, |at| command.place(&fact.metric, at)))
        .figure("value", |fact| value(fact))
        .figure("95 % interval", |fact| interval(fact))
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

/// What is known of a figure by itself, as `heaptoll diff` has it.
fn known(fact: &Fact) -> Option<Known> {
    Known::of(&fact.value, 1)
}

fn value(fact: &Fact) -> String {
    let bound = if matches!(fact.value, Value::AtLeast(_)) { "at least " } else { "" };
    known(fact).map_or(NONE.into(), |known| format!("{bound}{}", significant(known.value)))
}

fn interval(fact: &Fact) -> String {
    match known(fact) {
        // A bound has no other end.
        _ if matches!(fact.value, Value::AtLeast(_)) => NONE.into(),
        None | Some(Known { basis: Basis::None, .. }) => NONE.into(),
        Some(Known { basis: Basis::Exact, .. }) => "exact".into(),
        Some(Known { low, high, .. }) => format!("{} to {}", significant(low), significant(high)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparative::ALL;

    /// Before, a bound was a value with an interval up to a million times it.
    #[test]
    fn a_bound_is_shown_as_one_without_an_interval() {
        let fact = |value| Fact {
            program: "cfrac".into(),
            manager: "lea".into(),
            metric: "heap_cpu_ratio".into(),
            at: None,
            value,
        };
        let bound = fact(Value::AtLeast(60.0));
        assert_eq!(
            (value(&bound), interval(&bound)),
            (format!("at least {}", significant(60.0)), NONE.into())
        );
        let samples = fact(Value::Samples(vec![None]));
        assert_eq!((value(&samples), interval(&samples)), (NONE.into(), NONE.into()));
    }

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
