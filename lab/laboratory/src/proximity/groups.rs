//! Requests sorted by distance and averaged in groups.
//!
//! Means are what the paper plots. A request that the system took the processor from for milliseconds would make the
//! mean of its group, so in means a request counts for no more than a multiple of what a long one takes, and medians
//! are shown as well. Where the next collection is nearer than long requests take, only short ones survive to be
//! counted: such groups are marked, and left out of what others are normalised to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distance::{Distances, Sample};

/// How many groups there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// At most.
    pub groups: usize,
    /// Requests in each, at least.
    pub fewest: usize,
    /// In means a request counts for at most this many times what a long one takes.
    pub cap: f64,
}

/// Requests that are about as far from the last collection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Requests in it.
    pub requests: u64,
    /// The nearest, ns.
    pub from_ns: u64,
    /// The farthest, ns.
    pub to_ns: u64,
    /// Mean time of a request, ns.
    pub mean_ns: f64,
    /// 95 % interval of the mean, lower end, ns.
    pub mean_low_ns: f64,
    /// Upper end, ns.
    pub mean_high_ns: f64,
    /// Median time, ns.
    pub median_ns: f64,
    /// 95 % interval of the median by order statistics, lower end, ns.
    pub median_low_ns: f64,
    /// Upper end, ns.
    pub median_high_ns: f64,
    /// Share of all requests begun at such distances that had less time than a long request takes until the next
    /// collection.
    pub threatened: f64,
    /// Share of them that a collection did interrupt.
    pub interrupted: f64,
    /// Whether survivor bias is to be expected.
    pub biased: bool,
}

/// The groups of one scale.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Grouped {
    /// By distance.
    pub groups: Vec<Group>,
    /// What a long request takes, ns: 99 of 100 took less.
    pub long_ns: u64,
    /// In means a request counts for at most this much, ns.
    pub cap_ns: u64,
    /// Requests that took longer than that.
    pub capped: u64,
    /// From this distance to the right end all groups are biased, ns; `None` where the last is not.
    pub biased_from_ns: Option<u64>,
}

/// A request is long when it takes longer than this share of them.
const LONG: f64 = 0.99;
/// A group is biased when this share of its requests had no time for a long one: then one in 2000 of those that would
/// have been in it is missing, and it is one of the longest.
const THREATENED: f64 = 0.05;
/// 97.5 % point of the normal distribution. Groups have 30 requests or more.
const Z: f64 = 1.96;

/// Groups the requests of runs of one scale.
pub fn group(runs: &[Distances], shape: Shape) -> Grouped {
    let mut whole: Vec<Sample> = runs.iter().flat_map(|run| run.whole.iter().copied()).collect();
    if whole.is_empty() {
        return Grouped::default();
    }
    whole.sort_by_key(|sample| (sample.distance_ns, sample.run, sample.time_ns));
    let mut interrupted: Vec<Sample> = runs.iter().flat_map(|run| run.interrupted.iter().copied()).collect();
    interrupted.sort_by_key(|sample| sample.distance_ns);
    let long_ns = long(&whole, &interrupted);
    let cap_ns = (long_ns as f64 * shape.cap) as u64;
    let capped = whole.iter().filter(|sample| sample.time_ns > cap_ns).count() as u64;
    let count = (whole.len() / shape.fewest.max(1)).clamp(1, shape.groups.max(1));
    let mut groups = Vec::with_capacity(count);
    let mut counted = 0;
    for number in 0..count {
        let (from, to) = (number * whole.len() / count, (number + 1) * whole.len() / count);
        // Those that were interrupted belong to the group whose distances they began at; all that are farther, to the
        // last.
        let until = match number + 1 == count {
            true => interrupted.len(),
            false => interrupted.partition_point(|sample| sample.distance_ns < whole[to].distance_ns),
        };
        groups.push(one(&whole[from..to], &interrupted[counted..until], long_ns, cap_ns));
        counted = until;
    }
    let unbiased = groups.iter().rposition(|group| !group.biased).map_or(0, |at| at + 1);
    let biased_from_ns = groups.get(unbiased).map(|group| group.from_ns);
    Grouped { groups, long_ns, cap_ns, capped, biased_from_ns }
}

