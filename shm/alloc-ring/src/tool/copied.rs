//! Shared counters, copied at each look: what a program that has run wild writes into one becomes no sum.

/// A counter that only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Copied {
    value: u32,
    damaged: bool,
}

/// A counter grows by no more from look to look: Linux has not so many process numbers.
const MOST: u32 = 1 << 22;

impl Copied {
    /// Takes over what the counter shows, if it can be true.
    pub fn look(&mut self, now: u32) {
        match now.checked_sub(self.value) {
            Some(more) if more <= MOST => self.value = now,
            _ => self.damaged = true,
        }
    }

    /// The last value that could be true.
    pub fn value(self) -> u32 {
        self.value
    }

    /// Whether another was seen since: somebody has written over the counter.
    pub fn is_damaged(self) -> bool {
        self.damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_leaps_or_shrinks_keeps_its_last_value() {
        for wild in [u32::MAX, MOST + 8, 6] {
            let mut copied = Copied::default();
            copied.look(7);
            assert!(!copied.is_damaged());
            copied.look(wild);
            assert_eq!((copied.value(), copied.is_damaged()), (7, true), "{wild}");
        }
    }
}
