//! CPU time by runs alone, and intervals over all programs of an experiment.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::side::Sides;
use heaptoll_statistics::{Interval, over_programs};

/// The ratio of a stack's CPU time to the baseline's by runs alone; of several programs their geometric mean. None where
/// it did not run at once with others, or in fewer than two pairs.
pub(super) fn cpu_alone(experiment: &Experiment, stack: &str) -> Option<Interval> {
    over_all(experiment, |program| {
        let (sides, repetitions) = (Sides::of(experiment, program), experiment.repetitions());
        match (sides.find(stack), sides.find(&experiment.baseline)) {
            (Some(own), Some(base)) if own.runs_in_lockstep_with(base) => {
                own.log_ratios_by_itself(base, repetitions)
            }
            _ => vec![None; repetitions as usize],
        }
    })
}

/// The geometric mean over all programs of the log ratios of each.
pub(super) fn over_all(experiment: &Experiment, of: impl Fn(&str) -> Vec<Option<f64>>) -> Option<Interval> {
    let programs: Vec<Vec<Option<f64>>> =
        experiment.programs.iter().map(|program| of(&program.name)).collect();
    let (_, series) = over_programs(&programs, experiment.repetitions());
    experiment.paired(&[series]).pop().flatten()
}
