//! How many runs the search takes, and how it spends them: a tenth of those of a full search, which is all candidates
//! in as many repetitions as the fresh runs. Each round has an equal part of what is left, and no candidate is let go on
//! a single run.

/// The search takes one in this many runs of a full search.
const SHARE: u64 = 10;
/// Of this many candidates of a round, one goes on.
const DROPPED: usize = 3;
/// Fewest repetitions of a candidate.
const FEWEST: u32 = 2;

/// The runs that are left, and the repetitions that were made.
#[derive(Debug, Clone)]
pub struct Schedule {
    finalists: usize,
    runs_left: u64,
    most: u32,
    made: u32,
}

impl Schedule {
    /// For these candidates besides the baseline; the finalists are measured afresh in these repetitions.
    pub fn new(candidates: usize, finalists: usize, repetitions: u32) -> Schedule {
        let full = (candidates as u64 + 1) * u64::from(repetitions);
        Schedule { finalists, runs_left: full / SHARE, most: repetitions, made: 0 }
    }

    /// How many of a round's candidates go on.
    pub fn kept(&self, candidates: usize) -> usize {
        candidates.div_ceil(DROPPED).max(self.finalists).min(candidates)
    }

    /// Repetitions of the next round, for this number of candidates and the baseline.
    pub fn next(&mut self, candidates: usize) -> u32 {
        let stacks = candidates as u64 + 1;
        let each = self.runs_left / self.rounds(candidates) / stacks;
        let least = FEWEST.saturating_sub(self.made).max(1);
        let repetitions =
            u32::try_from(each).unwrap_or(u32::MAX).min(self.most.saturating_sub(self.made)).max(least);
        self.runs_left = self.runs_left.saturating_sub(stacks * u64::from(repetitions));
        self.made += repetitions;
        repetitions
    }

    /// Rounds until the finalists are left; one at least.
    fn rounds(&self, mut candidates: usize) -> u64 {
        let mut rounds = 1;
        while self.kept(candidates) > self.finalists {
            candidates = self.kept(candidates);
            rounds += 1;
        }
        rounds
    }

    /// The candidates and repetitions of each round from here on, where all of these work.
    pub fn plan(&self, mut candidates: usize) -> Vec<(usize, u32)> {
        let mut left = self.clone();
        let mut plan = Vec::new();
        for _ in 0..self.rounds(candidates) {
            plan.push((candidates, left.next(candidates)));
            candidates = left.kept(candidates);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The runs of each round.
    fn rounds(candidates: usize, repetitions: u32) -> Vec<(usize, u32)> {
        Schedule::new(candidates, 2, repetitions).plan(candidates)
    }

    #[test]
    fn thirty_candidates_take_an_eighth() {
        let found = rounds(30, 20);
        assert_eq!(found, [(30, 2), (10, 1), (4, 1)]);
        let runs: u32 =
            found.iter().map(|(candidates, repetitions)| (*candidates as u32 + 1) * repetitions).sum();
        assert_eq!((runs, 31 * 20), (78, 620));
    }

    proptest! {
        #[test]
        fn a_search_takes_a_tenth_or_the_fewest_runs_of_each_where_that_is_more(
            candidates in 3usize..200, repetitions in 2u32..200,
        ) {
            let found = rounds(candidates, repetitions);
            let runs: u64 = found.iter().map(|(left, each)| (*left as u64 + 1) * u64::from(*each)).sum();
            let fewest = [u64::from(FEWEST)].into_iter().chain(std::iter::repeat(1));
            let least: u64 = found.iter().zip(fewest).map(|((left, _), each)| (*left as u64 + 1) * each).sum();
            prop_assert!(runs <= ((candidates as u64 + 1) * u64::from(repetitions) / 10).max(least));
            prop_assert!(found[0].1 >= FEWEST && found.iter().all(|(_, each)| *each >= 1));
        }
    }
}
