//! Call stacks that a thread has been at, to be recognised without a walk.
//!
//! A program allocates at few places of few call stacks repeatedly. An entry keeps of one walk the words that it read,
//! and where: return addresses, and the frame pointers that it needed. When the code and the stack pointer are those of
//! the entry, and the same words lie at the same addresses, then a walk would read them again one by one and end where
//! it ended then; so the call stack is the same. This is exact, not a guess: a walk depends on nothing but those words
//! and the rules, and rules change only when code is unloaded, which invalidates all entries (the era is another).
//!
//! On the thread's own stack the words can be read without a check: pages between the stack pointer and the stack's end
//! stay mapped. On others, which a program can unmap, each page is checked.

use crate::walk::{Cursor, ReadLog, Readable};

/// Words of an entry: the return addresses of a walk and some frame pointers.
const WORDS: usize = 80;
/// Sets of two entries, a power of two.
const SETS: usize = 256;

/// One walk.
#[repr(C, align(64))]
pub struct Entry {
    frame: usize,
    pointer: usize,
    base: usize,
    era: u32,
    /// 0: not an entry.
    site: u32,
    words: u32,
    /// Whether the frame pointer's register matters.
    by_base: bool,
    /// Whether the walk cannot be kept.
    unusable: bool,
    /// Whether it was on the thread's own stack.
    own: bool,
    offsets: [u32; WORDS],
    values: [usize; WORDS],
}

/// The entries of one thread.
#[repr(C)]
pub struct CallStackCache {
    entries: [[Entry; 2]; SETS],
    /// The entry of each set that was used last.
    last: [u8; SETS],
}

impl CallStackCache {
    #[inline(always)]
    fn set(at: &Cursor, hint: usize) -> usize {
        let mixed = (at.frame ^ at.pointer << 17 ^ hint).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed >> (usize::BITS - SETS.trailing_zeros())
    }

    /// The site, if the thread was at this call stack; otherwise 0. `at` is the beginning of a walk;
    /// `hint` is what else of the call stack is known.
    ///
    /// # Safety
    /// `at` is a frame of the calling thread's current stack, at which `stack` began.
    #[inline(always)]
    pub unsafe fn find(&mut self, at: &Cursor, hint: usize, era: u32, stack: &mut Readable) -> u32 {
        let set = CallStackCache::set(at, hint);
        let last = self.last[set] as usize & 1;
        // SAFETY: by this function's contract `at` is a frame of the calling thread's current stack, at which `stack`
        // began, which is all that `site` requires.
        let site = unsafe { self.entries[set][last].site(at, era, stack) };
        if site != 0 {
            return site;
        }
        // SAFETY: by this function's contract `at` is a frame of the calling thread's current stack, at which `stack`
        // began, which is all that `site` requires.
        let site = unsafe { self.entries[set][last ^ 1].site(at, era, stack) };
        if site != 0 {
            self.last[set] = last as u8 ^ 1;
        }
        site
    }

    /// The entry to keep a walk in that begins here.
    pub fn entry(&mut self, at: &Cursor, hint: usize) -> &mut Entry {
        let set = CallStackCache::set(at, hint);
        self.last[set] ^= 1;
        &mut self.entries[set][self.last[set] as usize & 1]
    }
}

impl Entry {
    /// # Safety
    /// As for [`CallStackCache::find`]: `at` is a frame of the calling thread's current stack, at which `stack` began.
    #[inline(always)]
    unsafe fn site(&self, at: &Cursor, era: u32, stack: &mut Readable) -> u32 {
        if self.frame != at.frame || self.pointer != at.pointer || self.era != era {
            return 0;
        }
        if self.by_base && self.base != at.register() {
            return 0;
        }
        if !stack.own() || !self.own {
            return self.site_elsewhere(at, stack);
        }
        for n in 0..(self.words as usize).min(WORDS) {
            let place = at.pointer + self.offsets[n] as usize;
            // SAFETY: the walk read this word above this stack pointer and before the end of the thread's own stack;
            // everything above the stack pointer of a thread's own stack stays mapped.
            if unsafe { (place as *const usize).read() } != self.values[n] {
                return 0;
            }
        }
        self.site
    }

    /// On a stack that can be unmapped while the thread runs: its memory may be gone, or be no stack any more.
    #[cold]
    #[inline(never)]
    fn site_elsewhere(&self, at: &Cursor, stack: &mut Readable) -> u32 {
        let words = (self.words as usize).min(WORDS);
        let same = (0..words)
            .all(|n| stack.read(at.pointer.wrapping_add(self.offsets[n] as usize)) == Some(self.values[n]));
        if same { self.site } else { 0 }
    }

    /// Empties the entry and begins another, which is filled as a [`ReadLog`]. `own`: on the thread's own stack.
    pub fn begin(&mut self, at: &Cursor, era: u32, own: bool) {
        self.site = 0;
        self.own = own;
        (self.frame, self.pointer, self.base, self.era) = (at.frame, at.pointer, at.register(), era);
        (self.words, self.by_base, self.unusable) = (0, false, false);
    }

    /// Completes it.
    pub fn finish(&mut self, site: u32) {
        if self.unusable {
            self.frame = 0;
        } else {
            self.site = site;
        }
    }
}

impl ReadLog for Entry {
    fn word(&mut self, place: usize, value: usize) {
        let at = self.words as usize;
        let offset = place.checked_sub(self.pointer).and_then(|offset| u32::try_from(offset).ok());
        match offset {
            Some(offset) if at < WORDS => {
                (self.offsets[at], self.values[at]) = (offset, value);
                self.words += 1;
            }
            _ => self.unusable = true,
        }
    }

    fn base(&mut self) {
        self.by_base = true;
    }

    fn signal(&mut self) {
        self.unusable = true;
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::boxed::Box;

    use super::*;
    use crate::system::{self, PAGE};

    #[test]
    fn an_entry_reads_nothing_of_a_stack_that_was_unmapped() {
        let place = system::map(2 * PAGE, false).unwrap();
        let start = place.as_ptr() as usize;
        // SAFETY: all zeroes is a valid cache, with entries without a site.
        let mut call_stack_cache: Box<CallStackCache> = unsafe { Box::new_zeroed().assume_init() };
        let mut stack = Readable::new(0);
        let at = Cursor::new(0x1111, start + 64, 0);
        stack.begin(at.pointer);
        let entry = call_stack_cache.entry(&at, 0);
        entry.begin(&at, 0, stack.own());
        for offset in [128, PAGE + 8] {
            entry.word(start + offset, stack.read(start + offset).unwrap());
        }
        entry.finish(5);
        // SAFETY: `at` lies on the mapping that `stack` began at; `stack` is not the thread's own, so every read is
        // checked.
        let mut find = |stack: &mut Readable| unsafe {
            stack.begin(at.pointer);
            call_stack_cache.find(&at, 0, 0, stack)
        };
        assert_eq!(find(&mut stack), 5);
        // SAFETY: the page was mapped by this test; no reference to it exists.
        unsafe { libc::munmap(place.as_ptr().add(PAGE).cast(), PAGE) };
        assert_eq!(find(&mut stack), 0);
        // SAFETY: this test mapped it and uses it no more.
        unsafe { system::unmap(place, PAGE) };
    }
}
