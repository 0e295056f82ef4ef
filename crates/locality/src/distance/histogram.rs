//! Counts of all distances: memory for the longest one, four bytes each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Distances that [`Histogram::below`] sums at once.
const BLOCK: usize = 1024;

/// Counts of 0, 1, 2... The overflow of a count of 32 bits is carried into a map, so that counts have 64 bits and most
/// of them take four bytes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Histogram {
    counts: Vec<u32>,
    carries: BTreeMap<usize, u64>,
    /// Sums of all counts before each block, once [`Histogram::seal`] was called.
    sums: Vec<u64>,
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Histogram {
    /// Counts one.
    #[inline(always)]
    pub fn count(&mut self, distance: u32) {
        if let Some(count) = self.counts.get_mut(distance as usize) {
            *count = count.wrapping_add(1);
            if *count == 0 {
                self.carry(distance as usize, 1 << 32);
            }
        } else {
            self.grow(distance as usize);
            self.counts[distance as usize] += 1;
        }
    }

    /// Counts several of one distance.
    pub fn add(&mut self, distance: u32, times: u64) {
        let distance = distance as usize;
        if times == 0 {
            return;
        }
        if distance >= self.counts.len() {
            self.grow(distance);
        }
        let sum = u64::from(self.counts[distance]) + (times & 0xffff_ffff);
        self.counts[distance] = sum as u32;
        let over = (sum >> 32 << 32) + (times >> 32 << 32);
        if over > 0 {
            self.carry(distance, over);
        }
    }

    #[cold]
    fn carry(&mut self, distance: usize, over: u64) {
        *self.carries.entry(distance).or_default() += over;
    }

    #[cold]
    fn grow(&mut self, distance: usize) {
        // An eighth more than needed, and not twice as much, since most of it will never be touched.
        let wanted = distance + distance / 8 + 64;
        self.counts.reserve_exact(wanted - self.counts.len());
        self.counts.resize(wanted, 0);
    }

    /// The count of a distance.
    pub fn get(&self, distance: u64) -> u64 {
        let Some(count) = usize::try_from(distance).ok().and_then(|distance| self.counts.get(distance))
        else {
            return 0;
        };
        u64::from(*count) + self.carries.get(&(distance as usize)).copied().unwrap_or(0)
    }

    /// Ends counting: prepares sums.
    pub fn seal(&mut self) {
        while self.counts.last() == Some(&0) && !self.carries.contains_key(&(self.counts.len() - 1)) {
            self.counts.pop();
        }
        self.counts.shrink_to_fit();
        self.sums.clear();
        let mut sum = 0;
        for block in self.counts.chunks(BLOCK) {
            self.sums.push(sum);
            sum += block.iter().map(|&count| u64::from(count)).sum::<u64>();
        }
        self.sums.push(sum);
    }

    /// The number of shorter distances. Fast once sealed.
    pub fn below(&self, distance: u64) -> u64 {
        let end = usize::try_from(distance).unwrap_or(usize::MAX).min(self.counts.len());
        let (sum, from) = match self.sums.get(end / BLOCK) {
            Some(&sum) => (sum, end / BLOCK * BLOCK),
            None => (0, 0),
        };
        let rest: u64 = self.counts[from..end].iter().map(|&count| u64::from(count)).sum();
        sum + rest + self.carries.range(..end).map(|(_, &over)| over).sum::<u64>()
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.below(u64::MAX)
    }

    /// Distances that occurred and their counts, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..self.counts.len() as u64)
            .map(|distance| (distance, self.get(distance)))
            .filter(|&(_, count)| count > 0)
    }

    /// Memory of the histogram, bytes.
    pub fn bytes(&self) -> u64 {
        (self.counts.capacity() * 4 + self.sums.capacity() * 8 + self.carries.len() * 32) as u64
    }
}

impl From<Vec<(u64, u64)>> for Histogram {
    fn from(pairs: Vec<(u64, u64)>) -> Histogram {
        let mut histogram = Histogram::default();
        for (distance, count) in pairs {
            if let Ok(distance) = u32::try_from(distance) {
                histogram.add(distance, count);
            }
        }
        histogram.seal();
        histogram
    }
}

impl From<Histogram> for Vec<(u64, u64)> {
    fn from(histogram: Histogram) -> Vec<(u64, u64)> {
        histogram.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_more_than_32_bits_are_kept() {
        let mut histogram = Histogram::default();
        histogram.add(3, u64::from(u32::MAX));
        histogram.count(3);
        histogram.count(3);
        histogram.add(7, (5 << 32) + 2);
        assert_eq!((histogram.get(3), histogram.get(7)), ((1 << 32) + 1, (5 << 32) + 2));
        assert_eq!(histogram.below(4), (1 << 32) + 1);
        histogram.seal();
        assert_eq!(histogram.total(), (6 << 32) + 3);
        assert_eq!(Histogram::from(Vec::from(histogram.clone())), histogram);
    }

    #[test]
    fn sums_are_those_of_the_counts_before_and_after_sealing() {
        let mut histogram = Histogram::default();
        for distance in (0..5000_u32).step_by(7) {
            histogram.add(distance, u64::from(distance % 5) + 1);
        }
        let naive =
            |end: u64| histogram.iter().filter(|(distance, _)| *distance < end).map(|(_, c)| c).sum::<u64>();
        let mut sealed = histogram.clone();
        sealed.seal();
        for end in [0, 1, 7, 8, 1023, 1024, 1025, 2048, 4999, 5000, 9999, u64::MAX] {
            assert_eq!((histogram.below(end), sealed.below(end)), (naive(end), naive(end)), "{end}");
        }
    }
}
