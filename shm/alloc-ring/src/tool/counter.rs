//! Counters in shared memory, sampled: an implausible value, which a corrupted program has written, is not taken over.

/// A counter that only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SampledCounter {
    value: u32,
    damaged: bool,
}

/// A counter grows by no more than this from sample to sample: Linux has fewer process numbers.
const MOST: u32 = 1 << 22;

impl SampledCounter {
    /// Takes over the counter's value, if it is plausible.
    pub fn sample(&mut self, now: u32) {
        let before = self.value;
        match now.checked_sub(self.value) {
            Some(more) if more <= MOST => self.value = now,
            _ => self.damaged = true,
        }
        heaptoll_assertions::assert_internal!(self.value >= before, "a sampled counter does not decrease");
    }

    /// The last plausible value.
    pub fn value(self) -> u32 {
        self.value
    }

    /// Whether an implausible value was sampled: the counter was overwritten.
    pub fn is_damaged(self) -> bool {
        self.damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_leaps_or_shrinks_keeps_its_last_value() {
        for corrupted in [u32::MAX, MOST + 8, 6] {
            let mut sampled = SampledCounter::default();
            sampled.sample(7);
            assert!(!sampled.is_damaged());
            sampled.sample(corrupted);
            assert_eq!((sampled.value(), sampled.is_damaged()), (7, true), "{corrupted}");
        }
    }
}
