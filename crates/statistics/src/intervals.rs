//! Valid confidence intervals: studentised permutation statistics with a family-wise critical value.
//!
//! *Paired* (one experiment). Each ratio is a trimmed mean of its log ratios (one at either end of ten, two of fifteen,
//! a fifth of twenty and more), with Yuen's winsorised standard error: on a shared machine every tenth run or so is
//! slowed by a noisy neighbour, and one such run must neither move a ratio nor widen its interval until nothing can be
//! seen.
//!
//! Under "no difference" the two runs of a pair could have been swapped, which flips the sign of their log ratio; so
//! the distribution of the studentised statistic under random sign flips is known exactly, whatever the shape of the
//! noise. The 95 % point of the *largest* |t| over the table (Westfall and Young's single-step maxT) gives one critical
//! value for all of its ratios. Whole repetitions are flipped, which keeps the correlation that ratios have because
//! they share a baseline (for several ratios at once this requires that the noise be symmetric as well).
//!
//! Flips of ratios with a real effect all peak on the same few sign vectors, and with many such ratios the critical
//! value would come out too small for the *widths* of their intervals. So it is also taken from the ratios less their
//! means, and the larger of the two counts. A difference is claimed where the interval does not hold 1, and nowhere else.
//! `heaptoll-bench` measures false claims on this machine's noise, tests below the coverage.
//!
//! *Unpaired* (two experiments). The same with permuted group labels and Welch's statistic.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::flips::Flips;
use crate::largest::largest;
use crate::trimmed::{FLOOR, cut, trimmed};
use crate::{Interval, groups};

/// Family-wise level of every table.
pub const ALPHA: f64 = 0.05;
/// Fewer pairs than this cannot claim anything at 5 %: with five there are 16 distinct flips, and 1/16 > 0.05.
pub const FEWEST_PAIRS: usize = 6;
/// Statistics that differ by less than this share were equal before rounding.
const TIE: f64 = 1e-9;

/// Mean and standard error of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
struct MeanAndVariance {
    mean: f64,
    variance: f64,
    n: f64,
}

impl MeanAndVariance {
    fn of(values: &[f64]) -> MeanAndVariance {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        MeanAndVariance { mean, variance, n }
    }

    fn se(self) -> f64 {
        (self.variance.sqrt().max(FLOOR)) / self.n.sqrt()
    }
}

/// The value that at most a share `alpha` of `statistics` exceeds.
fn critical(mut statistics: Vec<f64>, alpha: f64) -> f64 {
    statistics.sort_by(f64::total_cmp);
    let allowed = (alpha * statistics.len() as f64 + 1e-9).floor() as usize;
    statistics[statistics.len() - 1 - allowed.min(statistics.len() - 1)]
}

/// Values in a table from which on its two families are computed at the same time, on two processors.
const LARGE: usize = 1 << 12;

