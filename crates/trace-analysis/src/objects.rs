//! The live objects of an analysis: a plain array, since objects are named by slots that are reused. Events of a damaged
//! trace that fit no object are counted.

/// Largest size and usable size that are distinguished, bytes: 2^48 - 1. No process can map more, and it lets a size
/// share a word with flags.
pub const MAX_SIZE: u64 = (1 << 48) - 1;

/// What an analysis keeps of an object. The default is no object.
pub trait Object: Copy + Default {
    /// Whether there is an object.
    fn is_alive(&self) -> bool;
}

/// The objects that are live.
#[derive(Debug, Clone, Default)]
pub struct Objects<T> {
    slots: Vec<T>,
    misfits: u64,
}

impl<T: Object> Objects<T> {
    /// An object is allocated. Returns the one that was in its slot, whose end is missing.
    #[inline(always)]
    pub fn born(&mut self, slot: u32, object: T) -> Option<T> {
        let index = slot as usize;
        if index >= self.slots.len() {
            self.grow(index);
        }
        let before = std::mem::replace(&mut self.slots[index], object);
        if !before.is_alive() {
            return None;
        }
        self.misfits += 1;
        Some(before)
    }

    /// An object is resized; none if its allocation is missing.
    #[inline(always)]
    pub fn resized(&mut self, slot: u32) -> Option<&mut T> {
        let object = self.slots.get_mut(slot as usize).filter(|object| object.is_alive());
        if object.is_none() {
            self.misfits += 1;
        }
        object
    }

    /// An object ends; none if its allocation is missing.
    #[inline(always)]
    pub fn ended(&mut self, slot: u32) -> Option<T> {
        self.resized(slot).map(std::mem::take)
    }

    /// Ends the object in a slot, if there is one.
    pub fn take(&mut self, slot: u32) -> Option<T> {
        self.slots.get_mut(slot as usize).map(std::mem::take).filter(T::is_alive)
    }

    /// What is live, with its slots.
    pub fn live(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.slots).filter(|(_, object)| object.is_alive())
    }

    /// Events that fitted no object so far.
    pub fn misfits(&self) -> u64 {
        self.misfits
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.slots.resize(index + 1, T::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Object for u32 {
        fn is_alive(&self) -> bool {
            *self > 0
        }
    }

    #[test]
    fn objects_are_born_in_any_order_and_only_live_ones_are_found() {
        let mut objects = Objects::<u32>::default();
        assert_eq!((objects.born(3, 7), objects.born(1, 5)), (None, None));
        assert_eq!(objects.live().collect::<Vec<_>>(), [(1, &5), (3, &7)]);
        assert_eq!(
            (objects.resized(3).copied(), objects.ended(1), objects.take(2)),
            (Some(7), Some(5), None)
        );
        assert_eq!(objects.misfits(), 0);
        assert_eq!(
            (objects.ended(1), objects.resized(4).copied(), objects.born(3, 9)),
            (None, None, Some(7))
        );
        assert_eq!((objects.misfits(), objects.take(3)), (3, Some(9)));
    }
}
