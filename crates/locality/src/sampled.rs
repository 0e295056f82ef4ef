//! Long distances from a sample of the lines: SHARDS (Waldspurger et al., FAST 2015), with an interval from the data.
//!
//! A line is followed if a hash of it selects it, one in 2^shift. The most recent lines are all kept, so distances up
//! to the *seam* are exact; for a reference beyond it to a followed line, the followed lines in between are counted.
//! The number of references beyond the seam, and of cold ones, is known exactly for every size, so that only their
//! *shares* beyond larger sizes are estimated. (SHARDS-adj, section 3.4 there, corrects the sampled number of
//! references to the expected one; here the exact number takes the place of the expected one.)
//!
//! The interval has two parts, each allowed to fail in 2.5 of 100 cases (Bonferroni), so that it holds in 95:
//!
//! - *Which lines were sampled.* The hash also puts each followed line into one of [`GROUPS`] disjoint groups. The
//!   variance of the share between groups gives its standard error (the ratio estimator of random groups), and
//!   Student's t the width. Lines that were not sampled can differ from all that were: so the largest share consistent
//!   with 0 among so many lines is added; or, if it is larger, the difference between the references a followed line
//!   and those a line, both of which are known. (A hundred lines with many references may all be missed; only this
//!   difference shows it.)
//! - *The error of a counted distance.* Of t lines in between, a binomial number is followed. So a size of T lines
//!   beyond the seam is compared with the largest and smallest counts that T lines yield.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::misses::{Estimate, Misses};
use crate::split::{Accessor, Split};

/// Disjoint groups of followed lines.
pub const GROUPS: usize = 32;
/// Two-sided 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 2.2414;
/// The same of Student's t with `GROUPS - 1` degrees of freedom.
const STUDENT: f64 = 2.356;
/// Fewest groups with a reference from which an error can be estimated.
const FEWEST_GROUPS: usize = 8;

/// Counts up to this have a bucket each.
const FINE: u32 = 64;
/// Buckets of each doubling beyond.
const PER_OCTAVE: u32 = 32;

/// Sampling by a hash of the line (Waldspurger et al., SHARDS, FAST 2015, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One line in two to this power is followed: 4 is one in 16. 1 to 16.
    pub shift: u32,
    /// Caches of up to this many lines are simulated exactly, on all lines. At least 16.
    pub exact_lines: u32,
    /// Selects the lines. The same seed selects the same lines.
    pub seed: u64,
}

impl Default for Sampling {
    /// One line in 16; exact up to 1024 lines (64 KB of lines of 64 bytes).
    fn default() -> Sampling {
        Sampling { shift: 4, exact_lines: 1024, seed: 0 }
    }
}

/// The bucket of a count of followed lines.
fn bucket(count: u32) -> usize {
    if count < FINE {
        return count as usize;
    }
    let octave = count.ilog2();
    let within = (count >> (octave - PER_OCTAVE.ilog2())) - PER_OCTAVE;
    (FINE + (octave - FINE.ilog2()) * PER_OCTAVE + within) as usize
}

/// The smallest count of a bucket.
fn edge(bucket: usize) -> f64 {
    let bucket = bucket as u32;
    if bucket < FINE {
        return f64::from(bucket);
    }
    let (octave, within) = ((bucket - FINE) / PER_OCTAVE, (bucket - FINE) % PER_OCTAVE);
    f64::from(PER_OCTAVE + within) * f64::from(octave + FINE.ilog2() - PER_OCTAVE.ilog2()).exp2()
}

/// References beyond the seam: how many there are, and the distances of those to followed lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    seam: u64,
    shift: u32,
    /// All references at or beyond the seam that are not cold.
    beyond: Split<u64>,
    /// References beyond the seam are spread unevenly over the followed lines: the number of lines with equal shares
    /// that would estimate with the same variance (Kish).
    lines: Split<f64>,
    /// The same for all accessors together.
    lines_of_all: f64,
    /// Relative difference between the references a followed line and those a line.
    unlike: Split<f64>,
    /// The same for all accessors together.
    unlike_all: f64,
    /// By group and accessor, references to followed lines by bucket.
    followed: Vec<Split<Vec<u64>>>,
}

