//! The first and last portions of the time between two collections against its middle, with intervals.
//!
//! Groups pool the requests of all runs by time, and a machine that is slow for a while stretches the time between
//! collections and the requests in it alike: its slow requests then are the farthest. So here a request's place is its
//! rank among those between the same two collections, every portion has its share of each of them, and each run gives
//! one ratio. The intervals are those of all other comparisons ([`heaptoll_statistics::paired`]): simultaneous
//! over all that is shown of a program, and a difference is claimed from six runs on.

use heaptoll_statistics::Interval;
use heaptoll_statistics::{median, paired};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distance::{Distances, Sample};

/// Portions of the requests between two collections, by rank: name, from, to (shares of them).
pub const PORTIONS: [(&str, f64, f64); 4] =
    [("first 1 %", 0.0, 0.01), ("first 10 %", 0.0, 0.1), ("second 10 %", 0.1, 0.2), ("last 20 %", 0.8, 1.0)];
/// What the names of their metrics begin with.
const BEGINNINGS: [&str; PORTIONS.len()] = ["first", "near", "second", "last"];
/// The portion that they are compared with.
const MIDDLE: (f64, f64) = (0.2, 0.8);

/// What the names of a portion's metrics begin with.
pub fn beginning(portion: &str) -> Option<&'static str> {
    PORTIONS.iter().zip(BEGINNINGS).find(|((name, ..), _)| *name == portion).map(|(_, beginning)| beginning)
}

/// A portion against the middle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Portion {
    /// Which.
    pub name: String,
    /// Median distance of its requests, ns.
    pub distance_ns: u64,
    /// Mean time over that of the middle.
    pub mean: Option<Ratio>,
    /// The same of medians.
    pub median: Option<Ratio>,
    /// Mean processor time over that of the middle, where it was recorded.
    #[serde(default)]
    pub cpu_mean: Option<Ratio>,
    /// The same of medians.
    #[serde(default)]
    pub cpu_median: Option<Ratio>,
}

/// A ratio and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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

impl From<Ratio> for Interval {
    fn from(ratio: Ratio) -> Interval {
        let Ratio { ratio, low, high, differs, runs } = ratio;
        Interval { ratio, low, high, differs, pairs: runs }
    }
}

/// Fewer requests than this in a portion of a run give no ratio.
const FEWEST: usize = 5;

/// A request by its place between two collections, from 0 to 1.
struct Placed {
    place: f64,
    distance_ns: u64,
    time_ns: f64,
    cpu_ns: Option<f64>,
}

/// The requests of a run by place. What comes after the last collection is left out, for no end of it is known; and so is
/// the last request of each cycle, which is there because it was short enough. Nothing is left out for how near the next
/// collection was in time: a request that takes long puts it off itself.
fn placed(run: &Distances) -> Vec<Placed> {
    let mut samples: Vec<&Sample> = run.whole.iter().filter(|sample| sample.gap_ns.is_some()).collect();
    samples.sort_by_key(|sample| (sample.cycle, sample.distance_ns));
    samples
        .chunk_by(|one, other| one.cycle == other.cycle)
        .flat_map(|cycle| {
            let cycle = &cycle[..cycle.len() - 1];
            cycle.iter().enumerate().map(|(rank, sample)| Placed {
                place: (rank as f64 + 0.5) / cycle.len() as f64,
                distance_ns: sample.distance_ns,
                time_ns: sample.time_ns as f64,
                cpu_ns: sample.cpu_ns.map(|cpu| cpu as f64),
            })
        })
        .collect()
}

/// A portion of every run of one scale, before it is known what else is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    name: &'static str,
    distance_ns: u64,
    /// Logarithms of the ratios to the middle, one a run; `None` where either has too few requests.
    mean: Vec<Option<f64>>,
    median: Vec<Option<f64>>,
    /// The same of processor time; `None` where it was not recorded.
    cpu: Option<[Vec<Option<f64>>; 2]>,
}

