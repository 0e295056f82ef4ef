//! Experiments that go on until their intervals are as narrow as wanted, or their time is over.
//!
//! An interim analysis comes after 8, 12, 18, 27 ... repetitions. A program whose CPU intervals are all narrow enough
//! then is run no more; the others go on. The analysis judges how wide intervals are, never whether they hold 1. Even
//! so a spread that happens to be small ends an experiment early, which makes its intervals a little too narrow: such
//! experiments are judged at [`crate::experiment::STOPPED_ALPHA`], with which 5 % of tables of equal managers hold a
//! claim (simulated below).

use crate::comparison::{Comparison, Metric};
use crate::experiment::{Experiment, Protocol};

/// Repetitions before the first interim analysis: fewer estimate their own spread poorly.
pub const FIRST_ANALYSIS: u32 = 8;
/// Repetitions at most.
pub const MOST: u32 = 400;

impl Protocol {
    /// The same until intervals have this half-width, or this time has passed; as it is where neither is given.
    pub fn until(self, precision: Option<f64>, budget_s: Option<f64>) -> Protocol {
        match precision.or(budget_s.map(|_| 0.0)) {
            None => self,
            // With a budget alone no interval is narrow enough.
            precision => Protocol { repetitions: FIRST_ANALYSIS, precision, budget_s, ..self },
        }
    }
}

/// An interval that is wider than wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Wide {
    /// Program.
    pub program: String,
    /// Stack.
    pub stack: String,
    /// Half-width as a share: .01 is 1 %.
    pub half: f64,
    /// Repetitions that the wanted width would take, as far as the spread so far shows; at most [`MOST`] is made.
    pub needed: f64,
}

/// The result of an interim analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct Interim {
    /// Programs that have enough.
    pub enough: Vec<String>,
    /// CPU intervals that are wider than wanted, the widest first.
    pub wide: Vec<Wide>,
    /// CPU intervals in all.
    pub all: usize,
    /// Repetitions of the next analysis; `None` when the experiment is over.
    pub next: Option<u32>,
}

/// Analyses the tables after `spent_s` seconds of measuring.
pub fn analyse(experiment: &Experiment, comparison: &Comparison, spent_s: f64) -> Interim {
    let settings = &experiment.settings;
    let wanted = settings.precision.unwrap_or(0.0);
    let (mut wide, mut all, mut enough) = (Vec::new(), 0, Vec::new());
    for table in &comparison.tables {
        let before = wide.len();
        for row in &table.rows {
            let Some(ratio) = row.figures.get(&Metric::Cpu).and_then(|figure| figure.ratio) else { continue };
            all += 1;
            let half = (ratio.high / ratio.ratio).max(ratio.ratio / ratio.low) - 1.0;
            if half > wanted {
                let needed = f64::from(ratio.pairs) * (half / wanted.max(1e-6)).powi(2);
                let (program, stack) = (table.program.clone(), row.stack.clone());
                wide.push(Wide { program, stack, half, needed });
            }
        }
        // A program without a ratio has nothing to wait for.
        if wide.len() == before {
            enough.push(table.program.clone());
        }
    }
    wide.sort_by(|a, b| b.half.total_cmp(&a.half));
    let next = if wide.is_empty() { None } else { next(settings.repetitions, settings.budget_s, spent_s) };
    Interim { enough, wide, all, next }
}

