//! Forecast of the differences that an experiment can detect on this machine, from its first repetitions.
//!
//! A fixed piece of work against itself would measure the machine's noise; but two managers differ from repetition to
//! repetition by more than that, and by how much depends on the program (docs/method/measurement.md has figures). So
//! the estimate is the experiment's own: the spread of its first log ratios, and the critical value that intervals of
//! so many repetitions have where noise is normal.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::compare::judge_outputs;
use crate::comparison::Metric;
use crate::experiment::Experiment;
use crate::side::Sides;
use heaptoll_statistics::{FEWEST_PAIRS, median, paired};

/// Repetitions that the estimate is made from.
pub const FIRST: u32 = 5;
/// By how much a normal sample of [`FIRST`] spreads more than it does winsorised (20,000 samples).
const WINSORISED: f64 = 1.97;
/// More repetitions than this hardly change the critical value.
const ENOUGH: usize = 12;
/// Metrics that most tables have besides CPU: their ratios are in the same family.
const METRICS: usize = 3;

/// The intervals that one program will have.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Program.
    pub program: String,
    /// Half-width that its CPU intervals will have, as a share; the median over its stacks.
    pub half: f64,
    /// The stack with the widest one, and that.
    pub widest: (String, f64),
}

impl Forecast {
    /// Repetitions that would make the widest interval as narrow as `wanted`, a share, where it is this wide after
    /// `all`.
    pub fn needed(&self, wanted: f64, all: u32) -> f64 {
        f64::from(all) * (self.widest.1 / wanted).powi(2)
    }
}

/// What each program's table will show after `all` repetitions, by the first [`FIRST`]; without those that have fewer.
pub fn forecasts(experiment: &Experiment, all: u32) -> Vec<Forecast> {
    // Rows are judged on a copy: what an output is judged by may still change.
    let mut judged = experiment.clone();
    judge_outputs(&mut judged);
    judged.programs.iter().filter_map(|program| forecast(&judged, &program.name, all)).collect()
}

fn forecast(experiment: &Experiment, program: &str, all: u32) -> Option<Forecast> {
    let sides = Sides::of(experiment, program);
    let base = sides.find(&experiment.baseline)?;
    let others = sides.all.iter().filter(|side| side.stack != base.stack);
    let spreads: Vec<(&str, f64)> = others
        .filter_map(|side| {
            let ratios: Vec<f64> = side.log_ratios(base, Metric::Cpu, FIRST).into_iter().flatten().collect();
            (ratios.len() == FIRST as usize).then(|| (side.stack, spread(ratios)))
        })
        .collect();
    let standard = half_of_one(all as usize, METRICS * spreads.len(), experiment.alpha())?;
    let half = |spread: f64| (standard * spread).exp_m1();
    let (stack, widest) = spreads.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let halves: Vec<f64> = spreads.iter().map(|(_, spread)| half(*spread)).collect();
    Some(Forecast {
        program: program.into(),
        half: median(&halves),
        widest: ((*stack).into(), half(*widest)),
    })
}

/// The winsorised standard deviation of the first log ratios, which one bad repetition does not move: the smallest and
/// the largest count as their neighbours, as the values that intervals leave out do.
fn spread(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_unstable_by(f64::total_cmp);
    if let [first, second, .., before, last] = ratios.as_mut_slice() {
        (*first, *last) = (*second, *before);
    }
    WINSORISED * deviation(&ratios)
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

/// Half-width, on the log scale, of an interval over `n` pairs whose log ratios have a standard deviation of 1, in a
/// family of `family`: that of a made-up table of normal noise. `None` where nothing can be claimed.
fn half_of_one(n: usize, family: usize, alpha: f64) -> Option<f64> {
    if n < FEWEST_PAIRS || family == 0 {
        return None;
    }
    let pairs = n.min(ENOUGH);
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    // Small, for an interval ends at a factor of a million.
    const SCALE: f64 = 1e-3;
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let series: Vec<Vec<Option<f64>>> =
        (0..family).map(|_| (0..pairs).map(|_| Some(SCALE * normal())).collect()).collect();
    let halves: Vec<f64> = paired(&series, alpha, 1)
        .iter()
        .zip(&series)
        .filter_map(|(interval, values)| {
            let values: Vec<f64> = values.iter().flatten().copied().collect();
            let interval = interval.as_ref()?;
            let half = (interval.high / interval.ratio).max(interval.ratio / interval.low).ln();
            Some(half / deviation(&values))
        })
        .collect();
    Some(median(&halves) * (pairs as f64 / n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::testing::{experiment, row};

    /// Stacks whose log ratios to the baseline spread by these deviations.
    fn measured(spreads: &[f64], repetitions: u32) -> Experiment {
        let names: Vec<String> = (0..=spreads.len()).map(|number| format!("m{number}")).collect();
        let mut made = experiment(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for repetition in 0..repetitions {
            made.observations.push(row("m0", repetition, 1.0, 1000));
            for (name, spread) in names[1..].iter().zip(spreads) {
                let normal: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
                made.observations.push(row(name, repetition, (spread * normal).exp(), 1000));
            }
        }
        made
    }

    #[test]
    fn the_first_repetitions_foretell_what_ten_show_within_a_factor_of_two() {
        let made = measured(&[0.01, 0.01, 0.01, 0.1], 10);
        let real = compare(&made).tables[0].detectable_cpu_ratio.expect("intervals") - 1.0;
        let mut first = made.clone();
        first.observations.retain(|row| row.repetition < FIRST);
        let found = forecasts(&first, 10);
        assert!((0.5..2.0).contains(&(found[0].half / real)), "{found:?} but {real}");
        assert!(found[0].widest.0 == "m4" && found[0].widest.1 > 3.0 * found[0].half, "{found:?}");
        // What comes later is not used.
        assert_eq!(forecasts(&made, 10), found);
    }

    #[test]
    fn one_bad_repetition_among_the_first_makes_no_estimate_large() {
        let mut made = measured(&[0.01, 0.01, 0.01], FIRST);
        let half = |made: &Experiment| forecasts(made, 10)[0].half;
        let before = half(&made);
        let bad = made.observations.iter_mut().find(|row| row.stack == "m0" && row.repetition == 2);
        bad.expect("a row").user_s *= 1.5;
        let share = half(&made) / before;
        assert!((0.4..2.5).contains(&share), "{share}");
    }

    #[test]
    fn four_times_the_repetitions_halve_what_is_seen() {
        let made = measured(&[0.01, 0.02], FIRST);
        let half = |all| forecasts(&made, all)[0].widest.1;
        let share = half(64) / half(16);
        assert!((0.45..0.55).contains(&share), "{share}");
        let found = &forecasts(&made, 16)[0];
        assert!((found.needed(half(64), 16) / 64.0 - 1.0).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn too_few_repetitions_and_a_baseline_by_itself_foretell_nothing() {
        assert!(forecasts(&measured(&[0.01], FIRST - 1), 10).is_empty());
        assert!(forecasts(&measured(&[], FIRST), 10).is_empty());
        assert!(forecasts(&measured(&[0.01], FIRST), 5).is_empty());
    }
}
