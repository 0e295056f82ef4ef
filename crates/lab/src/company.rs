//! What company does to ratios: those of runs at once on one processor against those of runs alone.
//!
//! A program that shares a processor finds its caches colder after each switch, and that costs one manager more than
//! another. Each repetition in lockstep has runs alone beside it, and their ratios, which are noisier, tell by how much
//! company moves a table, or how far that can be told.

use crate::comparison::{Interval, Metric, Row};
use crate::experiment::Experiment;
use crate::side::{Side, Sides};
use crate::statistics::{self, FEWEST_PAIRS};

/// The baseline and the other stacks that ran in lockstep and alone.
fn both_ways<'s, 'e>(
    experiment: &Experiment,
    sides: &'s Sides<'e>,
) -> Option<(&'s Side<'e>, Vec<&'s Side<'e>>)> {
    let base = sides.find(&experiment.baseline).filter(|base| base.is_together())?;
    let others = sides.all.iter().filter(|side| side.is_together() && side.stack != base.stack).collect();
    Some((base, others))
}

/// Ratios of CPU time at once over those alone, the geometric mean over stacks; `None` without lockstep, or with too few
/// pairs for an interval.
pub fn effect(experiment: &Experiment, sides: &Sides) -> Option<Interval> {
    let (base, others) = both_ways(experiment, sides)?;
    let repetitions = crate::compare::repetitions(experiment);
    let stacks: Vec<Vec<Option<f64>>> = others
        .iter()
        .map(|side| {
            let together = side.log_ratios(base, Metric::Cpu, repetitions);
            let alone = side.log_ratios_by_itself(base, repetitions);
            together.iter().zip(alone).map(|(together, alone)| Some((*together)? - alone?)).collect()
        })
        .collect();
    let mean = |repetition: usize| {
        let values: Vec<f64> = stacks.iter().filter_map(|stack| stack[repetition]).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let series: Vec<Option<f64>> = (0..repetitions as usize).map(mean).collect();
    let found = statistics::paired(&[series], crate::compare::ALPHA, experiment.settings.seed)[0];
    found.filter(|found| found.pairs as usize >= FEWEST_PAIRS)
}

/// The effect on the whole table in words, and the stacks whose two ratios contradict each other.
pub fn notes(experiment: &Experiment, sides: &Sides, rows: &[Row], effect: Option<Interval>) -> Vec<String> {
    effect.iter().map(sentence).chain(contradictions(experiment, sides, rows)).collect()
}

fn sentence(effect: &Interval) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", 100.0 * (ratio - 1.0));
    let (by, low, high) = (percent(effect.ratio), percent(effect.low), percent(effect.high));
    if effect.differs {
        format!(
            "against runs alone company moves the CPU ratios by {by} ({low} to {high}): a smaller difference may be \
             company's, and not the managers'"
        )
    } else {
        format!("against runs alone company moves the CPU ratios by {by} ({low} to {high}): no effect seen")
    }
}

/// Stacks whose CPU ratio in lockstep and by itself cannot both be right: the one interval lies beyond the other. A manager
/// may behave otherwise on one processor, or a program in company.
fn contradictions(experiment: &Experiment, sides: &Sides, rows: &[Row]) -> Vec<String> {
    let Some((base, others)) = both_ways(experiment, sides) else { return vec![] };
    let repetitions = crate::compare::repetitions(experiment);
    let series: Vec<_> = others.iter().map(|side| side.log_ratios_by_itself(base, repetitions)).collect();
    let intervals = statistics::paired(&series, experiment.alpha(), experiment.settings.seed);
    let pairs = others.iter().zip(intervals).filter_map(|(side, alone)| {
        let row = rows.iter().find(|row| row.stack == side.stack)?;
        Some((side.stack, row.figures.get(&Metric::Cpu)?.ratio?, alone?))
    });
    pairs
        .filter(|(_, together, alone)| {
            let enough = |interval: &Interval| interval.pairs as usize >= FEWEST_PAIRS;
            enough(together) && enough(alone) && (together.high < alone.low || alone.high < together.low)
        })
        .map(|(stack, together, alone)| {
            format!(
                "{stack} takes {:.2} ({:.2}\u{2013}{:.2}) of {}'s CPU in lockstep on one processor, but {:.2} \
                 ({:.2}\u{2013}{:.2}) by itself on all: believe the second, and see `--pairing interleaved`",
                together.ratio,
                together.low,
                together.high,
                experiment.baseline,
                alone.ratio,
                alone.low,
                alone.high
            )
        })
        .collect()
}
