//! The mark stack: objects that are marked and not yet scanned.

use core::ops::Range;

use crate::boehm::Buffer;

/// Entries to begin with.
const FIRST: usize = 4096;

/// Words to be scanned.
#[derive(Debug, Clone, Copy)]
pub struct MarkEntry {
    /// The first word.
    pub start: usize,
    /// The end, after the last word.
    pub end: usize,
}

/// A stack of limited depth. What finds no space on it is dropped, which is recorded: marks show later what it was.
#[derive(Debug)]
pub struct MarkStack {
    entries: Buffer<MarkEntry>,
    depth: usize,
    limit: usize,
    dropped: bool,
}

impl MarkStack {
    /// An empty one without space.
    pub const fn new() -> MarkStack {
        MarkStack { entries: Buffer::new(), depth: 0, limit: 0, dropped: false }
    }

    /// Makes the space it begins with.
    pub fn prepare(&mut self) -> Option<()> {
        self.entries.reserve(FIRST)?;
        self.limit = self.limit.max(FIRST);
        Some(())
    }

    /// Where it lies.
    pub const fn range(&self) -> Range<usize> {
        self.entries.range()
    }

    /// Pushes an entry, or drops it.
    #[inline(always)]
    pub fn push(&mut self, entry: MarkEntry) {
        if self.depth == self.limit {
            self.dropped = true;
            return;
        }
        // SAFETY: the index is below the limit, for which the buffer has space.
        unsafe { self.entries.at(self.depth).write(entry) };
        self.depth += 1;
    }

    /// Takes the entry pushed last.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<MarkEntry> {
        if self.depth == 0 {
            return None;
        }
        self.depth -= 1;
        // SAFETY: the entry was written, and is below the limit.
        Some(unsafe { self.entries.at(self.depth).read() })
    }

    /// Whether something was dropped since the last call; if so there is twice the space now, unless the system refuses
    /// it.
    pub fn overflowed(&mut self) -> bool {
        if !core::mem::take(&mut self.dropped) {
            return false;
        }
        if self.entries.reserve(2 * self.limit).is_some() {
            self.limit *= 2;
        }
        true
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (self.depth, self.dropped) = (0, false);
    }

    /// Limits its space to this from now on: for tests of the overflow.
    #[doc(hidden)]
    pub fn limit(&mut self, entries: usize) {
        self.limit = entries;
    }
}

impl Default for MarkStack {
    fn default() -> MarkStack {
        MarkStack::new()
    }
}
