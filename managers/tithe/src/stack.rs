//! The mark stack: blocks that were marked and not read yet. Explicit, so that no list of the program's is too long
//! for the thread that happens to collect.

use core::ops::Range;

use heaptoll_floor::Region;

/// What is asked for at once, bytes.
const STEP: usize = 64 << 10;
/// What is kept from one collection to the next, bytes.
const KEPT: usize = 256 << 10;

/// A block to be read: its address and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Grey {
    pub start: usize,
    pub bytes: usize,
}

/// A stack in memory of its own.
#[derive(Debug)]
pub struct MarkStack {
    region: Region,
    length: usize,
    capacity: usize,
    /// No more entries than this: the tests' narrow stack.
    limit: usize,
}

impl MarkStack {
    pub const fn new() -> MarkStack {
        MarkStack { region: Region::new(), length: 0, capacity: 0, limit: usize::MAX }
    }

    /// Allows no more than so many entries, at least one.
    pub fn limit(&mut self, entries: usize) {
        self.limit = entries.max(1);
    }

    /// Makes every `every`-th request for memory fail from now on, 0 none.
    #[cfg(test)]
    pub(crate) fn fail_every(&mut self, every: u64) {
        self.region.fail_every(every);
    }

    /// Where it lies.
    pub fn range(&self) -> Range<usize> {
        self.region.start()..self.region.end()
    }

    /// Makes sure that there is room for some entries. False when the system gives no memory.
    pub fn prepare(&mut self) -> bool {
        self.capacity > 0 || self.grow()
    }

    #[cold]
    fn grow(&mut self) -> bool {
        if self.region.grow(STEP).is_none() {
            return false;
        }
        self.capacity = (self.region.end() - self.region.start()) / size_of::<Grey>();
        true
    }

    /// Puts a block on top. False when there is no room: the stack is as it was.
    #[inline(always)]
    #[must_use]
    pub fn push(&mut self, grey: Grey) -> bool {
        if self.length == self.capacity && !self.grow() || self.length >= self.limit {
            return false;
        }
        // SAFETY: the region has room for `capacity` entries.
        unsafe { (self.region.start() as *mut Grey).add(self.length).write(grey) };
        self.length += 1;
        true
    }

    /// Takes the block on top.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Grey> {
        if self.length == 0 {
            return None;
        }
        self.length -= 1;
        // SAFETY: an entry that `push` wrote.
        Some(unsafe { (self.region.start() as *const Grey).add(self.length).read() })
    }

    /// Whether nothing is on it.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Gives the memory of a stack that was deep back to the system.
    pub fn shrink(&self) {
        let Range { start, end } = self.range();
        if self.length == 0 && end - start > KEPT {
            // SAFETY: nothing is on the stack; what is dropped reads as zeros and is written before it is read.
            unsafe { libc::madvise((start + KEPT) as *mut _, end - start - KEPT, libc::MADV_DONTNEED) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gives_back_what_it_was_given_newest_first() {
        let mut stack = MarkStack::new();
        assert!(stack.prepare());
        for start in 0..100_000 {
            assert!(stack.push(Grey { start, bytes: 2 * start }));
        }
        for start in (0..100_000).rev() {
            assert_eq!(stack.pop(), Some(Grey { start, bytes: 2 * start }));
        }
        assert_eq!(stack.pop(), None);
        stack.shrink();
        assert!(stack.push(Grey { start: 1, bytes: 1 }));
    }

    #[test]
    fn a_full_stack_says_so() {
        let mut stack = MarkStack::new();
        stack.limit(2);
        let grey = Grey { start: 8, bytes: 8 };
        assert!(stack.push(grey) && stack.push(grey) && !stack.push(grey));
        assert_eq!(stack.pop(), Some(grey));
        assert!(stack.push(grey) && !stack.push(grey));
    }
}
