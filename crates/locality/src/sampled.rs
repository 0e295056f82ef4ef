//! Long distances, of a sample of the lines: SHARDS (Waldspurger et al., FAST 2015), with an interval from the data.
//!
//! A line is followed when a hash of it says so, one in 2^shift. The most recent lines are kept all, so distances up to
//! the *seam* are exact; of a reference beyond it to a followed line, the followed lines between are counted. How many
//! references there are beyond the seam, and how many are cold, is known exactly for every size, so that only their
//! *shares* beyond larger sizes are estimated. (SHARDS-adj, section 3.4 there, corrects the sampled number of references to
//! the expected one; here the exact number stands in place of the expected one.)
//!
//! The interval has two parts, each allowed to fail in 2.5 of 100 cases (Bonferroni), so that it holds in 95:
//!
//! - *Which lines were taken.* The hash also puts each followed line into one of [`GROUPS`] disjoint groups. The spread of
//!   the share from group to group gives its standard error (the ratio estimator of random groups), and Student's t the
//!   width. Lines that were not taken can be unlike all that were: so what a share can hide when it is 0 among so many
//!   lines is added; or, when it is more, by how much the references a followed line differ from those a line, of which
//!   both are known. (A hundred lines with many references may all be missed; that shows there, and only there.)
//! - *How long a counted distance is.* Of t lines between, a binomial number is followed. So a size of T lines beyond the
//!   seam is compared with the largest and smallest counts that T lines give.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::distance::TOP;
use crate::distance::curve::{Estimate, Misses};
use crate::simulation::{Maker, Sampling, Split};

/// Disjoint groups of followed lines.
pub const GROUPS: usize = 32;
/// Two-sided 97.5 % of the normal distribution,
const NORMAL: f64 = 2.2414;
/// and of Student's t with `GROUPS - 1` degrees of freedom.
const STUDENT: f64 = 2.356;
/// Fewer groups than this with any reference say nothing.
const FEWEST_GROUPS: usize = 8;

/// Counts up to this have a bucket each,
const FINE: u32 = 64;
/// beyond, each doubling has so many.
const PER_OCTAVE: u32 = 32;

/// Which bucket a count of followed lines falls into.
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
    /// References at or beyond the seam that are not cold; all of them.
    beyond: Split<u64>,
    /// Of the followed lines, how many references beyond the seam each had, as the number of lines that would have given
    /// as certain a figure if all had the same (Kish).
    lines: Split<f64>,
    /// The same for all makers together.
    lines_of_all: f64,
    /// How much more or fewer references a followed line has than a line, as a share,
    unlike: Split<f64>,
    /// and with all makers together.
    unlike_all: f64,
    /// By group and maker, references to followed lines by bucket.
    followed: Vec<Split<Vec<u64>>>,
}

impl Tail {
    /// Of caches of more than `seam` lines, of which one in two to the power `shift` is followed.
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

    /// The most lines that a cache has for which misses are exact.
    pub fn seam(&self) -> u64 {
        self.seam
    }

    /// One in two to this power is followed.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// References at or beyond the seam that are not cold.
    pub fn beyond(&self) -> &Split<u64> {
        &self.beyond
    }

    fn bytes(&self) -> u64 {
        let counts = |group: &Split<Vec<u64>>| {
            Maker::ALL.iter().map(|&maker| group.get(maker).capacity() as u64 * 8).sum::<u64>()
        };
        self.followed.iter().map(counts).sum()
    }

    /// Counts a reference beyond the seam to a line that is not followed, or is.
    pub(crate) fn pass(&mut self, maker: Maker) {
        *self.beyond.get_mut(maker) += 1;
    }

    /// Counts how many followed lines were between the touches of a followed line.
    pub(crate) fn follow(&mut self, maker: Maker, group: usize, between: u32) {
        let counts = self.followed[group].get_mut(maker);
        let bucket = bucket(between);
        if bucket >= counts.len() {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1;
    }

    /// Says how many references beyond the seam each followed line had that had any, of each maker, and how many of how
    /// many lines were followed.
    fn weigh<'a>(&mut self, lines: impl Iterator<Item = &'a Split<u32>>, followed: u64, of: u64) {
        let mut moments = [(0_u128, 0_u128); Maker::COUNT + 1];
        for line in lines {
            let all = Maker::ALL.iter().map(|&maker| u128::from(*line.get(maker))).sum();
            let of_makers = Maker::ALL.iter().map(|&maker| u128::from(*line.get(maker)));
            for (moment, references) in moments.iter_mut().zip(of_makers.chain([all])) {
                moment.0 += references;
                moment.1 += references * references;
            }
        }
        let effective = |(sum, squares): (u128, u128)| {
            if squares == 0 { 0.0 } else { (sum as f64).powi(2) / squares as f64 }
        };
        self.lines = Split::of(|maker| effective(moments[maker as usize]));
        self.lines_of_all = effective(moments[Maker::COUNT]);
        let unlike = |sum: u128, beyond: u64| {
            let expected = beyond as f64 * followed as f64 / of.max(1) as f64;
            // Lines of which none is followed are so many in 97.5 of 100 cases, and count as lines too.
            let unseen = -0.025_f64.ln() / followed.max(1) as f64;
            if expected > 0.0 { ((sum as f64 / expected - 1.0).abs() + unseen).min(1.0) } else { 1.0 }
        };
        self.unlike = Split::of(|maker| unlike(moments[maker as usize].0, *self.beyond.get(maker)));
        self.unlike_all = unlike(moments[Maker::COUNT].0, self.beyond.total());
    }

