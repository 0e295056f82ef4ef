//! Roots that the program has added: its own ranges, and stacks of threads.

use core::ops::Range;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::Region;

/// A range, and the thread whose stack it is; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Entry {
    start: usize,
    end: usize,
    thread: usize,
}

/// The ranges, in no order.
#[derive(Debug)]
pub struct AddedRoots {
    region: Region,
    count: usize,
}

/// There is no such range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown;

/// The system gives no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

impl AddedRoots {
    pub const fn new() -> AddedRoots {
        AddedRoots { region: Region::new(), count: 0 }
    }

    fn entry(&self, index: usize) -> *mut Entry {
        assert_internal!(index < self.capacity(), "an added root has an entry");
        (self.region.start() as *mut Entry).wrapping_add(index)
    }

    fn capacity(&self) -> usize {
        (self.region.end() - self.region.start()) / size_of::<Entry>()
    }

    /// Adds a range of `thread`; [`AddedRoots::ranges`] shows its whole words.
    ///
    /// # Errors
    /// There is no memory to record it.
    pub fn add(&mut self, start: usize, end: usize, thread: usize) -> Result<(), NoMemory> {
        if self.count == self.capacity() {
            self.region.grow(4096 * size_of::<Entry>() / 8).ok_or(NoMemory)?;
        }
        // SAFETY: the region has grown above if it was full, so `count` is below its capacity.
        unsafe { self.entry(self.count).write(Entry { start, end, thread }) };
        self.count += 1;
        assert_internal!(self.count <= self.capacity(), "added roots fit their table");
        Ok(())
    }

    /// Removes a range.
    ///
    /// # Errors
    /// It was never added.
    pub fn remove(&mut self, start: usize, end: usize) -> Result<(), Unknown> {
        self.remove_where(|entry| entry == Entry { start, end, thread: 0 })
    }

    /// Removes the stack of a thread.
    ///
    /// # Errors
    /// It has none.
    pub fn remove_thread(&mut self, thread: usize) -> Result<(), Unknown> {
        self.remove_where(|entry| entry.thread == thread)
    }

    /// Removes the stacks of all threads but one; returns how many that one has.
    pub fn remove_other_threads(&mut self, thread: usize) -> usize {
        while self.remove_where(|entry| entry.thread != 0 && entry.thread != thread).is_ok() {}
        assert_internal!(
            // SAFETY: entries below the count were written by `add`.
            (0..self.count).all(|index| [0, thread].contains(&unsafe { self.entry(index).read() }.thread)),
            "no stack of a thread that fork did not copy is left"
        );
        // SAFETY: entries below the count were written by `add`.
        (0..self.count).filter(|&index| unsafe { self.entry(index).read() }.thread == thread).count()
    }

    fn remove_where(&mut self, wanted: impl Fn(Entry) -> bool) -> Result<(), Unknown> {
        // SAFETY: entries below the count were written by `add`.
        let read = |index| unsafe { self.entry(index).read() };
        let found = (0..self.count).find(|&index| wanted(read(index))).ok_or(Unknown)?;
        let last = read(self.count - 1);
        // SAFETY: `found` is below the count, so the entry lies in the region; `&mut self` excludes other uses.
        unsafe { self.entry(found).write(last) };
        assert_internal!(self.count > 0, "what is removed was added");
        self.count -= 1;
        Ok(())
    }

    /// The ranges, whole words only.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.count).map(|index| {
            // SAFETY: entries below the count were written by `add`.
            let entry = unsafe { self.entry(index).read() };
            entry.start.checked_next_multiple_of(8).unwrap_or(usize::MAX)..entry.end & !7
        })
    }
}

impl Default for AddedRoots {
    fn default() -> AddedRoots {
        AddedRoots::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn what_was_added_is_shown_until_it_is_removed() {
        let mut added = AddedRoots::new();
        for at in 0..3000 {
            assert_eq!(added.add(at * 100 + 1, at * 100 + 50, 0), Ok(()));
        }
        assert_eq!(added.add(8, 16, 7), Ok(()));
        assert_eq!(added.remove(1, 50), Ok(()));
        assert_eq!(added.remove(1, 50), Err(Unknown));
        assert_eq!(added.remove(8, 16), Err(Unknown), "a thread's stack is not a range of the program's");
        assert_eq!(added.remove_thread(7), Ok(()));
        assert_eq!(added.remove_thread(7), Err(Unknown));
        let ranges: Vec<_> = added.ranges().collect();
        assert_eq!(ranges.len(), 2999);
        for thread in [3, 4, 3, 5] {
            assert_eq!(added.add(8, 16, thread), Ok(()));
        }
        assert_eq!(added.remove_other_threads(3), 2);
        assert_eq!(added.ranges().count(), 3001);
        assert_eq!(added.add(usize::MAX - 3, usize::MAX, 0), Ok(()));
        assert!(added.ranges().all(|range| range.start % 8 == 0 || range.is_empty()));
        assert!(ranges.contains(&(104..144)), "whole words of 101..150");
    }
}