/// Simultaneous intervals for the paired log ratios of one table.
///
/// `series[j][r]` is comparison j's log ratio in repetition r, `None` where one of the two rows is missing. The result
/// has one entry a series: `None` below two pairs; with two to five pairs the range of the pairs, which never claims a
/// difference; otherwise the interval described above at family-wise level `alpha`. Beyond
/// [`groups::MOST`] repetitions a series is the means of groups of them.
pub fn paired(series: &[Vec<Option<f64>>], alpha: f64, seed: u64) -> Vec<Option<Interval>> {
    let pairs: Vec<usize> = series.iter().map(|values| values.iter().flatten().count()).collect();
    let longest = series.iter().map(Vec::len).max().unwrap_or(0);
    let series: Vec<Vec<Option<f64>>> =
        series.iter().map(|values| groups::of_pairs(values, longest)).collect();
    let repetitions = series.iter().map(Vec::len).max().unwrap_or(0);
    let present: Vec<Vec<(usize, f64)>> = series
        .iter()
        .map(|values| values.iter().enumerate().filter_map(|(r, value)| Some((r, (*value)?))).collect())
        .collect();
    let raw: Vec<Vec<(usize, f64)>> =
        present.iter().filter(|values| values.len() >= FEWEST_PAIRS).cloned().collect();
    let centred: Vec<Vec<(usize, f64)>> = raw
        .iter()
        .map(|values| {
            let mut plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
            let (mean, _) = trimmed(&mut plain, cut(values.len()));
            values.iter().map(|(repetition, value)| (*repetition, value - mean)).collect()
        })
        .collect();
    let flips = Flips::new(if raw.is_empty() { 0 } else { repetitions }, seed);
    let point = |family: &[Vec<(usize, f64)>]| match family {
        [] => f64::INFINITY,
        _ => critical(largest(family, &flips), alpha),
    };
    let (claim, centred) = match raw.iter().map(Vec::len).sum::<usize>() {
        LARGE.. => std::thread::scope(|scope| {
            let other = std::thread::Builder::new().spawn_scoped(scope, || point(&centred));
            let raw = point(&raw);
            // A panic there is one of this computation.
            (raw, other.map_or_else(|_| point(&centred), |other| other.join().unwrap_or(f64::INFINITY)))
        }),
        _ => (point(&raw), point(&centred)),
    };
    let width = claim.max(centred);
    present
        .iter()
        .zip(pairs)
        .map(|(values, pairs)| {
            let mut plain: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
            match plain.len() {
                0 | 1 => None,
                n if n < FEWEST_PAIRS => Some(Interval {
                    ratio: MeanAndVariance::of(&plain).mean.exp(),
                    low: plain.iter().copied().fold(f64::INFINITY, f64::min).exp(),
                    high: plain.iter().copied().fold(f64::NEG_INFINITY, f64::max).exp(),
                    differs: false,
                    pairs: n as u32,
                }),
                n => {
                    let (mean, se) = trimmed(&mut plain, cut(n));
                    Some(interval(mean, se, width, pairs))
                }
            }
        })
        .collect()
}

/// `mean ± width·se` on the log scale, and whether it ends before 1: the one rule by which a difference is claimed.
fn interval(mean: f64, se: f64, width: f64, pairs: usize) -> Interval {
    // The observed statistic is one of those that the critical value was taken from, so it may be that value itself
    // but for rounding; a tie is no claim. And the exponentials shall differ from 1, too.
    const APART: f64 = 1e-12;
    let differs = mean.abs() - width * se * (1.0 + TIE) > APART;
    // The widest interval that still prints: a factor of a million either way.
    let half = (width * se * (1.0 + TIE)).min(14.0).max(if differs { 0.0 } else { mean.abs() });
    let (low, high) = (mean - half, mean + half);
    Interval { ratio: mean.exp(), low: low.exp(), high: high.exp(), differs, pairs: pairs as u32 }
}

