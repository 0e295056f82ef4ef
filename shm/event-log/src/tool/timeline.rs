//! Converts ticks of the processor's counter into ns of `CLOCK_MONOTONIC`.
//!
//! Each process and each chunk records a pair: one instant by both clocks. The tool adds one when it makes the file and
//! one when it reads it. Between two pairs the clock is assumed to run evenly, which it does except for the kernel's
//! adjustments, of at most 500 parts in a million.

use std::vec::Vec;

use heaptoll_assertions::{assert_expensive, assert_internal};
use heaptoll_process::tsc::Pair;

/// Pairs nearer than this depend more on the time it takes to read both clocks than on their rates.
const APART_NS: u64 = 10_000_000;

/// Pairs in order, far enough apart.
#[derive(Debug, Clone)]
pub struct Timeline {
    pairs: Vec<Pair>,
}

impl Timeline {
    /// From pairs in any order. A pair that contradicts those before it (ticks increase, the clock decreases) is
    /// ignored.
    pub fn new(mut pairs: Vec<Pair>) -> Timeline {
        pairs.sort_by_key(|pair| pair.ticks);
        let mut kept: Vec<Pair> = Vec::new();
        let mut latest = None;
        for pair in pairs {
            match latest {
                Some(Pair { ticks, ns }) if pair.ticks <= ticks || pair.ns <= ns => continue,
                _ => latest = Some(pair),
            }
            if kept.last().is_none_or(|last| pair.ns - last.ns >= APART_NS) {
                kept.push(pair);
            }
        }
        // The last pair is kept in any case: later ticks are extrapolated from there.
        if let Some(latest) = latest
            && kept.last() != Some(&latest)
        {
            if kept.len() > 1 {
                kept.pop();
            }
            kept.push(latest);
        }
        assert_expensive!(
            kept.is_sorted_by(|one, next| one.ticks < next.ticks && one.ns < next.ns),
            "both clocks advance from pair to pair"
        );
        Timeline { pairs: kept }
    }

    /// The ns at these ticks, never less than at fewer ticks. Without two pairs there is no rate: then all ticks are
    /// one instant.
    pub fn ns(&self, ticks: u64) -> u64 {
        if self.pairs.len() < 2 {
            return self.pairs.first().map_or(0, |pair| pair.ns);
        }
        let after = self.pairs.partition_point(|pair| pair.ticks <= ticks).clamp(1, self.pairs.len() - 1);
        let (from, to) = (self.pairs[after - 1], self.pairs[after]);
        assert_internal!(after == 1 || from.ticks <= ticks, "ticks are converted by the pairs around them");
        let elapsed = i128::from(ticks) - i128::from(from.ticks);
        // A file that processes share may hold any figure.
        let passed = elapsed.saturating_mul(i128::from(to.ns - from.ns)) / i128::from(to.ticks - from.ticks);
        let ns = i128::from(from.ns).saturating_add(passed);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ns_increase_with_ticks_and_pairs_are_exact(
            steps in prop::collection::vec((1u64..100_000_000, 1u64..100_000_000), 2..40),
            queries in prop::collection::vec(0u64..4_000_000_000, 0..40),
        ) {
            let mut pair = Pair { ticks: 1000, ns: 5_000_000_000 };
            let pairs: Vec<Pair> = steps.iter().map(|&(ticks, ns)| {
                pair = Pair { ticks: pair.ticks + ticks, ns: pair.ns + ns };
                pair
            }).collect();
            let line = Timeline::new(pairs.clone());
            for end in [pairs[0], pairs[pairs.len() - 1]] {
                prop_assert_eq!(line.ns(end.ticks), end.ns);
            }
            let mut queries = queries;
            queries.sort_unstable();
            let ns: Vec<u64> = queries.iter().map(|&ticks| line.ns(ticks)).collect();
            prop_assert!(ns.is_sorted());
        }

        #[test]
        fn an_even_clock_is_interpolated_anywhere(
            instants in prop::collection::vec(0u64..1_000_000_000_000, 2..40),
            ticks in 0u64..1_000_000_000_000,
        ) {
            // 2.5 ticks per ns.
            let ns_at = |ticks: u64| 7_000_000_000 + ticks * 2 / 5;
            let pairs: Vec<Pair> = instants.iter().map(|&ticks| Pair { ticks, ns: ns_at(ticks) }).collect();
            let mut sorted = instants.clone();
            sorted.sort_unstable();
            prop_assume!(sorted[sorted.len() - 1] - sorted[0] > 500_000_000_000);
            let line = Timeline::new(pairs);
            let error = line.ns(ticks).abs_diff(ns_at(ticks));
            // Rounding to whole ns at two pairs that are 10 ms or more apart, over 400 s.
            prop_assert!(error <= 100_000, "{error}");
        }
    }

    #[test]
    fn pairs_that_no_clock_gives_do_no_harm() {
        let most = u64::MAX;
        for (first, last) in [((0, 0), (1, most)), ((0, 0), (most, most)), ((most - 1, 0), (most, most))] {
            let pair = |(ticks, ns)| Pair { ticks, ns };
            let line = Timeline::new([pair(first), pair(last)].to_vec());
            assert!([0, 1, most / 2, most].map(|ticks| line.ns(ticks)).is_sorted(), "{first:?} {last:?}");
        }
    }

    #[test]
    fn pairs_that_contradict_are_ignored_and_one_instant_has_no_rate() {
        let pair = |ticks, ns| Pair { ticks, ns };
        let line = Timeline::new([pair(10, 100), pair(20, 90), pair(10, 300), pair(30, 120)].to_vec());
        assert_eq!((line.ns(10), line.ns(20), line.ns(30), line.ns(40)), (100, 110, 120, 130));
        assert_eq!(Timeline::new([pair(10, 100)].to_vec()).ns(999), 100);
        assert_eq!(Timeline::new(Vec::new()).ns(999), 0);
    }
}
