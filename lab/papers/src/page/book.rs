//! A study's results as the page and the terminal show them: pure, so that stored results make the same page.

use std::collections::BTreeMap;

use crate::definition::StepKind;
use crate::results::{Ended, Ran, Results};
use heaptoll_report::book::{Book, Step};
use heaptoll_report::format;

use super::{paper_section, summary};

/// The page of these results.
pub fn book(results: &Results) -> Book {
    let kinds: BTreeMap<&str, StepKind> = results
        .papers
        .iter()
        .flat_map(|paper_section| &paper_section.study.steps)
        .map(|step| (step.id.as_str(), step.kind))
        .collect();
    Book {
        title: summary::title(results),
        lead: summary::lead(results),
        dateline: summary::dateline(results),
        warnings: summary::warnings(results),
        how: summary::how(results),
        papers: results.papers.iter().map(|paper| paper_section::paper_section(paper, results)).collect(),
        steps: results
            .steps
            .iter()
            .map(|ran| step(ran, kinds.get(ran.planned.step.as_str()).copied()))
            .collect(),
        facts: results.facts.clone(),
        command: results.command.clone(),
    }
}

fn step(ran: &Ran, kind: Option<StepKind>) -> Step {
    let planned = &ran.planned;
    let mut extent = format!(
        "{} programs, {} managers",
        of(planned.programs, planned.of_programs),
        of(planned.managers, planned.of_managers)
    );
    if !kind.is_some_and(is_exact) {
        let repetitions = of(planned.repetitions as usize, planned.of_repetitions as usize);
        extent += &format!(", {repetitions} repetitions");
    }
    extent += &format!(", inputs {}", planned.size);
    Step {
        name: planned.step.clone(),
        extent,
        took: if ran.ending == Ended::LeftOut { String::new() } else { heaptoll_units::took(ran.seconds) },
        ending: ending(ran.ending).into(),
        precision: ran.precision.clone(),
        warnings: ran.warnings.clone(),
        command: ran.command.clone(),
    }
}

fn of(some: usize, all: usize) -> String {
    if some == all { format::count(all as f64) } else { format!("{some} of {all}") }
}

/// Commands that count: repetitions would change nothing.
fn is_exact(kind: StepKind) -> bool {
    matches!(kind, StepKind::Instructions | StepKind::Locality | StepKind::Lifetimes | StepKind::Ledger)
}

fn ending(ended: Ended) -> &'static str {
    match ended {
        Ended::Whole => "",
        Ended::Cut => "cut at its deadline; its partial figures are in",
        Ended::Failed => "failed: it gave no figures",
        Ended::LeftOut => "left out",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::testing;

    fn ran(ending: Ended) -> Ran {
        let mut ran = testing::results().steps.remove(0);
        (ran.planned.of_programs, ran.planned.of_repetitions) = (10, 6);
        (ran.ending, ran.seconds) = (ending, 75.0);
        ran
    }

    #[test]
    fn a_step_shows_how_much_of_it_was_run() {
        let timed = step(&ran(Ended::Whole), Some(StepKind::Run));
        assert_eq!(timed.extent, "2 of 10 programs, 2 managers, 6 repetitions, inputs quick");
        assert_eq!((timed.took.as_str(), timed.ending.as_str()), ("1 min 15 s", ""));
        let counted = step(&ran(Ended::LeftOut), Some(StepKind::Locality));
        assert_eq!(counted.extent, "2 of 10 programs, 2 managers, inputs quick");
        assert!(counted.took.is_empty() && counted.ending.starts_with("left out"));
    }

    #[test]
    fn results_become_a_page_with_their_claims_values_and_commands() {
        let results = testing::results();
        let book = book(&results);
        let page = heaptoll_report::html::document::render(&book.document()).expect("a page");
        for text in [
            "Everything costs more",
            "88.1",
            "0.260",
            "1.04",
            "heaptoll run cfrac gawk",
            "ratio to cartesian",
        ] {
            assert!(page.contains(text), "{text}");
        }
    }
}