/// Repetitions of the analysis after that at `made`, as far as the budget allows; `None` when it allows no more.
fn next(made: u32, budget_s: Option<f64>, spent_s: f64) -> Option<u32> {
    let by_budget = budget_s.map_or(f64::INFINITY, |budget_s| {
        let each_s = spent_s.max(1e-3) / f64::from(made.max(1));
        f64::from(made) + (budget_s - spent_s).max(0.0) / each_s
    });
    let next = f64::from(made + made.div_ceil(2)).min(by_budget.floor()).min(f64::from(MOST));
    (next > f64::from(made)).then_some(next as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::compare::compare;
    use crate::experiment::STOPPED_ALPHA;
    use crate::testing::{experiment, row};
    use heaptoll_statistics::paired;

    /// `same` differs from the baseline by `spread` either way.
    fn measured(repetitions: u32, spread: f64) -> Experiment {
        let mut made = experiment(&["glibc", "same"]);
        (made.settings.repetitions, made.settings.precision) = (repetitions, Some(0.01));
        for repetition in 0..repetitions {
            let off = if repetition % 2 == 0 { spread } else { -spread };
            made.observations.push(row("glibc", repetition, 1.0, 1000));
            made.observations.push(row("same", repetition, 1.0 + off, 1000));
        }
        made
    }

    #[test]
    fn narrow_intervals_end_an_experiment_and_wide_ones_go_on() {
        let narrow = measured(8, 0.001);
        let found = analyse(&narrow, &compare(&narrow), 1.0);
        assert_eq!((found.enough.as_slice(), found.all, found.next), (&["prog".to_owned()][..], 1, None));
        let broad = measured(8, 0.05);
        let found = analyse(&broad, &compare(&broad), 1.0);
        assert_eq!((found.enough.len(), found.wide.len(), found.next), (0, 1, Some(12)));
        let wide = &found.wide[0];
        assert!(wide.half > 0.03 && wide.needed > 50.0 && wide.stack == "same", "{wide:?}");
    }

    proptest! {
        #[test]
        fn analyses_go_on_within_the_budget_and_end(made in 8u32..500, budget in 0.1f64..1e4, spent in 0.01f64..1e4) {
            if let Some(next) = next(made, Some(budget), spent) {
                prop_assert!(next > made && next <= MOST);
                let predicted = spent / f64::from(made) * f64::from(next);
                prop_assert!(predicted <= budget * 1.0001, "{} s of {}", predicted, budget);
            }
            prop_assert_eq!(next(made, Some(spent), spent), None);
        }
    }

    /// Noise with heavy tails: every tenth run has a noisy neighbour.
    fn noise(rng: &mut ChaCha8Rng) -> f64 {
        let normal: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
        normal + if rng.random::<f64>() < 0.1 { 5.0 * rng.random::<f64>() } else { 0.0 }
    }

    /// A table that is analysed until all its intervals are narrow: of `effects` on the log scale, with the baseline's
    /// noise in all. Gives whether it holds all effects, and whether it claims a difference of one that is 0.
    fn stopped_table(effects: &[f64], wanted: f64, alpha: f64, rng: &mut ChaCha8Rng) -> (bool, bool) {
        let mut series: Vec<Vec<Option<f64>>> = vec![Vec::new(); effects.len()];
        let mut repetitions = FIRST_ANALYSIS;
        loop {
            while series[0].len() < repetitions as usize {
                let base = noise(rng);
                for (values, effect) in series.iter_mut().zip(effects) {
                    values.push(Some(effect + 0.01 * (noise(rng) - base)));
                }
            }
            let intervals: Vec<_> = paired(&series, alpha, 1).into_iter().flatten().collect();
            let narrow = intervals.iter().all(|one| one.high / one.ratio - 1.0 <= wanted);
            if narrow || repetitions >= 27 {
                let holds = |(one, effect): (&heaptoll_statistics::Interval, &f64)| {
                    one.low <= effect.exp() && effect.exp() <= one.high
                };
                let false_claim =
                    |(one, effect): (&heaptoll_statistics::Interval, &f64)| one.differs && *effect == 0.0;
                let pairs = || intervals.iter().zip(effects);
                return (pairs().all(holds), pairs().any(false_claim));
            }
            repetitions += repetitions.div_ceil(2);
        }
    }

    fn shares(effects: &[f64], wanted: f64, trials: u32) -> (f64, f64) {
        let mut rng = ChaCha8Rng::seed_from_u64(29);
        let (mut held, mut claimed) = (0, 0);
        for _ in 0..trials {
            let (holds, claims) = stopped_table(effects, wanted, STOPPED_ALPHA, &mut rng);
            held += u32::from(holds);
            claimed += u32::from(claims);
        }
        (f64::from(held) / f64::from(trials), f64::from(claimed) / f64::from(trials))
    }

    /// 3 standard deviations above 5 % of `trials`.
    fn margin(trials: u32) -> f64 {
        3.0 * (0.05 * 0.95 / f64::from(trials)).sqrt()
    }

    #[test]
    fn the_level_is_kept_where_an_experiment_decides_itself_when_it_ends() {
        let trials = 60;
        let (held, claimed) = shares(&[0.0, 0.0], 0.02, trials);
        assert!(
            claimed < 0.05 + margin(trials) && held > 0.95 - margin(trials),
            "{claimed} claimed, {held} held"
        );
    }

    #[test]
    #[ignore = "slow: simulates some thousand tables"]
    fn the_level_is_kept_at_all_widths_and_with_real_differences() {
        let trials = 2000;
        for wanted in [0.012, 0.016, 0.02, 0.03] {
            let (_, claimed) = shares(&[0.0, 0.0, 0.0], wanted, trials);
            let (held, _) = shares(&[0.1, -0.05, 0.0], wanted, trials);
            println!("wanted {wanted}: {claimed} of equal tables claim, {held} of others hold all");
            assert!(
                claimed < 0.05 + margin(trials) && held > 0.95 - margin(trials),
                "{wanted}: {claimed} {held}"
            );
        }
    }
}
