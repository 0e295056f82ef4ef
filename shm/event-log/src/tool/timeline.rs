//! Turning ticks of the processor's counter into ns of `CLOCK_MONOTONIC`.
//!
//! Each process and each chunk brings a pair: one moment by both clocks. The tool adds one when it makes the file and
//! one when it reads it. Between two pairs the clock is taken to run evenly, which it does but for the kernel's
//! adjustments, of at most 500 parts in a million.

use std::vec::Vec;

use heaptoll_clock::Pair;

/// Pairs nearer than this say more about the time it takes to read both clocks than about their rates.
const APART_NS: u64 = 10_000_000;

/// Pairs in order, far enough apart.
#[derive(Debug, Clone)]
pub struct Timeline {
    pairs: Vec<Pair>,
}

impl Timeline {
    /// From pairs in any order. Of a pair that contradicts those before it (ticks go on, the clock goes back) nothing
    /// is taken.
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
        // The end is as good as any other place, and what lies behind it is reckoned from there.
        if let Some(latest) = latest
            && kept.last() != Some(&latest)
        {
            if kept.len() > 1 {
                kept.pop();
            }
            kept.push(latest);
        }
        Timeline { pairs: kept }
    }

    /// The ns at these ticks, never less than at fewer. Without two moments there is no rate: then all is one moment.
    pub fn ns(&self, ticks: u64) -> u64 {
        if self.pairs.len() < 2 {
            return self.pairs.first().map_or(0, |pair| pair.ns);
        }
        let after = self.pairs.partition_point(|pair| pair.ticks <= ticks).clamp(1, self.pairs.len() - 1);
        let (from, to) = (self.pairs[after - 1], self.pairs[after]);
        let elapsed = i128::from(ticks) - i128::from(from.ticks);
        // Any figure may stand in a file that processes share.
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
        fn ns_follow_ticks_and_pairs_are_met(
            steps in prop::collection::vec((1u64..100_000_000, 1u64..100_000_000), 2..40),
            asked in prop::collection::vec(0u64..4_000_000_000, 0..40),
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
            let mut asked = asked;
            asked.sort_unstable();
            let ns: Vec<u64> = asked.iter().map(|&ticks| line.ns(ticks)).collect();
            prop_assert!(ns.is_sorted());
        }

        #[test]
        fn an_even_clock_is_read_off_anywhere(
            moments in prop::collection::vec(0u64..1_000_000_000_000, 2..40),
            ticks in 0u64..1_000_000_000_000,
        ) {
            // 2.5 ticks a ns.
            let ns_at = |ticks: u64| 7_000_000_000 + ticks * 2 / 5;
            let pairs: Vec<Pair> = moments.iter().map(|&ticks| Pair { ticks, ns: ns_at(ticks) }).collect();
            let mut apart = moments.clone();
            apart.sort_unstable();
            prop_assume!(apart[apart.len() - 1] - apart[0] > 500_000_000_000);
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
    fn pairs_that_contradict_are_left_out_and_one_moment_has_no_rate() {
        let pair = |ticks, ns| Pair { ticks, ns };
        let line = Timeline::new([pair(10, 100), pair(20, 90), pair(10, 300), pair(30, 120)].to_vec());
        assert_eq!((line.ns(10), line.ns(20), line.ns(30), line.ns(40)), (100, 110, 120, 130));
        assert_eq!(Timeline::new([pair(10, 100)].to_vec()).ns(999), 100);
        assert_eq!(Timeline::new(Vec::new()).ns(999), 0);
    }
}