impl Tail {
    /// The tail for caches of more than `seam` lines, of which one in two to the power `shift` is followed.
    pub fn new(seam: u64, shift: u32) -> Tail {
        Tail {
            seam,
            shift,
            beyond: Split::default(),
            lines: Split::default(),
            lines_of_all: 0.0,
            unlike: Split::default(),
            unlike_all: 0.0,
            followed: (0..GROUPS).map(|_| Split::of(|_| Vec::new())).collect(),
        }
    }

    /// The most lines of a cache for which misses are exact.
    pub fn seam(&self) -> u64 {
        self.seam
    }

    /// One line in two to this power is followed.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// References at or beyond the seam that are not cold.
    pub fn beyond(&self) -> &Split<u64> {
        &self.beyond
    }

    fn bytes(&self) -> u64 {
        let counts = |group: &Split<Vec<u64>>| {
            Accessor::ALL.iter().map(|&accessor| group.get(accessor).capacity() as u64 * 8).sum::<u64>()
        };
        self.followed.iter().map(counts).sum()
    }

    /// Counts a reference beyond the seam, whether or not its line is followed.
    pub(crate) fn pass(&mut self, accessor: Accessor) {
        *self.beyond.get_mut(accessor) += 1;
    }

    /// Counts the followed lines between two touches of a followed line.
    pub(crate) fn follow(&mut self, accessor: Accessor, group: usize, between: u32) {
        let counts = self.followed[group].get_mut(accessor);
        let bucket = bucket(between);
        if bucket >= counts.len() {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1;
    }

    /// Computes the weights from the references beyond the seam to each followed line that had any, by accessor, and
    /// from the numbers of followed and of all lines.
    fn weigh<'a>(&mut self, lines: impl Iterator<Item = &'a Split<u32>>, followed: u64, of: u64) {
        let mut power_sums = [(0_u128, 0_u128); Accessor::COUNT + 1];
        for line in lines {
            let all = Accessor::ALL.iter().map(|&accessor| u128::from(*line.get(accessor))).sum();
            let by_accessor = Accessor::ALL.iter().map(|&accessor| u128::from(*line.get(accessor)));
            for (power_sum, references) in power_sums.iter_mut().zip(by_accessor.chain([all])) {
                power_sum.0 += references;
                power_sum.1 += references * references;
            }
        }
        let effective = |(sum, squares): (u128, u128)| {
            if squares == 0 { 0.0 } else { (sum as f64).powi(2) / squares as f64 }
        };
        self.lines = Split::of(|accessor| effective(power_sums[accessor as usize]));
        self.lines_of_all = effective(power_sums[Accessor::COUNT]);
        let unlike = |sum: u128, beyond: u64| {
            let expected = beyond as f64 * followed as f64 / of.max(1) as f64;
            // In 97.5 of 100 cases at most this many lines have none followed; they count as lines too.
            let unseen = -0.025_f64.ln() / followed.max(1) as f64;
            if expected > 0.0 { ((sum as f64 / expected - 1.0).abs() + unseen).min(1.0) } else { 1.0 }
        };
        self.unlike =
            Split::of(|accessor| unlike(power_sums[accessor as usize].0, *self.beyond.get(accessor)));
        self.unlike_all = unlike(power_sums[Accessor::COUNT].0, self.beyond.total());
    }

    /// Misses in a cache of more lines than the seam.
    pub(crate) fn misses(&self, entries: u64, cold: &Split<u64>, distinct: u64) -> Misses {
        // In a cache that holds all lines only cold references miss.
        let over = if entries >= distinct { None } else { Some((entries - self.seam) as f64) };
        let one = |accessors: &[Accessor], lines: f64, unlike: f64| {
            let sum =
                |split: &Split<u64>| accessors.iter().map(|&accessor| *split.get(accessor)).sum::<u64>();
            let (cold, beyond) = (sum(cold), sum(&self.beyond));
            let Some(over) = over else { return Estimate::exact(cold) };
            let share = self.share(accessors, over, lines, unlike);
            let of = |share: f64| cold + (share * beyond as f64).round() as u64;
            Estimate { value: of(share.value), low: of(share.low), high: of(share.high).min(cold + beyond) }
        };
        Misses {
            by: Split::of(|accessor| one(&[accessor], *self.lines.get(accessor), *self.unlike.get(accessor))),
            total: one(&Accessor::ALL, self.lines_of_all, self.unlike_all),
        }
    }