    /// Misses in a cache of more lines than the seam.
    pub(crate) fn misses(&self, entries: u64, cold: &Split<u64>, distinct: u64) -> Misses {
        // In a cache that holds all lines only cold references miss.
        let over = if entries >= distinct { None } else { Some((entries - self.seam) as f64) };
        let one = |makers: &[Maker], lines: f64, unlike: f64| {
            let sum = |split: &Split<u64>| makers.iter().map(|&maker| *split.get(maker)).sum::<u64>();
            let (cold, beyond) = (sum(cold), sum(&self.beyond));
            let Some(over) = over else { return Estimate::exact(cold) };
            let share = self.share(makers, over, lines, unlike);
            let of = |share: f64| cold + (share * beyond as f64).round() as u64;
            Estimate { value: of(share.value), low: of(share.low), high: of(share.high).min(cold + beyond) }
        };
        Misses {
            by: Split::of(|maker| one(&[maker], *self.lines.get(maker), *self.unlike.get(maker))),
            total: one(&Maker::ALL, self.lines_of_all, self.unlike_all),
        }
    }

    /// Of the references beyond the seam, the share beyond `over` lines more.
    fn share(&self, makers: &[Maker], over: f64, lines: f64, unlike: f64) -> Share {
        let rate = (-f64::from(self.shift)).exp2();
        let expected = over * rate;
        let spread = NORMAL * (expected * (1.0 - rate)).sqrt();
        // Bernstein's bounds: the binomial is skewed where few are expected.
        let (fewest, most) = ((expected - spread).max(0.0), expected + spread + NORMAL * NORMAL / 3.0);
        let (value, _) = self.ratio(makers, |bucket| weight(bucket, expected));
        let (high, above) = self.ratio(makers, |bucket| if edge(bucket + 1) > fewest { 1.0 } else { 0.0 });
        let (low, below) = self.ratio(makers, |bucket| if edge(bucket) >= most { 1.0 } else { 0.0 });
        let hidden = (STUDENT * STUDENT * (1.0 - rate) / lines.max(1.0)).max(unlike);
        let width = (1.0 - rate).sqrt() * STUDENT;
        let high = (high + above * width + hidden * (1.0 - high)).min(1.0);
        let low = (low - below * width - hidden * low).max(0.0);
        Share { value: value.clamp(low, high), low, high }
    }

    /// Share of references whose bucket has a weight, and its standard error from the spread of groups.
    fn ratio(&self, makers: &[Maker], weight: impl Fn(usize) -> f64) -> (f64, f64) {
        let groups: Vec<(f64, f64)> = self
            .followed
            .iter()
            .map(|group| {
                let mut sums = (0.0, 0.0);
                for &maker in makers {
                    for (bucket, &count) in
                        group.get(maker).iter().enumerate().filter(|(_, count)| **count > 0)
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

/// Which entries are followed beyond the seam, and what was seen of them.
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
    /// Slots from here on are of the entries that are kept all.
    pub(crate) boundary: usize,
    /// How many these are,
    pub(crate) recent: u32,
    /// and at most.
    pub(crate) most: u32,
    /// Of the first line of this reference that lies beyond the seam: the entry and how many followed ones are between,
    /// if it is followed.
    pub(crate) found: Option<Option<(u32, u32)>>,
}

impl Following {
    /// As asked; `slots` is how many slots there are at first.
    pub fn new(sampling: Sampling, slots: usize) -> Following {
        let exact = sampling.exact_lines.max(TOP as u32);
        Following {
            shift: sampling.shift,
            seed: sampling.seed,
            tail: Tail::new(u64::from(exact), sampling.shift),
            references: HashMap::new(),
            followed: 0,
            marks: vec![0; slots / 64],
            boundary: 0,
            recent: 0,
            most: exact - TOP as u32,
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

    /// An entry was touched for the first time.
    #[inline(always)]
    pub(crate) fn begin(&mut self, entry: u32) {
        self.followed += u64::from(self.follows(entry));
    }

    /// Counts a reference beyond the seam.
    pub(crate) fn record(&mut self, maker: Maker, found: Option<(u32, u32)>) {
        self.tail.pass(maker);
        if let Some((entry, between)) = found {
            self.tail.follow(maker, self.hash(entry) as usize % GROUPS, between);
            let references = self.references.entry(entry).or_default().get_mut(maker);
            *references = references.saturating_add(1);
        }
    }

    /// All that was seen.
    pub(crate) fn tail(mut self, distinct: u64) -> Tail {
        self.tail.weigh(self.references.values(), self.followed, distinct);
        self.tail
    }

    /// Bytes it takes.
    pub fn bytes(&self) -> u64 {
        (self.references.capacity() * 25 + self.marks.len() * 8) as u64 + self.tail.bytes()
    }
}

struct Share {
    value: f64,
    low: f64,
    high: f64,
}

/// Which part of a bucket lies at or above a threshold when it is spread evenly to the next one.
fn weight(bucket: usize, threshold: f64) -> f64 {
    let (low, high) = (edge(bucket), edge(bucket + 1));
    ((high - threshold) / (high - low)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::Distances;

    /// Of many seeds, how many intervals hold the truth, for all sizes of a stream beyond the seam.
    fn inside(stream: impl Iterator<Item = u32> + Clone, sampling: Sampling, seeds: u64) -> f64 {
        let curve = |mut distances: Distances| {
            for entry in stream.clone() {
                let distance = distances.touch(entry);
                distances.record(Maker::Program, distance);
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

    /// A few lines with many references each, none of which may be followed: the spread of groups is 0 then.
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