/// Simultaneous intervals for B/A where the rows of A and B were not measured together.
///
/// `series[j]` is (values in A, values in B), positive. `None` where a side has fewer than four values.
pub fn unpaired(series: &[(Vec<f64>, Vec<f64>)], alpha: f64, seed: u64) -> Vec<Option<Interval>> {
    const FEWEST: usize = 4;
    const PERMUTATIONS: usize = 2000;
    let logs =
        |values: &[f64]| values.iter().map(|value| value.max(f64::MIN_POSITIVE).ln()).collect::<Vec<f64>>();
    let grouped = |values: &[f64]| groups::of_values(&logs(values));
    let logged: Vec<(Vec<f64>, Vec<f64>)> = series.iter().map(|(a, b)| (grouped(a), grouped(b))).collect();
    let enough = |(a, b): &(Vec<f64>, Vec<f64>)| a.len() >= FEWEST && b.len() >= FEWEST;
    let welch = |a: &[f64], b: &[f64]| {
        let (a, b) = (MeanAndVariance::of(a), MeanAndVariance::of(b));
        (b.mean - a.mean, (a.se().powi(2) + b.se().powi(2)).sqrt())
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let observed = logged.iter().filter(|pair| enough(pair)).map(|(a, b)| {
        let (difference, se) = welch(a, b);
        difference.abs() / se
    });
    let mut statistics = vec![observed.fold(0.0, f64::max)];
    for _ in 1..PERMUTATIONS {
        let mut largest = 0.0f64;
        for (a, b) in logged.iter().filter(|pair| enough(pair)) {
            let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
            all.shuffle(&mut rng);
            let (difference, se) = welch(&all[..a.len()], &all[a.len()..]);
            largest = largest.max(difference.abs() / se);
        }
        statistics.push(largest);
    }
    let c = critical(statistics, alpha);
    logged
        .iter()
        .zip(series)
        .map(|(pair, values)| {
            enough(pair).then(|| {
                let (difference, se) = welch(&pair.0, &pair.1);
                interval(difference, se, c, values.0.len().min(values.1.len()))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
    use rand::Rng;

    fn normal(rng: &mut ChaCha8Rng) -> f64 {
        let (u, v): (f64, f64) = (rng.random::<f64>().max(1e-300), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    /// Tables of `comparisons` stacks against one baseline, all equal: the share of tables with any claim.
    fn false_claims(n: usize, comparisons: usize, skewed: bool, trials: u32) -> f64 {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut noise = || {
            let x = normal(&mut rng);
            if skewed { (1.5 * x).exp() } else { x }
        };
        let claims = (0..trials).filter(|_| {
            let base: Vec<f64> = (0..n).map(|_| noise()).collect();
            let series: Vec<Vec<Option<f64>>> =
                (0..comparisons).map(|_| base.iter().map(|b| Some(0.01 * (noise() - b))).collect()).collect();
            paired(&series, 0.05, 1).iter().flatten().any(|interval| interval.differs)
        });
        claims.count() as f64 / f64::from(trials)
    }

    #[test]
    fn equal_managers_differ_in_five_tables_of_a_hundred() {
        for (n, comparisons, skewed, trials) in
            [(10, 1, false, 1000), (8, 8, false, 600), (8, 8, true, 600), (15, 3, false, 100)]
        {
            let share = false_claims(n, comparisons, skewed, trials);
            let spread = 3.0 * (0.05 * 0.95 / f64::from(trials)).sqrt();
            assert!(share < 0.05 + spread, "n {n}, {comparisons} comparisons, skewed {skewed}: {share}");
            assert!(
                share > 0.05 - spread || skewed,
                "n {n}, {comparisons} comparisons: {share} is too timid"
            );
        }
    }

    #[test]
    fn many_thousand_repetitions_are_compared_by_groups() {
        let mut rng = ChaCha8Rng::seed_from_u64(17);
        let mut noise =
            |n: usize, shift: f64| -> Vec<f64> { (0..n).map(|_| shift + normal(&mut rng)).collect() };
        let n = 40 * groups::MOST;
        let one = noise(n, 0.2).into_iter().map(Some).collect::<Vec<_>>();
        let none = noise(n, 0.0).into_iter().map(Some).collect::<Vec<_>>();
        let found = paired(&[one, none], ALPHA, 1);
        let [Some(one), Some(none)] = found[..] else { panic!("{found:?}") };
        assert!(one.differs && one.low < 0.2f64.exp() && 0.2f64.exp() < one.high, "{one:?}");
        assert_eq!((one.pairs, none.differs), (n as u32, false), "{none:?}");
    }

    #[test]
    fn trimming_still_allows_claims() {
        assert_eq!([6, 8, 10, 13, 15, 20, 40].map(cut), [0, 0, 1, 2, 2, 4, 8]);
    }

    /// One run in ten has a noisy neighbour and takes a fifth longer; 3 % must still be seen most of the time.
    #[test]
    fn a_few_disturbed_runs_do_not_hide_a_difference() {
        let mut rng = ChaCha8Rng::seed_from_u64(13);
        let trials = 60;
        let claimed = (0..trials).filter(|_| {
            let mut run = || {
                let disturbed = if rng.random::<f64>() < 0.1 { 0.2 } else { 0.0 };
                disturbed + 0.01 * normal(&mut rng)
            };
            let series = vec![(0..13).map(|_| Some(0.03 + run() - run())).collect::<Vec<_>>()];
            paired(&series, 0.05, 1)[0].is_some_and(|interval| interval.differs)
        });
        let share = claimed.count() as f64 / f64::from(trials);
        assert!(share > 0.75, "{share}");
    }

    /// With real effects everywhere the intervals of a table must still hold all true ratios at once.
    #[test]
    fn intervals_of_a_table_hold_together_when_managers_differ() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let (n, trials) = (10, 300);
        let effects = [0.1, 0.1, 0.1, 0.1, 0.4, 0.4, -0.1, -0.1];
        let held = (0..trials).filter(|_| {
            let base: Vec<f64> = (0..n).map(|_| normal(&mut rng)).collect();
            let series: Vec<Vec<Option<f64>>> = effects
                .iter()
                .map(|effect| base.iter().map(|b| Some(effect + 0.01 * (normal(&mut rng) - b))).collect())
                .collect();
            paired(&series, 0.05, 1).iter().zip(effects).all(|(interval, effect)| {
                interval.is_some_and(|i| i.low <= effect.exp() && effect.exp() <= i.high)
            })
        });
        let share = held.count() as f64 / f64::from(trials);
        assert!(share > 0.95 - 3.0 * (0.05 * 0.95 / f64::from(trials)).sqrt(), "{share}");
    }

    #[test]
    fn a_clear_difference_is_claimed_and_five_pairs_never_claim() {
        let series = |n: usize| vec![(0..n).map(|i| Some(0.1 + 0.001 * (i % 3) as f64)).collect::<Vec<_>>()];
        let interval = paired(&series(6), 0.05, 1)[0].expect("six pairs");
        assert!(interval.differs && interval.low > 1.09 && interval.high < 1.13, "{interval:?}");
        assert!(!paired(&series(5), 0.05, 1)[0].expect("five pairs").differs);
        assert_eq!(paired(&series(1), 0.05, 1)[0], None);
    }

    #[test]
    fn figures_that_repeat_exactly_have_finite_intervals() {
        let same = vec![vec![Some(0.0); 10], vec![Some(0.5f64.ln()); 10]];
        let intervals = paired(&same, 0.05, 1);
        let (zero, half) = (intervals[0].expect("pairs"), intervals[1].expect("pairs"));
        assert!(!zero.differs && half.differs && half.high.is_finite() && half.low > 0.0, "{intervals:?}");
    }

    #[test]
    fn a_tie_with_the_critical_value_is_no_claim() {
        // Of the 32 flips of six pairs only the identity and one other may lie this far out: 2/32 is above 5 %.
        let values = [
            0.8457363232385616,
            0.5442497937509306,
            -0.38433352785969277,
            1.8333724688413298,
            1.5897471556458733,
            1.3653583396167395,
        ];
        let interval = paired(&[values.map(Some).to_vec()], 0.05, 1)[0].expect("pairs");
        assert!(!interval.differs && interval.low <= 1.0, "{interval:?}");
    }

    #[test]
    fn unpaired_groups_are_compared() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut group =
            |level: f64| (0..12).map(|_| level * (0.01 * normal(&mut rng)).exp()).collect::<Vec<_>>();
        let series = vec![(group(1.0), group(1.1)), (group(2.0), group(2.0)), (vec![1.0], vec![1.0])];
        let intervals = unpaired(&series, 0.05, 1);
        assert!(intervals[0].is_some_and(|i| i.differs && (i.ratio - 1.1).abs() < 0.02), "{intervals:?}");
        assert!(intervals[1].is_some_and(|i| !i.differs), "{intervals:?}");
        assert_eq!(intervals[2], None);
    }

    proptest! {
        #[test]
        fn intervals_hold_their_ratio(values in prop::collection::vec(prop::option::of(-2.0f64..2.0), 0..12)) {
            for interval in paired(&[values], 0.05, 1).into_iter().flatten() {
                prop_assert!(interval.low <= interval.ratio * 1.000001 && interval.ratio <= interval.high * 1.000001);
                prop_assert!(!interval.differs || interval.low > 1.0 || interval.high < 1.0);
            }
        }

        #[test]
        fn swapping_the_two_sides_inverts_the_ratio(values in prop::collection::vec(-1.0f64..1.0, 6..12)) {
            let forward = paired(&[values.iter().map(|v| Some(*v)).collect()], 0.05, 1)[0].expect("pairs");
            let back = paired(&[values.iter().map(|v| Some(-*v)).collect()], 0.05, 1)[0].expect("pairs");
            prop_assert!((forward.ratio * back.ratio - 1.0).abs() < 1e-9);
            prop_assert_eq!(forward.differs, back.differs);
        }
    }
}