    /// Of the references beyond the seam, the share at distances beyond `over` more lines.
    fn share(&self, accessors: &[Accessor], over: f64, lines: f64, unlike: f64) -> Share {
        let rate = (-f64::from(self.shift)).exp2();
        let expected = over * rate;
        let spread = NORMAL * (expected * (1.0 - rate)).sqrt();
        // Bernstein's bounds: the binomial is skewed if few are expected.
        let (fewest, most) = ((expected - spread).max(0.0), expected + spread + NORMAL * NORMAL / 3.0);
        let (value, _) = self.ratio(accessors, |bucket| weight(bucket, expected));
        let (high, above) = self.ratio(accessors, |bucket| if edge(bucket + 1) > fewest { 1.0 } else { 0.0 });
        let (low, below) = self.ratio(accessors, |bucket| if edge(bucket) >= most { 1.0 } else { 0.0 });
        let hidden = (STUDENT * STUDENT * (1.0 - rate) / lines.max(1.0)).max(unlike);
        let width = (1.0 - rate).sqrt() * STUDENT;
        let high = (high + above * width + hidden * (1.0 - high)).min(1.0);
        let low = (low - below * width - hidden * low).max(0.0);
        Share { value: value.clamp(low, high), low, high }
    }

    /// Weighted share of references by bucket, and its standard error from the variance between groups.
    fn ratio(&self, accessors: &[Accessor], weight: impl Fn(usize) -> f64) -> (f64, f64) {
        let groups: Vec<(f64, f64)> = self
            .followed
            .iter()
            .map(|group| {
                let mut sums = (0.0, 0.0);
                for &accessor in accessors {
                    for (bucket, &count) in
                        group.get(accessor).iter().enumerate().filter(|(_, count)| **count > 0)
                    {
                        sums.0 += weight(bucket) * count as f64;
                        sums.1 += count as f64;
                    }
                }
                sums
            })
            .collect();
        let (part, all) = groups.iter().fold((0.0, 0.0), |sum, group| (sum.0 + group.0, sum.1 + group.1));
        if groups.iter().filter(|group| group.1 > 0.0).count() < FEWEST_GROUPS {
            return (if all > 0.0 { part / all } else { 0.5 }, 1.0);
        }
        let ratio = part / all;
        let squares: f64 = groups.iter().map(|group| (group.0 - ratio * group.1).powi(2)).sum();
        let count = groups.len() as f64;
        (ratio, (count / (count - 1.0) * squares).sqrt() / all)
    }
}

/// The entries followed beyond the seam, and the counts for them.
#[derive(Debug, Clone)]
pub struct Following {
    shift: u32,
    seed: u64,
    tail: Tail,
    /// References beyond the seam to each followed entry.
    references: HashMap<u32, Split<u32>>,
    /// Followed entries among all that were touched.
    followed: u64,
    /// Slots of followed entries.
    pub(crate) marks: Vec<u64>,
    /// First slot of the entries that are all kept.
    pub(crate) boundary: usize,
    /// Number of those entries.
    pub(crate) recent: u32,
    /// Most of those entries.
    pub(crate) most: u32,
    /// For the first line of this reference that is beyond the seam: the entry and the number of followed ones in
    /// between, if it is followed.
    pub(crate) found: Option<Option<(u32, u32)>>,
}

impl Following {
    /// With these settings; the `top` most recent entries have no slots and are exact in any case, and `slots` is the
    /// number of slots at first.
    pub fn new(sampling: Sampling, top: u32, slots: usize) -> Following {
        let exact = sampling.exact_lines.max(top);
        Following {
            shift: sampling.shift,
            seed: sampling.seed,
            tail: Tail::new(u64::from(exact), sampling.shift),
            references: HashMap::new(),
            followed: 0,
            marks: vec![0; slots / 64],
            boundary: 0,
            recent: 0,
            most: exact - top,
            found: None,
        }
    }

    /// Whether an entry is followed.
    #[inline(always)]
    pub fn follows(&self, entry: u32) -> bool {
        self.hash(entry) >> (64 - self.shift) == 0
    }