/// Each portion of [`PORTIONS`] against the middle, in every run. In means a request counts for `cap_ns` at most.
pub fn series(runs: &[Distances], cap_ns: u64) -> Vec<Series> {
    let runs: Vec<Vec<Placed>> = runs.iter().map(placed).collect();
    if runs.iter().all(Vec::is_empty) {
        return vec![];
    }
    let cap_ns = cap_ns as f64;
    let mean = |values: &[f64]| values.iter().map(|time| time.min(cap_ns)).sum::<f64>() / values.len() as f64;
    let time = |one: &Placed| Some(one.time_ns);
    let cpu = |one: &Placed| one.cpu_ns;
    let recorded = runs.iter().flatten().all(|one| one.cpu_ns.is_some());
    let each = PORTIONS.iter().map(|(name, from, to)| {
        let range = (*from, *to);
        Series {
            name,
            distance_ns: distance(&runs, *from, *to),
            mean: log_ratios(&runs, range, &time, &mean),
            median: log_ratios(&runs, range, &time, &median),
            cpu: recorded
                .then(|| [log_ratios(&runs, range, &cpu, &mean), log_ratios(&runs, range, &cpu, &median)]),
        }
    });
    each.collect()
}

/// The intervals of everything that is shown together, of scales and collectors, means and medians: they hold together
/// at the level `1 - alpha`. The result is in the order of `shown`.
pub fn portions(shown: &[&[Series]], alpha: f64, seed: u64) -> Vec<Vec<Portion>> {
    let all = shown.iter().flat_map(|scale| scale.iter());
    let logs: Vec<Vec<Option<f64>>> = all
        .flat_map(|one| [&one.mean, &one.median].into_iter().chain(one.cpu.iter().flatten()).cloned())
        .collect();
    let mut intervals = paired(&logs, alpha, seed).into_iter();
    let mut portion = |one: &Series| {
        let mut ratio = || intervals.next().flatten().map(Ratio::from);
        let [mean, median] = [ratio(), ratio()];
        let [cpu_mean, cpu_median] = if one.cpu.is_some() { [ratio(), ratio()] } else { [None, None] };
        Portion { name: one.name.into(), distance_ns: one.distance_ns, mean, median, cpu_mean, cpu_median }
    };
    shown.iter().map(|scale| scale.iter().map(&mut portion).collect()).collect()
}

/// A time of a request, where it is known.
type Time<'a> = &'a dyn Fn(&Placed) -> Option<f64>;

fn within(run: &[Placed], (from, to): (f64, f64), time: Time<'_>) -> Vec<f64> {
    run.iter().filter(|one| (from..to).contains(&one.place)).filter_map(time).collect()
}

fn log_ratios(
    runs: &[Vec<Placed>],
    portion: (f64, f64),
    time: Time<'_>,
    figure: &dyn Fn(&[f64]) -> f64,
) -> Vec<Option<f64>> {
    let of = |run: &Vec<Placed>| {
        let (here, middle) = (within(run, portion, time), within(run, MIDDLE, time));
        let enough = here.len() >= FEWEST && middle.len() >= FEWEST;
        enough.then(|| (figure(&here) / figure(&middle)).ln()).filter(|ratio| ratio.is_finite())
    };
    runs.iter().map(of).collect()
}

