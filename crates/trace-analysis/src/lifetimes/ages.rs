//! How many objects reached which age, in bounded memory: a histogram with sixteen bins an octave, so that a bin is at
//! most 1/16 wide, and 1, 10 and 100 KiB (MiB, GiB) lie on borders of bins.
//!
//! Octaves are made when an age falls into them, since there are thousands of histograms (one a call site) and most
//! hold few octaves.

use heaptoll_callsites::Sum;

/// Bins of an octave.
const BINS: u64 = 16;
const BITS: u32 = BINS.trailing_zeros();
/// Octaves: one for ages below 16, and one for each power of two from there.
const OCTAVES: usize = 64 - BITS as usize + 1;
/// An octave that no age fell into.
const ABSENT: u8 = u8::MAX;

/// Ages of objects that ended.
#[derive(Debug, Clone)]
pub struct Ages {
    octaves: [u8; OCTAVES],
    bins: Vec<[Sum; BINS as usize]>,
}

/// Ages from `from` to below `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Smallest age.
    pub from: u64,
    /// First age that is too large; the largest number for the last bin.
    pub to: u64,
    /// Objects that ended at such an age.
    pub ended: Sum,
}

impl Default for Ages {
    fn default() -> Ages {
        Ages { octaves: [ABSENT; OCTAVES], bins: Vec::new() }
    }
}

impl Ages {
    /// An object of `bytes` bytes ended at this age.
    #[inline(always)]
    pub fn add(&mut self, age: u64, bytes: u64) {
        let (octave, bin) = bin_of(age);
        self.octave(octave)[bin].add(bytes);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Ages) {
        for (octave, &index) in other.octaves.iter().enumerate().filter(|(_, index)| **index != ABSENT) {
            let mine = self.octave(octave);
            for (mine, theirs) in mine.iter_mut().zip(&other.bins[index as usize]) {
                *mine = mine.plus(*theirs);
            }
        }
    }

    #[inline(always)]
    fn octave(&mut self, octave: usize) -> &mut [Sum; BINS as usize] {
        if self.octaves[octave] == ABSENT {
            self.open(octave);
        }
        &mut self.bins[self.octaves[octave] as usize]
    }

    #[cold]
    fn open(&mut self, octave: usize) {
        self.octaves[octave] = self.bins.len() as u8;
        self.bins.push([Sum::default(); BINS as usize]);
    }

    /// The bins that hold something, by rising age.
    pub fn bins(&self) -> impl Iterator<Item = Bin> {
        let present = self.octaves.iter().enumerate().filter(|(_, index)| **index != ABSENT);
        present.flat_map(|(octave, &index)| {
            let bins = self.bins[index as usize].iter().enumerate();
            bins.filter(|(_, sum)| sum.objects > 0).map(move |(bin, &ended)| {
                let (from, to) = borders(octave, bin as u64);
                Bin { from, to, ended }
            })
        })
    }

    /// All objects in it.
    pub fn all(&self) -> Sum {
        self.bins.iter().flatten().fold(Sum::default(), |sum, bin| sum.plus(*bin))
    }

    /// Objects that ended before this age. Exact where the age is a border of bins; otherwise the bin that it lies in
    /// is shared out evenly.
    pub fn younger_than(&self, age: u64) -> (f64, f64) {
        self.bins().take_while(|bin| bin.from < age).fold((0.0, 0.0), |(objects, bytes), bin| {
            let part = ((age - bin.from) as f64 / (bin.to - bin.from) as f64).min(1.0);
            (objects + bin.ended.objects as f64 * part, bytes + bin.ended.bytes as f64 * part)
        })
    }

    /// The age before which this many of `weight` (objects or bytes) had ended, to a bin's width; none when fewer
    /// ended.
    pub fn age_at(&self, amount: f64, weight: impl Fn(&Sum) -> u64) -> Option<u64> {
        let mut before = 0.0;
        for bin in self.bins() {
            let here = weight(&bin.ended) as f64;
            if before + here >= amount && here > 0.0 {
                let part = ((amount - before) / here).clamp(0.0, 1.0);
                return Some(bin.from.saturating_add(((bin.to - bin.from - 1) as f64 * part).round() as u64));
            }
            before += here;
        }
        None
    }
}

#[inline(always)]
fn bin_of(age: u64) -> (usize, usize) {
    // Ages from 8 to 15 are in the first octave, so that no age below 16 needs a case of its own.
    let octave = (u64::BITS - BITS) - (age | (BINS / 2)).leading_zeros();
    (octave as usize, ((age >> octave.saturating_sub(1)) & (BINS - 1)) as usize)
}

fn borders(octave: usize, bin: u64) -> (u64, u64) {
    if octave == 0 {
        return (bin, bin + 1);
    }
    let shift = octave as u32 - 1;
    let from = (BINS + bin) << shift;
    (from, from.saturating_add(1 << shift))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn some_ages() -> impl Iterator<Item = u64> {
        let near = |n: u32| [(1_u64 << n) - 1, 1 << n, (1 << n) + 1, (1 << n) + (1 << n) / 2];
        (0..100).chain((6..64).flat_map(near)).chain([u64::MAX])
    }

    #[test]
    fn every_age_lies_within_its_bin_and_bins_are_narrow() {
        for age in some_ages() {
            let (octave, bin) = bin_of(age);
            let (from, to) = borders(octave, bin as u64);
            assert!(from <= age && (age < to || to == u64::MAX), "{age} is not in {from}..{to}");
            assert!(to - from <= (from / BINS).max(1), "{from}..{to} is wide");
        }
    }

    #[test]
    fn ages_that_are_shown_in_tables_are_borders() {
        for unit in [1_u64 << 10, 1 << 20, 1 << 30] {
            for age in [unit, 10 * unit, 100 * unit] {
                let (octave, bin) = bin_of(age);
                assert_eq!(borders(octave, bin as u64).0, age);
                assert_ne!(bin_of(age - 1), (octave, bin));
            }
        }
    }

    #[test]
    fn shares_and_quantiles_of_few_objects() {
        let mut ages = Ages::default();
        for (age, bytes) in [(0, 10), (5, 10), (1024, 80), (1 << 40, 100)] {
            ages.add(age, bytes);
        }
        assert_eq!(ages.all(), Sum { objects: 4, bytes: 200 });
        assert_eq!(ages.younger_than(1024), (2.0, 20.0));
        assert_eq!(ages.younger_than(0), (0.0, 0.0));
        assert_eq!(ages.younger_than(u64::MAX), (4.0, 200.0));
        assert_eq!(ages.age_at(2.0, |sum| sum.objects), Some(5));
        let median = ages.age_at(100.0, |sum| sum.bytes).expect("half died");
        assert!((1024..1088).contains(&median), "{median}");
        assert_eq!(ages.age_at(5.0, |sum| sum.objects), None);
        let mut twice = ages.clone();
        twice.merge(&ages);
        assert_eq!((twice.all().objects, twice.younger_than(6).0), (8, 4.0));
    }

    proptest! {
        #[test]
        fn shares_at_borders_are_exact(ages in prop::collection::vec(0_u64..1 << 22, 0..200)) {
            let mut histogram = Ages::default();
            ages.iter().for_each(|&age| histogram.add(age, age));
            for border in [1 << 10, 10 << 10, 100 << 10, 1 << 20] {
                let younger: Vec<u64> = ages.iter().copied().filter(|&age| age < border).collect();
                let expected = (younger.len() as f64, younger.iter().sum::<u64>() as f64);
                prop_assert_eq!(histogram.younger_than(border), expected);
            }
        }
    }
}
