//! Stretches of distance against the middle, paired within runs: what may be claimed.
//!
//! Groups pool the requests of all runs, so their intervals say how well a mean over these runs is known, not how it
//! would come out in others. Here each run gives one ratio for each stretch, and the intervals are those of all other
//! comparisons ([`heaptoll_lab::statistics::paired`]): simultaneous over the stretches, and a difference is claimed
//! from six runs on.

use heaptoll_lab::comparison::Interval;
use heaptoll_lab::statistics::{median, paired};
use serde::Serialize;

use super::distance::{Distances, Sample};

/// Stretches by the share of requests that are nearer: name, from, to.
pub const STRETCHES: [(&str, f64, f64); 4] =
    [("first 1 %", 0.0, 0.01), ("first 10 %", 0.0, 0.1), ("second 10 %", 0.1, 0.2), ("last 20 %", 0.8, 1.0)];
/// What they are set against.
const MIDDLE: (f64, f64) = (0.2, 0.8);

/// A stretch against the middle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stretch {
    /// Which.
    pub name: String,
    /// Its requests' distances, ns: from and to.
    pub from_ns: u64,
    /// To.
    pub to_ns: u64,
    /// Mean time over that of the middle; the ends of the interval at the 95 % level over all stretches.
    pub mean: Option<Ratio>,
    /// The same of medians.
    pub median: Option<Ratio>,
}

/// A ratio and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether a difference is claimed.
    pub differs: bool,
    /// Runs.
    pub runs: u32,
}

impl From<Interval> for Ratio {
    fn from(interval: Interval) -> Ratio {
        let Interval { ratio, low, high, differs, pairs } = interval;
        Ratio { ratio, low, high, differs, runs: pairs }
    }
}

/// Fewer requests than this in a stretch of a run give no ratio.
const FEWEST: usize = 5;

/// Each stretch of [`STRETCHES`] against the middle. Requests that began from `biased_from_ns` on are left out before
/// shares are taken: the last stretch then is the last that can be believed.
pub fn stretches(runs: &[Distances], biased_from_ns: Option<u64>, seed: u64) -> Vec<Stretch> {
    let limit = biased_from_ns.unwrap_or(u64::MAX);
    let mut all: Vec<u64> = runs
        .iter()
        .flat_map(|run| &run.whole)
        .map(|sample| sample.distance_ns)
        .filter(|distance| *distance < limit)
        .collect();
    all.sort_unstable();
    let Some(last) = all.last().copied() else { return vec![] };
    // Half-open ranges of distance, the same in every run.
    let at = |share: f64| match (share * all.len() as f64) as usize {
        place if place < all.len() => all[place],
        _ => last + 1,
    };
    let bounds = |from: f64, to: f64| (at(from), at(to));
    let times = |run: &Distances, (from, to): (u64, u64)| -> Vec<f64> {
        let within = |sample: &&Sample| (from..to).contains(&sample.distance_ns);
        run.whole.iter().filter(within).map(|sample| sample.time_ns as f64).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let ratios = |figure: &dyn Fn(&[f64]) -> f64| -> Vec<Option<Interval>> {
        let middles: Vec<Vec<f64>> = runs.iter().map(|run| times(run, bounds(MIDDLE.0, MIDDLE.1))).collect();
        let series: Vec<Vec<Option<f64>>> = STRETCHES
            .iter()
            .map(|(_, from, to)| {
                runs.iter()
                    .zip(&middles)
                    .map(|(run, middle)| {
                        let here = times(run, bounds(*from, *to));
                        let enough = here.len() >= FEWEST && middle.len() >= FEWEST;
                        let ratio = enough.then(|| (figure(&here) / figure(middle)).ln());
                        ratio.filter(|ratio| ratio.is_finite())
                    })
                    .collect()
            })
            .collect();
        paired(&series, 0.05, seed)
    };
    let (means, medians) = (ratios(&mean), ratios(&|values| median(values)));
    STRETCHES
        .iter()
        .zip(means.into_iter().zip(medians))
        .map(|((name, from, to), (mean, median))| {
            let (from_ns, to_ns) = bounds(*from, *to);
            Stretch {
                name: (*name).into(),
                from_ns,
                to_ns,
                mean: mean.map(Ratio::from),
                median: median.map(Ratio::from),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Runs whose requests are slower by `near` in the first tenth.
    fn runs(count: u32, near: f64, seed: u64) -> Vec<Distances> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..count)
            .map(|run| {
                // Each run has a level of its own, which a ratio within the run does not see.
                let level: f64 = rng.random_range(0.8..1.25);
                let whole = (0..2000)
                    .map(|_| {
                        let distance_ns = rng.random_range(0..1_000_000);
                        let slower = if distance_ns < 100_000 { near } else { 1.0 };
                        let time = 10_000.0 * level * slower * rng.random_range(0.5..1.5);
                        Sample { distance_ns, time_ns: time as u64, gap_ns: None, run }
                    })
                    .collect();
                Distances { whole, ..Distances::default() }
            })
            .collect()
    }

    #[test]
    fn what_is_slower_near_a_collection_is_claimed_and_what_is_not_is_not() {
        let found = stretches(&runs(10, 1.08, 1), None, 1);
        let near = found[1].mean.expect("ten runs");
        assert!(near.differs && near.low <= 1.08 && 1.08 <= near.high, "{near:?}");
        assert!(found[1].median.is_some_and(|ratio| ratio.differs));
        let claimed = (0..40).filter(|seed| {
            let found = stretches(&runs(8, 1.0, 100 + seed), None, 1);
            found.iter().any(|one| one.mean.is_some_and(|ratio| ratio.differs))
        });
        // 5 % of 40 tables are 2; 7 or more would come up once in two hundred times.
        assert!(claimed.count() < 7);
    }

    #[test]
    fn too_few_runs_claim_nothing_and_none_give_nothing() {
        let found = stretches(&runs(3, 1.5, 2), None, 1);
        assert!(found[1].mean.is_some_and(|ratio| !ratio.differs && ratio.ratio > 1.3));
        assert!(stretches(&[], None, 1).is_empty());
        assert!(stretches(&runs(2, 1.0, 3), Some(0), 1).is_empty());
    }

    #[test]
    fn what_is_biased_is_left_out() {
        let found = stretches(&runs(6, 1.0, 4), Some(500_000), 1);
        assert!(found[3].to_ns <= 500_001 && found[3].from_ns < 450_000, "{found:?}");
    }
}