/// The median distance of a portion's requests, ns.
fn distance(runs: &[Vec<Placed>], from: f64, to: f64) -> u64 {
    let all = runs.iter().flatten().filter(|one| (from..to).contains(&one.place));
    median(&all.map(|one| one.distance_ns as f64).collect::<Vec<_>>()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Those of one scale.
    fn one(runs: &[Distances]) -> Vec<Portion> {
        portions(&[&series(runs, u64::MAX)], 0.05, 1).remove(0)
    }

    /// Runs of 20 cycles of 100 requests each, slower by `near` in the first tenth. Some cycles fall into a slow time of
    /// the machine, which takes everything in them twice as long.
    fn runs(count: u32, near: f64, seed: u64) -> Vec<Distances> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut run = |run: u32| {
            let mut whole = Vec::new();
            for cycle in 0..20 {
                let level = if rng.random::<f64>() < 0.3 { 2.0 } else { 1.0 };
                let mut now = 0.0;
                for at in 0..100 {
                    let slower = if at < 10 { near } else { 1.0 };
                    let time = 10_000.0 * level * slower * rng.random_range(0.5..1.5);
                    let gap_ns = Some((1_000_000 - at * 10_000) as u64);
                    // Other work takes the processor for a while, which processor time does not contain.
                    let cpu_ns = Some((time / level) as u64);
                    whole.push(Sample {
                        distance_ns: now as u64,
                        time_ns: time as u64,
                        cpu_ns,
                        gap_ns,
                        run,
                        cycle,
                    });
                    now += time;
                }
            }
            Distances { whole, ..Distances::default() }
        };
        (0..count).map(&mut run).collect()
    }

    #[test]
    fn what_is_slower_near_a_collection_is_claimed() {
        let found = one(&runs(10, 1.08, 1));
        let near = found[1].mean.expect("ten runs");
        assert!(near.differs && near.low <= 1.08 && 1.08 <= near.high, "{near:?}");
        assert!(found[3].distance_ns > found[1].distance_ns * 5);
    }

    #[test]
    fn processor_time_is_narrower_where_other_work_lengthens_requests() {
        let found = one(&runs(10, 1.08, 1));
        let (time, cpu) = (found[1].mean.expect("ten runs"), found[1].cpu_mean.expect("recorded"));
        assert!(cpu.differs && cpu.low <= 1.08 && 1.08 <= cpu.high, "{cpu:?}");
        assert!(cpu.high - cpu.low < time.high - time.low, "{cpu:?} {time:?}");
        let mut runs = runs(10, 1.08, 1);
        runs.iter_mut().flat_map(|run| &mut run.whole).for_each(|sample| sample.cpu_ns = None);
        let without = one(&runs);
        assert!(
            without[1].cpu_mean.is_none() && without[1].cpu_median.is_none() && without[1].mean.is_some()
        );
    }

    /// By time alone the farthest requests would be those of slow times, and appear slower by far.
    #[test]
    fn a_machine_that_is_slow_for_a_while_is_no_finding() {
        let far = |runs: &[Distances]| one(runs)[3].mean.expect("eight runs");
        assert!((far(&runs(8, 1.0, 3)).ratio - 1.0).abs() < 0.02);
        // A table of three scales, means and medians: it holds as a whole.
        let claimed = (0..40).filter(|seed| {
            let of = |scale: u64| series(&runs(8, 1.0, 100 + seed * 3 + scale), u64::MAX);
            let scales = [of(0), of(1), of(2)];
            let found = portions(&scales.each_ref().map(Vec::as_slice), 0.05, 1);
            let claims = |ratio: Option<Ratio>| ratio.is_some_and(|ratio| ratio.differs);
            found.iter().flatten().any(|one| claims(one.mean) || claims(one.median))
        });
        // 5 % of 40 tables are 2; 7 or more would come up once in two hundred times.
        assert!(claimed.count() < 7);
    }

    #[test]
    fn too_few_runs_claim_nothing_and_none_give_nothing() {
        let found = one(&runs(3, 1.5, 2));
        assert!(found[1].mean.is_some_and(|ratio| !ratio.differs && ratio.ratio > 1.3));
        assert!(portions(&[], 0.05, 1).is_empty());
        assert!(one(&[]).is_empty() && one(&[Distances::default()]).is_empty());
        // A scale without runs leaves the others theirs.
        let runs = runs(8, 1.5, 2);
        let found = portions(&[&series(&[], u64::MAX), &series(&runs, u64::MAX)], 0.05, 1);
        assert!(found[0].is_empty() && found[1][1].mean.is_some_and(|ratio| ratio.differs));
    }

    /// Collections come by bytes: a request that the system holds up has the next collection far ahead, however late in
    /// its cycle it is. Kept for that, such requests would make the end appear slow.
    #[test]
    fn requests_that_were_held_up_do_not_gather_at_the_end() {
        let mut rng = ChaCha8Rng::seed_from_u64(9);
        let mut run = |run: u32| {
            let mut whole = Vec::new();
            for cycle in 0..200 {
                let times: Vec<u64> =
                    (0..20).map(|_| if rng.random::<f64>() < 0.01 { 1_000_000 } else { 10_000 }).collect();
                for at in 0..20 {
                    let distance_ns = times[..at].iter().sum();
                    let gap_ns = Some(times[at..].iter().sum());
                    whole.push(Sample { distance_ns, time_ns: times[at], cpu_ns: None, gap_ns, run, cycle });
                }
            }
            Distances { whole, ..Distances::default() }
        };
        let runs: Vec<Distances> = (0..8).map(&mut run).collect();
        let last = one(&runs)[3].mean.expect("eight runs");
        assert!(!last.differs && (0.7..1.4).contains(&last.ratio), "{last:?}");
        assert_eq!(placed(&runs[0]).len(), 200 * 19);
    }
}
