//! Two stacks of one experiment by what is wanted: the interval of the one's weighted ratio over the other's.
//!
//! The figures of a repetition are weighted before repetitions are put together, so that noise which CPU time and memory
//! share is in the interval once.

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::side::Sides;
use heaptoll_statistics::{Interval, over_programs, paired};

use super::score::Preference;
use super::servers::{self, ServerFigure};

/// The weighted ratio of `stack` to `other`: above 1 it is worse by what is wanted. Of several programs their geometric
/// mean. None with fewer than two pairs, and where a figure that counts is missing.
pub fn difference(
    experiment: &Experiment,
    stack: &str,
    other: &str,
    preference: Preference,
) -> Option<Interval> {
    over_all(experiment, |program| weighted(experiment, program, (stack, other), preference))
}

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
fn over_all(experiment: &Experiment, of: impl Fn(&str) -> Vec<Option<f64>>) -> Option<Interval> {
    let programs: Vec<Vec<Option<f64>>> =
        experiment.programs.iter().map(|program| of(&program.name)).collect();
    let (_, series) = over_programs(&programs, experiment.repetitions());
    paired(&[series], experiment.alpha(), experiment.settings.seed).pop().flatten()
}

/// The weighted log ratio of each repetition.
fn weighted(
    experiment: &Experiment,
    program: &str,
    pair: (&str, &str),
    preference: Preference,
) -> Vec<Option<f64>> {
    let (sides, repetitions) = (Sides::of(experiment, program), experiment.repetitions());
    let of_metric = |metric| match (sides.find(pair.0), sides.find(pair.1)) {
        (Some(own), Some(other)) => own.log_ratios(other, metric, repetitions),
        _ => vec![None; repetitions as usize],
    };
    let of_server = |figure: ServerFigure| servers::log_ratios(experiment, program, pair, figure);
    let weights = preference.weights();
    let parts = [
        (weights.cpu, of_metric(Metric::Cpu)),
        (weights.memory, of_metric(Metric::PeakRss)),
        (weights.p99, of_server(servers::p99_ms)),
        (weights.idle, of_server(servers::last_idle)),
    ];
    let counted: Vec<&(f64, Vec<Option<f64>>)> = parts.iter().filter(|(weight, _)| *weight > 0.0).collect();
    let of = |at: usize| -> Option<f64> {
        counted.iter().map(|(weight, ratios)| Some(weight * ratios.get(at).copied().flatten()?)).sum()
    };
    (0..repetitions as usize).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choose::score;
    use crate::testing::{experiment, row};
    use heaptoll_experiment::compare::compare;
    use heaptoll_experiment::experiment::Pairing;
    use heaptoll_experiment::observation::{Observation, Phase};

    /// Before, the search let a manager with huge pages go: at once with thirty others it took twice the CPU time of the
    /// baseline, and alone a third of it.
    #[test]
    fn runs_alone_count_in_the_search_where_company_makes_a_stack_slow() {
        let mut made = experiment(&["prog"], &["glibc", "lonely", "disturbed", "usual"].map(String::from), 2);
        made.settings.pairing = Pairing::Lockstep;
        let rows = [
            ("glibc", 1.0, [1.0, 1.0]),
            ("lonely", 2.0, [0.4, 0.4]),
            ("disturbed", 2.0, [0.4, 1.9]),
            ("usual", 0.9, [0.8, 0.8]),
        ];
        for (stack, at_once, alone) in rows {
            for (repetition, alone) in (0..).zip(alone) {
                made.observations.push(row("prog", stack, repetition, at_once, 1000));
                let alone = row("prog", stack, repetition, alone, 1000);
                made.observations.push(Observation { phase: Phase::Alone, ..alone });
            }
        }
        let cpu = |stack: &str| {
            let cpu = score::measured(stack, &made, &compare(&made)).expect("it works").cpu;
            [cpu.mean, cpu.least].map(|ratio| (ratio * 100.0).round())
        };
        assert_eq!([cpu("lonely"), cpu("disturbed")], [[40.0, 40.0], [200.0, 40.0]]);
        assert_eq!(cpu("usual"), [90.0, 90.0], "noise of few runs alone");
    }

    #[test]
    fn a_stack_against_itself_is_no_worse_and_the_costlier_one_is() {
        let mut made = experiment(&["prog"], &["glibc".into(), "costly".into()], 8);
        for repetition in 0..8 {
            let noise = 1.0 + 0.001 * f64::from(repetition % 3);
            made.observations.push(row("prog", "glibc", repetition, noise, 1000));
            made.observations.push(row("prog", "costly", repetition, 1.21 * noise * noise, 1000));
        }
        let same = difference(&made, "glibc", "glibc", Preference::Balance).expect("pairs");
        assert!((same.ratio - 1.0).abs() < 1e-9 && !same.differs);
        let costly = difference(&made, "costly", "glibc", Preference::Balance).expect("pairs");
        assert!(costly.differs && costly.low > 1.09 && costly.high < 1.11, "{costly:?}");
        let back = difference(&made, "glibc", "costly", Preference::Time).expect("pairs");
        assert!(back.differs && back.high < 0.86, "{back:?}");
        assert!(difference(&made, "costly", "glibc", Preference::P99).is_none(), "no server");
    }
}
