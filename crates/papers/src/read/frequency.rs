//! `heaptoll lab frequency`: the mutator's time by the period of collections. What the command itself keeps out of its
//! means, a program that hardly collects, is no figure.

use heaptoll_experiments::frequency::{Frequency, Question};

use super::cell_writer::CellWriter;
use super::reading::Reading;
use crate::definition::Step;

/// Why a program that hardly collects has no figures.
const SELDOM: &str =
    "at the shortest period it failed or collected too seldom to show anything about the frequency";

/// Estimates with the command's own intervals.
pub fn reading(found: &Frequency, step: &Step) -> Reading {
    let mut reading = Reading::default();
    for program in &found.programs {
        if !program.often_enough {
            reading.absent.push((program.program.clone(), Some(program.collector.clone()), SELDOM.into()));
            continue;
        }
        let mut writer = CellWriter {
            step: &step.id,
            program: &program.program,
            manager: &program.collector,
            cells: &mut reading.cells,
        };
        for one in &program.ratios {
            // Collections and identifications are listed by their period, reclamations by their share of collections.
            let (name, at) = match one.question {
                Question::Collections => ("mutator", one.period.every_bytes),
                Question::Identifications => ("identifying_mutator", one.period.every_bytes),
                Question::Reclamations => ("reclaiming_mutator", one.period.reclaim),
            };
            let at = Some(at as f64);
            writer.ratio(&format!("{name}_wall_ratio"), at, one.mutator_wall);
            writer.ratio(&format!("{name}_cpu_ratio"), at, one.mutator_cpu);
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    use heaptoll_experiments::frequency::{Period, Ratio, Study};

    use super::super::testing::{interval, number, one, step};
    use super::*;
    use crate::definition::StepKind;

    fn ratio(question: Question, every_bytes: u64, reclaim: u64) -> Ratio {
        let over = Period { every_bytes: 1 << 20, reclaim: 1 };
        let period = Period { every_bytes, reclaim };
        let mutator_wall = Some(interval(0.98, 10));
        Ratio { question, period, over, mutator_wall, mutator_cpu: None, wall: None, peak_rss: None }
    }

    fn found(often_enough: bool, ratios: Vec<Ratio>) -> Frequency {
        let study = Study {
            program: "gawk".into(),
            collector: "sweep/mimalloc3".into(),
            settings: vec![],
            ratios,
            often_enough,
        };
        Frequency { collectors: vec![], programs: vec![study], means: vec![] }
    }

    #[test]
    fn collections_identifications_and_reclamations_are_three_metrics() {
        let found = found(
            true,
            vec![
                ratio(Question::Collections, 4 << 20, 1),
                ratio(Question::Identifications, 4 << 20, 16),
                ratio(Question::Reclamations, 1 << 20, 16),
            ],
        );
        let cells = reading(&found, &step(StepKind::Frequency)).cells;
        let mib4 = Some(f64::from(4 << 20));
        assert_eq!(number(one(&cells, "mutator_wall_ratio", mib4)), 0.98);
        assert_eq!(number(one(&cells, "identifying_mutator_wall_ratio", mib4)), 0.98);
        assert_eq!(number(one(&cells, "reclaiming_mutator_wall_ratio", Some(16.0))), 0.98);
        assert_eq!(cells.len(), 3);
    }

    #[test]
    fn a_program_that_hardly_collects_has_no_figures_and_is_named() {
        let found = found(false, vec![ratio(Question::Collections, 4 << 20, 1)]);
        let Reading { cells, absent, .. } = reading(&found, &step(StepKind::Frequency));
        assert_eq!(cells, []);
        let [(program, Some(manager), why)] = absent.as_slice() else { panic!("{absent:?}") };
        assert_eq!((program.as_str(), manager.as_str()), ("gawk", "sweep/mimalloc3"));
        assert!(why.contains("too seldom"), "{why}");
    }
}
