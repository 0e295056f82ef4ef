//! The table of an analysis, with an entry for each live object: a plain array, since objects are named by slots that
//! are reused.

/// Largest size and usable size that are distinguished, bytes: 2^48 - 1. No process can map more, and it lets a size
/// share a word with flags.
pub const MAX_SIZE: u64 = (1 << 48) - 1;

/// Entries by slot.
#[derive(Debug, Clone, Default)]
pub struct Slots<T> {
    entries: Vec<T>,
}

impl<T: Copy + Default> Slots<T> {
    /// The entry of a slot that an allocation names: the table grows to it.
    #[inline(always)]
    pub fn claim(&mut self, slot: u32) -> &mut T {
        let index = slot as usize;
        if index >= self.entries.len() {
            self.grow(index);
        }
        &mut self.entries[index]
    }

    /// The entry of a slot that must exist already; none in a damaged trace.
    #[inline(always)]
    pub fn get(&mut self, slot: u32) -> Option<&mut T> {
        self.entries.get_mut(slot as usize)
    }

    /// All entries there ever were, in order of slots.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.iter()
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.entries.resize(index + 1, T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_claimed_in_any_order_and_only_claimed_ones_are_found() {
        let mut slots = Slots::<u32>::default();
        assert!(slots.get(0).is_none());
        *slots.claim(3) = 7;
        *slots.claim(1) = 5;
        assert_eq!(slots.iter().copied().collect::<Vec<_>>(), [0, 5, 0, 7]);
        assert!(slots.get(4).is_none());
    }
}
