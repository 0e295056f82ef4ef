//! Two stacks of one experiment by what is wanted: the interval of the one's weighted ratio over the other's.
//!
//! The figures of a repetition are weighted before repetitions are put together, so that noise which CPU time and memory
//! share is in the interval once.

use heaptoll_experiment::comparison::Metric;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::side::Sides;
use heaptoll_statistics::Interval;

use super::alone::over_all;
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
    use heaptoll_experiment::testing::programs::{experiment, row};

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
