//! The mark stack: blocks that were marked and not scanned yet. Explicit, so that no list of the program's is too long
//! for the stack of the thread that collects.

use core::ops::Range;

use heaptoll_assertions::assert_internal;
use heaptoll_runtime::{PAGE, Region, system_call};

use crate::pool::Pool;

/// Bytes requested at once.
const STEP: usize = 64 << 10;
/// Bytes kept from one collection to the next.
pub const KEPT: usize = 256 << 10;
/// Most entries shared at once.
const GIVEN: usize = 512;

/// A block to be scanned: its address and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Grey {
    pub start: usize,
    pub bytes: usize,
}

const _: () = {
    assert!(size_of::<Grey>() == 16 && STEP.is_multiple_of(size_of::<Grey>()) && STEP.is_multiple_of(PAGE));
    assert!(KEPT >= PAGE && GIVEN > 0);
};

/// A stack in memory of its own.
#[derive(Debug)]
pub struct MarkStack {
    region: Region,
    entries: *mut Grey,
    length: usize,
    capacity: usize,
    /// No more entries than this: a small stack for tests.
    limit: usize,
}

impl Default for MarkStack {
    fn default() -> MarkStack {
        MarkStack::new()
    }
}

impl MarkStack {
    pub const fn new() -> MarkStack {
        MarkStack {
            region: Region::new(),
            entries: core::ptr::null_mut(),
            length: 0,
            capacity: 0,
            limit: usize::MAX,
        }
    }

    /// A stack in memory of the caller's, which does not grow.
    ///
    /// # Safety
    /// The memory is writable, begins at a multiple of 8, and is used for nothing else as long as the stack is used.
    pub const unsafe fn fixed(memory: Range<usize>) -> MarkStack {
        assert_internal!(memory.start < memory.end, "a mark stack has memory");
        assert_internal!(
            memory.start.is_multiple_of(align_of::<Grey>()),
            "a mark stack is aligned for its entries"
        );
        let capacity = (memory.end - memory.start) / size_of::<Grey>();
        let entries = memory.start as *mut Grey;
        MarkStack { region: Region::new(), entries, length: 0, capacity, limit: capacity }
    }

    /// Allows no more than so many entries, at least one.
    pub fn limit(&mut self, entries: usize) {
        self.limit = self.limit.min(entries.max(1));
    }

    /// Makes every `every`-th request for memory fail from now on, 0 none: for tests.
    pub fn fail_every(&mut self, every: u64) {
        self.region.fail_every(every);
    }

    /// Where it lies.
    pub fn range(&self) -> Range<usize> {
        self.region.mapped()
    }

    /// Bytes of it that are in use.
    pub fn mapped_bytes(&self) -> usize {
        self.region.mapped_bytes()
    }

    /// Makes sure that there is space for some entries. False when the system gives no memory.
    pub fn prepare(&mut self) -> bool {
        self.capacity > 0 || self.grow()
    }

    #[cold]
    fn grow(&mut self) -> bool {
        if self.region.grow(STEP).is_none() {
            return false;
        }
        assert_internal!(
            self.entries.is_null() || self.entries as usize == self.region.start(),
            "a mark stack grows where it is"
        );
        self.entries = self.region.start() as *mut Grey;
        self.capacity = (self.region.end() - self.region.start()) / size_of::<Grey>();
        assert_internal!(self.capacity > self.length, "a mark stack that has grown has space");
        true
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Pushes a block. False when there is no space: the stack is as it was.
    #[inline(always)]
    #[must_use]
    pub fn push(&mut self, grey: Grey) -> bool {
        if self.length >= self.limit || self.length == self.capacity && !self.grow() {
            return false;
        }
        assert_internal!(self.length < self.capacity, "what is pushed has an entry of the mark stack");
        assert_internal!(self.length < self.limit, "a mark stack with a limit has no more entries than that");
        // SAFETY: the region has space for `capacity` entries, and `length` is less.
        unsafe { self.entries.add(self.length).write(grey) };
        self.length += 1;
        true
    }

    /// Makes sure that there is space for so many more. False when there is not: single ones may fit.
    #[inline(always)]
    pub fn reserve(&mut self, entries: usize) -> bool {
        while self.length + entries > self.capacity.min(self.limit) {
            if self.length + entries > self.limit || !self.grow() {
                return false;
            }
        }
        assert_internal!(
            self.length + entries <= self.capacity && self.length + entries <= self.limit,
            "what is reserved has entries of the mark stack"
        );
        true
    }

    /// As [`MarkStack::push`] if `wanted`, without a branch.
    ///
    /// # Safety
    /// Space for it was reserved, wanted or not.
    #[inline(always)]
    pub unsafe fn push_if(&mut self, grey: Grey, wanted: bool) {
        assert_internal!(self.length < self.capacity, "what is pushed has an entry of the mark stack");
        // SAFETY: the caller has reserved space for it, as this function requires.
        unsafe { self.entries.add(self.length).write(grey) };
        self.length += usize::from(wanted);
    }

    /// Pops the newest block.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Grey> {
        if self.length == 0 {
            return None;
        }
        self.length -= 1;
        assert_internal!(self.length < self.capacity, "what is popped was pushed");
        // SAFETY: `push` wrote all entries below the former length, and this is the last of them.
        Some(unsafe { self.entries.add(self.length).read() })
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Moves half of it to the pool, the oldest, from which most work can be expected; at most what the pool has space
    /// for.
    pub fn give(&mut self, pool: &Pool<Grey>) {
        let before = self.length;
        let half = (self.length / 2).min(GIVEN);
        assert_internal!(half * 2 <= self.length, "a marker keeps half of its stack at least");
        // SAFETY: `push` has written `length` entries, of which `half` is no more than half.
        let given = pool.give(unsafe { core::slice::from_raw_parts(self.entries, half) });
        assert_internal!(given <= half, "a pool takes no more than it is given");
        // The newest entries fill the gap.
        self.length -= given;
        assert_internal!(
            self.length >= given && self.length + given == before,
            "what fills the gap lies above it"
        );
        // SAFETY: the gap is the first `given` entries, which are below those that are left on top.
        unsafe { self.entries.copy_from_nonoverlapping(self.entries.add(self.length), given) };
    }

    /// Releases the memory of an empty stack to the system, but for `kept` bytes.
    pub fn shrink(&self, kept: usize) {
        let start = (self.entries as usize + kept).next_multiple_of(PAGE);
        let end = (self.entries as usize + self.capacity * size_of::<Grey>()) & !(PAGE - 1);
        assert_internal!(
            start >= self.entries as usize
                && end <= self.entries as usize + self.capacity * size_of::<Grey>(),
            "pages that are released lie in the mark stack"
        );
        if self.length == 0 && start < end {
            // SAFETY: nothing is on the stack; what is dropped reads as zeros and is written before it is read.
            unsafe {
                system_call(libc::SYS_madvise, [start, end - start, libc::MADV_DONTNEED as usize, 0, 0, 0])
            };
        }
    }
}

// SAFETY: the stack has its memory to itself, and any thread may use it.
unsafe impl Send for MarkStack {}

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
        stack.shrink(KEPT);
        assert!(stack.push(Grey { start: 1, bytes: 1 }));
    }

    #[test]
    fn a_push_to_a_full_stack_fails() {
        let mut stack = MarkStack::new();
        stack.limit(2);
        let grey = Grey { start: 8, bytes: 8 };
        assert!(stack.push(grey) && stack.push(grey) && !stack.push(grey));
        assert_eq!(stack.pop(), Some(grey));
        assert!(stack.push(grey) && !stack.push(grey));
    }
}
