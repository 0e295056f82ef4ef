//! How far a manager had to search: the cost that sets the searching allocators apart (Zorn 1992 §2.1).

use heaptoll_assertions::assert_internal;

/// Lengths of searches through a free structure, in blocks visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Searches made.
    pub searches: u64,
    /// Blocks visited in all of them.
    pub steps: u64,
    /// Blocks visited in the longest.
    pub longest: u64,
}

impl Search {
    /// None made yet.
    pub const fn new() -> Search {
        Search { searches: 0, steps: 0, longest: 0 }
    }

    /// Counts one search that visited `steps` blocks.
    #[inline(always)]
    pub fn record(&mut self, steps: u64) {
        self.searches += 1;
        self.steps += steps;
        self.longest = self.longest.max(steps);
        assert_internal!(self.longest <= self.steps, "the longest search is one of those that are added up");
    }
}

impl Default for Search {
    fn default() -> Search {
        Search::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_sum_and_longest() {
        let mut search = Search::new();
        [3, 9, 0].into_iter().for_each(|steps| search.record(steps));
        assert_eq!(search, Search { searches: 3, steps: 12, longest: 9 });
    }
}
