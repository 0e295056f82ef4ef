//! The mark stack: objects that are marked and whose words were not looked at yet.

use core::ops::Range;

use crate::Buffer;

/// Entries to begin with.
const FIRST: usize = 4096;

/// Words to be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The first word.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
}

/// A stack of limited depth. What finds no room on it is dropped and remembered as such: marks tell later what was.
#[derive(Debug)]
pub struct MarkStack {
    entries: Buffer<Entry>,
    depth: usize,
    limit: usize,
    dropped: bool,
}

impl MarkStack {
    /// An empty one without room.
    pub const fn new() -> MarkStack {
        MarkStack { entries: Buffer::new(), depth: 0, limit: 0, dropped: false }
    }

    /// Makes the room it begins with.
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
    pub fn push(&mut self, entry: Entry) {
        if self.depth == self.limit {
            self.dropped = true;
            return;
        }
        // SAFETY: the place is below the limit, which the buffer has room for.
        unsafe { self.entries.at(self.depth).write(entry) };
        self.depth += 1;
    }

    /// Takes the entry pushed last.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Entry> {
        if self.depth == 0 {
            return None;
        }
        self.depth -= 1;
        // SAFETY: the entry was written, and is below the limit.
        Some(unsafe { self.entries.at(self.depth).read() })
    }

    /// Whether something was dropped since this was asked last; if so there is twice the room now, unless the system
    /// refuses it.
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

    /// Has no more room than this from now on: for tests of the overflow.
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