/// What a long request takes. Those that were interrupted count as well: many of them are long.
fn long(whole: &[Sample], interrupted: &[Sample]) -> u64 {
    let mut times: Vec<u64> = whole.iter().chain(interrupted).map(|sample| sample.time_ns).collect();
    let rank = ((LONG * times.len() as f64) as usize).min(times.len() - 1);
    *times.select_nth_unstable(rank).1
}

fn one(samples: &[Sample], interrupted: &[Sample], long_ns: u64, cap_ns: u64) -> Group {
    let n = samples.len() as f64;
    let mut times: Vec<u64> = samples.iter().map(|sample| sample.time_ns).collect();
    times.sort_unstable();
    let counted = || times.iter().map(|time| (*time).min(cap_ns) as f64);
    let mean = counted().sum::<f64>() / n;
    let squares = counted().map(|time| (time - mean).powi(2)).sum::<f64>();
    let half = if samples.len() > 1 { Z * (squares / (n - 1.0) / n).sqrt() } else { 0.0 };
    let at = |place: f64| times[(place.max(0.0) as usize).min(times.len() - 1)] as f64;
    let spread = Z * n.sqrt() / 2.0;
    let all = n + interrupted.len() as f64;
    let threatened = samples
        .iter()
        .chain(interrupted)
        .filter(|sample| sample.gap_ns.is_some_and(|gap| gap < long_ns))
        .count() as f64
        / all;
    Group {
        requests: samples.len() as u64,
        from_ns: samples[0].distance_ns,
        to_ns: samples[samples.len() - 1].distance_ns,
        mean_ns: mean,
        mean_low_ns: mean - half,
        mean_high_ns: mean + half,
        median_ns: (at(((n - 1.0) / 2.0).floor()) + at((n / 2.0).floor())) / 2.0,
        median_low_ns: at((n / 2.0 - spread).floor()),
        median_high_ns: at((n / 2.0 + spread).ceil()),
        threatened,
        interrupted: interrupted.len() as f64 / all,
        biased: threatened > THREATENED,
    }
}

/// The fastest group of all scales by `figure`, to normalise by: groups with survivor bias do not count, unless there
/// are no others.
pub fn normalise(scales: &[&Grouped], figure: fn(&Group) -> f64) -> Option<f64> {
    let fastest = |with_biased: bool| {
        scales
            .iter()
            .flat_map(|scale| &scale.groups)
            .filter(|group| with_biased || !group.biased)
            .map(figure)
            .filter(|value| *value > 0.0)
            .min_by(f64::total_cmp)
    };
    fastest(false).or_else(|| fastest(true))
}

#[cfg(test)]
mod tests {
    use super::super::distance::{Marked, Span, distances};
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const SHAPE: Shape = Shape { groups: 1000, fewest: 30, cap: 10.0 };

    /// A run of requests one after the other, each as long as `time` gives for its distance, and collections of 1 ms
    /// every `period` ns of the program's own time.
    fn run(number: u32, period: u64, total: u64, mut time: impl FnMut(u64) -> u64) -> Distances {
        let (mut requests, mut collections) = (vec![], vec![Span { start_ns: 0, end_ns: 1_000_000 }]);
        let mut now = 1_000_000;
        let mut last = now;
        while now < total {
            let length = time(now - last);
            let start = now;
            let due = last + period;
            if start + length > due {
                // Interrupted: the pause comes in between.
                let end_ns = due + 1_000_000;
                collections.push(Span { start_ns: due, end_ns });
                last = end_ns;
                now = end_ns + (start + length - due);
            } else {
                now = start + length;
            }
            requests.push(Marked::from(Span { start_ns: start, end_ns: now }));
            now += 100;
        }
        distances(&requests, &collections, number)
    }