    /// The finaliser of SplitMix64 (Steele, Lea & Flood 2014): every bit depends on every bit.
    #[inline(always)]
    fn hash(&self, entry: u32) -> u64 {
        let mut hash = (u64::from(entry) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.seed;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    }

    /// Counts an entry touched for the first time.
    #[inline(always)]
    pub(crate) fn begin(&mut self, entry: u32) {
        self.followed += u64::from(self.follows(entry));
    }

    /// Counts a reference beyond the seam.
    pub(crate) fn record(&mut self, accessor: Accessor, found: Option<(u32, u32)>) {
        self.tail.pass(accessor);
        if let Some((entry, between)) = found {
            self.tail.follow(accessor, self.hash(entry) as usize % GROUPS, between);
            let references = self.references.entry(entry).or_default().get_mut(accessor);
            *references = references.saturating_add(1);
        }
    }

    /// The results.
    pub(crate) fn tail(mut self, distinct: u64) -> Tail {
        self.tail.weigh(self.references.values(), self.followed, distinct);
        self.tail
    }

    /// Memory of the counts, bytes.
    pub fn bytes(&self) -> u64 {
        (self.references.capacity() * 25 + self.marks.len() * 8) as u64 + self.tail.bytes()
    }
}

struct Share {
    value: f64,
    low: f64,
    high: f64,
}

/// The part of a bucket at or above a threshold if it is spread evenly up to the next one.
fn weight(bucket: usize, threshold: f64) -> f64 {
    let (low, high) = (edge(bucket), edge(bucket + 1));
    ((high - threshold) / (high - low)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::Distances;

    /// The share of intervals, over many seeds, that contain the true number, for all sizes of a stream beyond the
    /// seam.
    fn inside(stream: impl Iterator<Item = u32> + Clone, sampling: Sampling, seeds: u64) -> f64 {
        let curve = |mut distances: Distances| {
            for entry in stream.clone() {
                let distance = distances.touch(entry);
                distances.record(Accessor::Program, distance);
            }
            distances.curve(64)
        };
        let exact = curve(Distances::new());
        let (mut inside, mut all) = (0, 0);
        for seed in 0..seeds {
            let sampled = curve(Distances::sampled(Sampling { seed, ..sampling }));
            for entries in exact.sizes(2) {
                let (misses, truth) = (sampled.misses(entries).total, exact.misses(entries).total.value);
                if entries <= u64::from(sampling.exact_lines) || entries == exact.distinct {
                    assert_eq!(misses, Estimate::exact(truth));
                    continue;
                }
                inside += u32::from((misses.low..=misses.high).contains(&truth));
                all += 1;
            }
        }
        f64::from(inside) / f64::from(all)
    }

    const SAMPLING: Sampling = Sampling { shift: 4, exact_lines: 64, seed: 0 };

    #[test]
    fn intervals_hold_what_they_promise_for_sweeps_and_random_references() {
        let sweeps =
            (0..4_u32).flat_map(|phase| (0..3 * 1500).map(move |at| phase * 700 + at % (1500 - phase * 300)));
        assert!(inside(sweeps, SAMPLING, 20) >= 0.95);
        let mut state = 1_u64;
        let random: Vec<u32> = (0..30_000)
            .map(|step| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let range = if step % 4 == 0 { 3000 } else { 300 };
                (state >> 33) as u32 % range
            })
            .collect();
        assert!(inside(random.iter().copied(), SAMPLING, 20) >= 0.95);
    }

    /// A few lines with many references each, none of which may be followed: the variance between groups is 0 then.
    #[test]
    fn intervals_hold_what_they_promise_when_few_lines_have_many_references() {
        let hot = |at: u32| at.is_multiple_of(40).then_some(100_000 + at / 40 % 20);
        let stream = (0..120_000_u32).flat_map(move |at| [Some(at % 20_000), hot(at)]).flatten();
        assert!(inside(stream, Sampling { shift: 5, ..SAMPLING }, 10) >= 0.95);
    }

    #[test]
    fn a_bucket_begins_where_the_one_before_ends() {
        for count in (0..100_000).chain([1 << 20, u32::MAX]) {
            let bucket = bucket(count);
            assert!(
                edge(bucket) <= f64::from(count) && f64::from(count) < edge(bucket + 1),
                "{count} {bucket}"
            );
        }
    }
}
