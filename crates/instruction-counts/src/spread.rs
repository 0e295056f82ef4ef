//! A distribution of costs over calls: every cost by itself up to 4095, above in buckets of 1/256 of their value.
//!
//! Percentiles of costs below 4096 are exact. One above is the upper end of its bucket (or the largest cost, where that
//! is in the bucket), less than 0.4 % too high. The number of calls and the largest cost are always exact. At most 4096
//! + 52 x 256 counters, allocated on demand.

use std::collections::BTreeMap;

/// Costs below are counted one by one.
const EXACT: u64 = 4096;
/// Binary logarithm of the buckets of a doubling above.
const STEPS: u32 = 8;

/// A distribution of costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spread {
    low: Vec<u64>,
    high: BTreeMap<u32, u64>,
    calls: u64,
    max: u64,
}

/// Number of the bucket of a cost.
fn bucket(cost: u64) -> u32 {
    let power = cost.ilog2();
    (power << STEPS) | ((cost >> (power - STEPS)) & ((1 << STEPS) - 1)) as u32
}

fn bucket_end(bucket: u32) -> u64 {
    let (power, step) = (bucket >> STEPS, u64::from(bucket & ((1 << STEPS) - 1)));
    let width = 1u64 << (power - STEPS);
    (1u64 << power) + step * width + (width - 1)
}

impl Spread {
    /// Counts a call.
    pub fn add(&mut self, cost: u64) {
        self.calls += 1;
        self.max = self.max.max(cost);
        if cost < EXACT {
            let index = cost as usize;
            if index >= self.low.len() {
                self.low.resize((index + 1).next_power_of_two(), 0);
            }
            self.low[index] += 1;
        } else {
            *self.high.entry(bucket(cost)).or_default() += 1;
        }
    }

    /// Adds the calls of another.
    pub fn merge(&mut self, other: &Spread) {
        if other.low.len() > self.low.len() {
            self.low.resize(other.low.len(), 0);
        }
        for (mine, theirs) in self.low.iter_mut().zip(&other.low) {
            *mine += theirs;
        }
        for (bucket, calls) in &other.high {
            *self.high.entry(*bucket).or_default() += calls;
        }
        self.calls += other.calls;
        self.max = self.max.max(other.max);
    }

    /// Calls counted.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The largest cost; 0 without calls.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The smallest cost that at least `percent` of a hundred calls do not exceed (nearest rank); 0 without calls.
    pub fn percentile(&self, percent: u64) -> u64 {
        let rank = (u128::from(self.calls) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0u128;
        for (cost, calls) in self.low.iter().enumerate() {
            seen += u128::from(*calls);
            if seen >= rank {
                return cost as u64;
            }
        }
        for (bucket, calls) in &self.high {
            seen += u128::from(*calls);
            if seen >= rank {
                return bucket_end(*bucket).min(self.max);
            }
        }
        self.max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_has_no_percentiles() {
        let none = Spread::default();
        assert_eq!((none.percentile(50), none.max(), none.calls()), (0, 0, 0));
    }

    #[test]
    fn buckets_touch_one_another() {
        assert_eq!(bucket_end(bucket(4096)), 4111);
        assert_eq!(bucket(4112), bucket(4111) + 1);
        assert_eq!(bucket_end(bucket(u64::MAX)), u64::MAX);
    }

    fn costs() -> impl Strategy<Value = Vec<u64>> {
        let cost =
            prop_oneof![0u64..300, 0u64..5000, (0u32..64, any::<u64>()).prop_map(|(by, bits)| bits >> by)];
        proptest::collection::vec(cost, 1..300)
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_the_sorted_costs(first in costs(), second in costs(), percent in 1u64..=100) {
            let (mut spread, mut other) = (Spread::default(), Spread::default());
            first.iter().for_each(|cost| spread.add(*cost));
            second.iter().for_each(|cost| other.add(*cost));
            spread.merge(&other);
            let mut sorted: Vec<u64> = first.into_iter().chain(second).collect();
            sorted.sort_unstable();
            let rank = (sorted.len() * percent as usize).div_ceil(100);
            let exact = sorted[rank - 1];
            let reported = spread.percentile(percent);
            if exact < EXACT {
                prop_assert_eq!(reported, exact);
            } else {
                prop_assert!(reported >= exact && reported - exact <= exact / 256, "{} for {}", reported, exact);
            }
            prop_assert_eq!((spread.calls(), spread.max()), (sorted.len() as u64, sorted[sorted.len() - 1]));
        }
    }
}