    /// Slower by a fifth for 200 µs after a collection, then steady, with noise: what went in comes out.
    #[test]
    fn a_known_disturbance_is_found_where_it_is() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let runs: Vec<Distances> = (0..10)
            .map(|number| {
                run(number, 2_500_000, 1_000_000_000, |distance| {
                    let noise: f64 = rng.random_range(0.8..1.2);
                    (if distance < 200_000 { 12_000.0 } else { 10_000.0 } * noise) as u64
                })
            })
            .collect();
        let grouped = group(&runs, SHAPE);
        assert_eq!(grouped.groups.len(), 1000);
        let base = normalise(&[&grouped], |group| group.mean_ns).expect("groups");
        assert!((base - 10_000.0).abs() < 250.0, "{base}");
        let (near, far): (Vec<&Group>, Vec<&Group>) =
            grouped.groups.iter().filter(|group| !group.biased).partition(|group| group.to_ns < 200_000);
        let mean =
            |groups: &[&Group]| groups.iter().map(|group| group.mean_ns).sum::<f64>() / groups.len() as f64;
        assert!((mean(&near) / mean(&far) - 1.2).abs() < 0.01, "{} {}", mean(&near), mean(&far));
        // Its intervals hold the truth about as often as their level.
        let held = far.iter().filter(|group| group.mean_low_ns <= 10_000.0 && 10_000.0 <= group.mean_high_ns);
        let share = held.count() as f64 / far.len() as f64;
        assert!((0.90..=0.99).contains(&share), "{share}");
    }

    /// Requests take no longer anywhere, but their times vary widely: at the right end only the short ones survive. The
    /// paper's spike appears, it is marked, and nothing else is.
    #[test]
    fn survivor_bias_appears_at_the_right_end_and_is_marked() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let runs: Vec<Distances> =
            (0..10)
                .map(|number| {
                    run(number, 2_500_000, 500_000_000, |_| {
                        if rng.random::<f64>() < 0.1 { 300_000 } else { 20_000 }
                    })
                })
                .collect();
        let grouped = group(&runs, SHAPE);
        let from = grouped.biased_from_ns.expect("it is marked");
        // A long request takes 300 µs of the period's 2.5 ms.
        assert!((2_150_000..2_250_000).contains(&from), "{from}");
        let mean =
            |groups: &[Group]| groups.iter().map(|group| group.mean_ns).sum::<f64>() / groups.len() as f64;
        let unbiased = grouped.groups.iter().position(|group| group.biased).expect("some are");
        let (kept, marked) = grouped.groups.split_at(unbiased);
        assert!(marked.iter().all(|group| group.biased));
        assert!(mean(marked) < 0.6 * mean(kept), "{} {}", mean(marked), mean(kept));
        assert!((mean(kept) / 48_000.0 - 1.0).abs() < 0.05, "{}", mean(kept));
        // Normalising by a biased group would make everything else appear slow.
        let grouped = group(&runs, Shape { groups: 100, fewest: 30, cap: 10.0 });
        let by_all = grouped.groups.iter().map(|group| group.mean_ns).fold(f64::INFINITY, f64::min);
        assert!(normalise(&[&grouped], |group| group.mean_ns).is_some_and(|base| base > 1.3 * by_all));
    }

    /// Ten times the period: the mark is at a tenth of the width, as the paper argues.
    #[test]
    fn the_mark_moves_with_the_period() {
        let share = |period: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let run = run(0, period, 2_000_000_000, |_| rng.random_range(10_000..200_000));
            let grouped = group(&[run], SHAPE);
            grouped.biased_from_ns.map_or(0.0, |from| 1.0 - from as f64 / period as f64)
        };
        let (short, long) = (share(2_500_000), share(25_000_000));
        assert!(short > 0.06 && short < 0.1 && long > 0.004 && long < 0.012, "{short} {long}");
    }

    proptest! {
        #[test]
        fn groups_hold_every_request_once_in_order(
            times in prop::collection::vec((0u64..1000, 0u64..1000, prop::option::of(0u64..1000)), 0..500),
            groups in 1usize..50, fewest in 1usize..60,
        ) {
            let whole: Vec<Sample> = times.iter()
                .map(|(distance_ns, time_ns, gap_ns)| Sample { distance_ns: *distance_ns, time_ns: *time_ns, cpu_ns: None, gap_ns: *gap_ns, run: 0, cycle: 0 })
                .collect();
            let interrupted = whole.iter().copied().step_by(7).collect();
            let runs = [Distances { whole, interrupted, ..Distances::default() }];
            let grouped = group(&runs, Shape { groups, fewest, cap: 10.0 });
            prop_assert_eq!(grouped.groups.iter().map(|group| group.requests).sum::<u64>(), times.len() as u64);
            prop_assert!(grouped.groups.len() <= groups);
            prop_assert!(grouped.groups.len() <= 1 || grouped.groups.iter().all(|group| group.requests >= fewest as u64));
            prop_assert!(grouped.groups.windows(2).all(|pair| pair[0].to_ns <= pair[1].from_ns));
            for group in &grouped.groups {
                prop_assert!(group.mean_low_ns <= group.mean_ns && group.mean_ns <= group.mean_high_ns);
                prop_assert!(group.median_low_ns <= group.median_ns && group.median_ns <= group.median_high_ns);
                prop_assert!((0.0..=1.0).contains(&group.threatened) && (0.0..=1.0).contains(&group.interrupted));
            }
            // Twice as slow everywhere is no difference once normalised.
            let base = normalise(&[&grouped], |group| group.mean_ns);
            let slow: Vec<Sample> = runs[0].whole.iter().map(|one| Sample { time_ns: one.time_ns * 2, gap_ns: None, ..*one }).collect();
            let fair: Vec<Sample> = runs[0].whole.iter().map(|one| Sample { gap_ns: None, ..*one }).collect();
            let of = |whole| group_of(whole, Shape { groups, fewest, cap: 10.0 });
            let (slow, fair) = (of(slow), of(fair));
            if let (Some(slow_base), Some(base), Some(_)) = (
                normalise(&[&slow], |group| group.mean_ns), normalise(&[&fair], |group| group.mean_ns), base,
            ) {
                for (one, other) in slow.groups.iter().zip(&fair.groups) {
                    prop_assert!((one.mean_ns / slow_base - other.mean_ns / base).abs() < 1e-6);
                }
            }
        }
    }

    fn group_of(whole: Vec<Sample>, shape: Shape) -> Grouped {
        group(&[Distances { whole, ..Distances::default() }], shape)
    }

    /// The system takes the processor from one request in a thousand for as long as a thousand take.
    #[test]
    fn a_request_that_was_held_up_does_not_make_the_mean_of_its_group() {
        let whole = (0..10_000u64)
            .map(|at| Sample {
                distance_ns: at,
                time_ns: if at % 1000 == 77 { 10_000_000 } else { 9_000 + at % 2000 },
                cpu_ns: None,
                gap_ns: None,
                run: 0,
                cycle: 0,
            })
            .collect();
        let grouped = group_of(whole, Shape { groups: 100, fewest: 30, cap: 10.0 });
        assert_eq!((grouped.capped, grouped.cap_ns / 1000), (10, 10 * grouped.long_ns / 1000));
        assert!(grouped.groups.iter().all(|group| group.mean_ns < 12_000.0));
    }

    #[test]
    fn nothing_makes_no_groups() {
        assert_eq!(group(&[], SHAPE), Grouped::default());
        assert_eq!(normalise(&[&Grouped::default()], |group| group.mean_ns), None);
    }
}
