//! What was run, in its order.

use std::collections::BTreeMap;

use heaptoll_report::document::{Item, Section, Table};
use heaptoll_report::format::{self, plural};
use heaptoll_units::took;

use super::folded;
use crate::definition::StepKind;
use crate::results::{Ended, Ran, Results};

/// All of it; none where nothing was to be run.
pub fn section(results: &Results) -> Option<Section> {
    let steps = results.papers.iter().flat_map(|paper| &paper.study.steps);
    let kinds: BTreeMap<&str, StepKind> = steps.map(|step| (step.id.as_str(), step.kind)).collect();
    let table = Table::of(&results.steps)
        .text("Step", |ran| ran.planned.step.clone())
        .text("Extent", |ran| extent(ran, kinds.get(ran.planned.step.as_str()).copied()))
        .figure("Took", |ran| if ran.ending == Ended::LeftOut { String::new() } else { took(ran.seconds) })
        .text("What it costs", |ran| cost(ran))
        .if_any()?;
    let each = results.steps.iter().map(|ran| {
        let title = match ran.warnings.len() {
            0 => format!("{}: command", ran.planned.step),
            count => format!("{}: {} and command", ran.planned.step, plural(count, "warning")),
        };
        folded(title, ran.warnings.clone(), vec![Item::Commands(vec![ran.command.clone()])])
    });
    Some(Section::new("What was run").with(table).with_all(each))
}

/// Programs and repetitions of how many.
fn extent(ran: &Ran, kind: Option<StepKind>) -> String {
    let planned = &ran.planned;
    let mut extent = format!(
        "{} programs, {} managers",
        of(planned.programs, planned.of_programs),
        of(planned.managers, planned.of_managers)
    );
    if kind.is_none_or(StepKind::is_timed) {
        let repetitions = of(planned.repetitions as usize, planned.of_repetitions as usize);
        extent += &format!(", {repetitions} repetitions");
    }
    extent + &format!(", inputs {}", planned.size)
}

fn of(some: usize, all: usize) -> String {
    if some == all { format::count(all as f64) } else { format!("{some} of {all}") }
}

/// How it ended, where that is not its end, and what the shorter form costs.
fn cost(ran: &Ran) -> String {
    let ending = match ran.ending {
        Ended::Whole => "",
        Ended::Cut => "cut at its deadline; its partial figures are in",
        Ended::Failed => "failed: it gave no figures",
        Ended::LeftOut => "left out",
    };
    let both = [ending, &ran.precision].into_iter().filter(|text| !text.is_empty());
    both.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::testing;

    #[test]
    fn a_step_shows_how_much_of_it_was_run() {
        let shown = |ending, kind| {
            let mut results = testing::results();
            results.papers[0].study.steps[0].kind = kind;
            let ran = &mut results.steps[0];
            (ran.planned.of_programs, ran.planned.of_repetitions) = (10, 6);
            (ran.ending, ran.seconds, ran.precision) = (ending, 75.0, "wide".into());
            match section(&results).expect("a section").items.swap_remove(0) {
                Item::Table(table) => table.rows[0].iter().map(|cell| cell.text.clone()).collect::<Vec<_>>(),
                other => panic!("{other:?}"),
            }
        };
        let timed =
            ["made-time", "2 of 10 programs, 2 managers, 6 repetitions, inputs quick", "1 min 15 s", "wide"];
        assert_eq!(shown(Ended::Whole, StepKind::Run), timed);
        let counted = ["made-time", "2 of 10 programs, 2 managers, inputs quick", "", "left out; wide"];
        assert_eq!(shown(Ended::LeftOut, StepKind::Locality), counted);
    }
}
