//! Blocks that the program has freed and the layer has not: each is due at a number of bytes allocated.

use core::ffi::c_void;
use core::ptr::NonNull;

use heaptoll_next::memory;

/// A block and when it is due, bytes allocated.
#[derive(Clone, Copy)]
struct Entry {
    block: *mut c_void,
    due: u64,
}

/// Entries at first.
const FIRST: usize = 1 << 12;

/// A queue in memory of the layer's own, which doubles.
///
/// Invariants: `capacity` is 0 or a power of two; `last - first <= capacity`; an entry is due no earlier than the one
/// before it.
pub struct Pending {
    entries: Option<NonNull<Entry>>,
    capacity: usize,
    /// Number of the first entry; its place is the remainder by the capacity.
    first: usize,
    /// Number after the last entry.
    last: usize,
}

/// There is no memory for an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

impl Default for Pending {
    fn default() -> Pending {
        Pending::new()
    }
}

impl Pending {
    /// An empty queue.
    pub const fn new() -> Pending {
        Pending { entries: None, capacity: 0, first: 0, last: 0 }
    }

    fn place(&self, number: usize) -> *mut Entry {
        let base = self.entries.map_or(core::ptr::null_mut(), NonNull::as_ptr);
        base.wrapping_add(number & self.capacity.wrapping_sub(1))
    }

    /// Adds a block, which is due no earlier than those before it.
    ///
    /// # Errors
    /// [`NoMemory`]; the queue is as it was.
    pub fn add(&mut self, block: *mut c_void, due: u64) -> Result<(), NoMemory> {
        if self.last - self.first == self.capacity {
            self.grow()?;
        }
        // SAFETY: `grow` mapped `capacity` entries, and `place` gives one of them.
        unsafe { self.place(self.last).write(Entry { block, due }) };
        self.last += 1;
        Ok(())
    }

    /// Removes the first block, if it is due.
    #[inline(always)]
    pub fn due(&mut self, now: u64) -> Option<*mut c_void> {
        if self.first == self.last {
            return None;
        }
        // SAFETY: the queue is not empty, so `add` wrote this entry.
        let entry = unsafe { self.place(self.first).read() };
        if entry.due > now {
            return None;
        }
        self.first += 1;
        Some(entry.block)
    }

    #[cold]
    fn grow(&mut self) -> Result<(), NoMemory> {
        let capacity = (2 * self.capacity).max(FIRST);
        let made = memory::map(capacity * size_of::<Entry>()).ok_or(NoMemory)?.cast::<Entry>();
        for (to, number) in (self.first..self.last).enumerate() {
            // SAFETY: the number is of an entry that `add` wrote; the new memory has more places than there are entries.
            unsafe { made.as_ptr().add(to).write(self.place(number).read()) };
        }
        if let Some(old) = self.entries {
            // SAFETY: `grow` mapped it with so many bytes, and all entries were copied.
            unsafe { memory::unmap(old.cast(), self.capacity * size_of::<Entry>()) };
        }
        (self.last, self.first) = (self.last - self.first, 0);
        (self.entries, self.capacity) = (Some(made), capacity);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_come_out_in_order_when_they_are_due(steps in prop::collection::vec((0u64..4, 0usize..3000), 1..40)) {
            let mut pending = Pending::new();
            let mut model: VecDeque<(usize, u64)> = VecDeque::new();
            let (mut now, mut number) = (0, 0);
            for (passed, added) in steps {
                now += passed;
                for _ in 0..added {
                    number += 1;
                    pending.add(core::ptr::without_provenance_mut(number), now + 2).unwrap();
                    model.push_back((number, now + 2));
                }
                let due: Vec<usize> = core::iter::from_fn(|| pending.due(now)).map(|block| block.addr()).collect();
                let expected = model.iter().take_while(|(_, due)| *due <= now).count();
                let expected: Vec<usize> = model.drain(..expected).map(|(block, _)| block).collect();
                prop_assert_eq!(due, expected);
            }
        }
    }
}
