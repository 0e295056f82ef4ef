//! Where a program begins to free what it has, before it ends.
//!
//! When `exit` begins, what `main` had in variables is freed already, so a structure that grew over the whole run is gone.
//! The *last frees* are the longest end of a run in which the program frees much more than it allocates. What was live
//! before them is judged in place of what was left.

/// In the last frees, live bytes fall by more than this for each byte that the program allocates.
const FREED_FOR_EACH: u64 = 64;

/// Follows a run whose end is not known yet, and finds where its last frees begin.
///
/// They begin where live bytes and `freed_for_each` times the bytes allocated had the largest sum: from there on to any
/// later point, live bytes fell by that many bytes for each that the program has allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastFrees {
    freed_for_each: u64,
    most: u128,
}

impl Default for LastFrees {
    fn default() -> LastFrees {
        LastFrees::new(FREED_FOR_EACH)
    }
}

impl LastFrees {
    /// In the last frees, live bytes fall by more than `freed_for_each` for each byte that the program allocates.
    pub fn new(freed_for_each: u64) -> LastFrees {
        LastFrees { freed_for_each, most: 0 }
    }

    /// Takes the bytes live and allocated until now. Returns whether the last frees begin here or later, if the run
    /// ends as it is now.
    #[inline]
    pub fn begin_after(&mut self, live_bytes: u64, clock_bytes: u64) -> bool {
        let sum = u128::from(live_bytes) + u128::from(self.freed_for_each) * u128::from(clock_bytes);
        let begin_after = sum >= self.most;
        self.most = self.most.max(sum);
        begin_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step after which the last frees begin, of steps that allocate (above 0) or free (below 0) bytes.
    fn begin(steps: &[i64]) -> usize {
        let (mut last, mut live, mut clock, mut at) = (LastFrees::default(), 0_i64, 0_u64, 0);
        for (step, bytes) in steps.iter().enumerate() {
            live += bytes;
            clock += bytes.max(&0).unsigned_abs();
            if last.begin_after(live.unsigned_abs(), clock) {
                at = step;
            }
        }
        at
    }

    #[test]
    fn what_is_freed_at_the_end_begins_there_though_a_little_is_allocated_meanwhile() {
        assert_eq!(begin(&[1000, 1000, -1000, -1000]), 1);
        assert_eq!(begin(&[1000, 1000, -1000, 10, -1000]), 1);
        assert_eq!(begin(&[1000, 1000, -1000, -1000, 10]), 1);
        assert_eq!(begin(&[1000, 1000]), 1, "nothing is freed");
    }

    #[test]
    fn what_is_freed_before_a_program_works_on_is_not_the_end() {
        assert_eq!(begin(&[1000, -1000, 1000, -1000]), 2);
        assert_eq!(begin(&[1000, 1000, -1000, 100, -1000]), 3);
        assert_eq!(begin(&[1000, -900, 1, -1, 1, 12, 3]), 6);
    }
}
