//! `heaptoll lab frequency`: the mutator's time by the period of collections. What the command itself keeps out of its
//! means, a program that hardly collects, is no figure.

use heaptoll_facts::{Comparative, Facts, Metric, Place};

use super::figures::Frequency;
use super::period::Question;

/// Why a program that hardly collects has no figures.
const SELDOM: &str =
    "at the shortest period it failed or collected too seldom to show anything about the frequency";

/// Estimates with the command's own intervals.
impl Comparative for Frequency {
    const METRICS: &'static [Metric] = &[
        Metric::time(
            "mutator_wall_ratio",
            "elapsed time less pauses at bytes of period over that at the shortest",
        )
        .of(&["", "identifying_"])
        .at(Place::Bytes),
        Metric::time("mutator_cpu_ratio", "the same of CPU time less the collector's")
            .of(&["", "identifying_"])
            .at(Place::Bytes),
        Metric::time("_ratio", "the same at one reclamation in N collections")
            .of(&["reclaiming_mutator_wall", "reclaiming_mutator_cpu"])
            .at(Place::OneIn),
    ];

    fn facts(&self) -> Facts {
        let mut facts = Facts::default();
        for program in &self.programs {
            if !program.often_enough {
                facts.lack(&program.program, &program.collector, SELDOM);
                continue;
            }
            let mut writer = facts.of(&program.program, &program.collector);
            for one in &program.ratios {
                // Collections and identifications are listed by their period, reclamations by their share of collections.
                let (of, at) = match one.question {
                    Question::Collections => ("", one.period.every_bytes),
                    Question::Identifications => ("identifying_", one.period.every_bytes),
                    Question::Reclamations => ("reclaiming_", one.period.reclaim),
                };
                let at = Some(at as f64);
                writer.ratio(&format!("{of}mutator_wall_ratio"), at, one.mutator_wall);
                writer.ratio(&format!("{of}mutator_cpu_ratio"), at, one.mutator_cpu);
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::testing::{interval, measured, number, one};

    use super::*;
    use crate::frequency::{Period, Ratio, Study};

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
        let facts = measured(&found);
        let mib4 = Some(f64::from(4 << 20));
        assert_eq!(number(one(&facts, "mutator_wall_ratio", mib4)), 0.98);
        assert_eq!(number(one(&facts, "identifying_mutator_wall_ratio", mib4)), 0.98);
        assert_eq!(number(one(&facts, "reclaiming_mutator_wall_ratio", Some(16.0))), 0.98);
        assert_eq!(facts.len(), 3);
    }

    #[test]
    fn a_program_that_hardly_collects_has_no_figures_and_is_named() {
        let found = found(false, vec![ratio(Question::Collections, 4 << 20, 1)]);
        let Facts { measured, absent, .. } = found.facts();
        assert_eq!(measured, []);
        let [(program, Some(manager), why)] = absent.as_slice() else { panic!("{absent:?}") };
        assert_eq!((program.as_str(), manager.as_str()), ("gawk", "sweep/mimalloc3"));
        assert!(why.contains("too seldom"), "{why}");
    }
}
