//! A table from block addresses to one number each, in memory of its own: a layer cannot keep data about live blocks in
//! the heap that it watches.
//!
//! Open addressing with linear probing. Removal moves later entries up, so that there are no tombstones: a program that
//! allocates and frees for ever does not fill the table. It doubles when it is three quarters full and never shrinks.
//!
//! A collector below scans all of the process's memory for pointers, and the addresses in the table would keep every
//! block alive. So the memory is named, for collectors that skip named mappings if the kernel supports names
//! (`CONFIG_ANON_VMA_NAME`), and addresses are stored negated, so that they point to nothing: the upper half of the
//! address space is the kernel's.

use core::ffi::CStr;
use core::ptr;

/// The name of the memory in `/proc/PID/maps`.
const NAME: &CStr = c"heaptoll live";

/// Slots of the first table: one page.
const FIRST: usize = 4096 / size_of::<Entry>();

#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    /// 0: empty. Stored negated.
    block: usize,
    value: usize,
}

/// There is no memory for a larger table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// Numbers by address. Not thread-safe.
pub struct Blocks {
    entries: *mut Entry,
    /// Slots, a power of two; 0 before the first insertion.
    slots: usize,
    used: usize,
}

// SAFETY: `entries` is a mapping that `grow` made for this table alone, and none of it is tied to a thread.
unsafe impl Send for Blocks {}

impl Blocks {
    /// An empty table, without memory yet.
    pub const fn new() -> Blocks {
        Blocks { entries: ptr::null_mut(), slots: 0, used: 0 }
    }

    /// The number of blocks in it.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Stores `value` for `block`, which is not 0, and returns the value that was stored for it before.
    ///
    /// # Errors
    /// [`Full`]: the system has no memory; the table is unchanged.
    pub fn insert(&mut self, block: usize, value: usize) -> Result<Option<usize>, Full> {
        debug_assert!(block != 0);
        if (self.used + 1) * 4 > self.slots * 3 {
            self.grow()?;
        }
        let at = self.find(block);
        let entry = self.entry(at);
        let old = (entry.block != 0).then_some(entry.value);
        self.used += usize::from(old.is_none());
        self.write(at, Entry { block, value });
        Ok(old)
    }

    /// Removes a block and returns its value; `None` when it is not there.
    pub fn remove(&mut self, block: usize) -> Option<usize> {
        if self.slots == 0 {
            return None;
        }
        let mut hole = self.find(block);
        let found = self.entry(hole);
        if found.block == 0 {
            return None;
        }
        // Entries that follow without a gap move up, unless that would put them before their home slot.
        let mut next = hole;
        loop {
            next = (next + 1) & (self.slots - 1);
            let entry = self.entry(next);
            if entry.block == 0 {
                break;
            }
            let home = self.home(entry.block);
            let from_home = next.wrapping_sub(home) & (self.slots - 1);
            let from_hole = next.wrapping_sub(hole) & (self.slots - 1);
            if from_home >= from_hole {
                self.write(hole, entry);
                hole = next;
            }
        }
        self.write(hole, Entry { block: 0, value: 0 });
        self.used -= 1;
        Some(found.value)
    }

    /// The slot where the search for a block begins.
    fn home(&self, block: usize) -> usize {
        // Blocks are at least 16 bytes apart. Fibonacci hashing: the upper bits of the product are the mixed ones.
        let mixed = (block >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed >> (usize::BITS - self.slots.trailing_zeros())
    }

    /// The slot that holds a block, or the empty one for it. There is an empty one, since `insert` keeps a quarter
    /// free.
    fn find(&self, block: usize) -> usize {
        let mut at = self.home(block);
        while ![0, block].contains(&self.entry(at).block) {
            at = (at + 1) & (self.slots - 1);
        }
        at
    }

    fn entry(&self, at: usize) -> Entry {
        debug_assert!(at < self.slots);
        // SAFETY: `at` is masked or found below `slots`; `grow` mapped `entries` with `slots` elements, which the
        // system initialised to zero.
        let Entry { block, value } = unsafe { self.entries.add(at).read() };
        Entry { block: block.wrapping_neg(), value }
    }

    fn write(&mut self, at: usize, entry: Entry) {
        debug_assert!(at < self.slots);
        let stored = Entry { block: entry.block.wrapping_neg(), ..entry };
        // SAFETY: `at` is masked or found below `slots`; `grow` mapped `entries` with `slots` elements for this table
        // alone.
        unsafe { self.entries.add(at).write(stored) }
    }

    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        let slots = (self.slots * 2).max(FIRST);
        let bytes = slots * size_of::<Entry>();
        // SAFETY: with a null address mmap maps memory that nothing uses; its failure is checked below.
        let made = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if made == libc::MAP_FAILED {
            return Err(Full);
        }
        name(made as usize, bytes);
        let old = Blocks { entries: made.cast(), slots, used: self.used };
        let old = core::mem::replace(self, old);
        for at in 0..old.slots {
            let entry = old.entry(at);
            if entry.block != 0 {
                let slot = self.find(entry.block);
                self.write(slot, entry);
            }
        }
        Ok(())
    }
}

/// Names memory. A kernel without names refuses, and nothing depends on it. Preserves `errno`.
fn name(start: usize, bytes: usize) {
    // SAFETY: `__errno_location` returns the address of the calling thread's errno; the kernel copies the name, a C
    // literal, and naming a mapping does not change its contents.
    unsafe {
        let errno = *libc::__errno_location();
        let text = NAME.as_ptr();
        libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, start, bytes, text);
        *libc::__errno_location() = errno;
    }
}

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks::new()
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        if self.slots > 0 {
            // SAFETY: `grow` made the mapping for this table, which ends here.
            unsafe { libc::munmap(self.entries.cast(), self.slots * size_of::<Entry>()) };
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;
    use std::collections::HashMap;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(usize, usize),
        Remove(usize),
    }

    /// Few addresses, near one another and far apart, so that probes collide and wrap around.
    fn address() -> impl Strategy<Value = usize> {
        prop_oneof![(1usize..600).prop_map(|n| n * 16), (1usize..40).prop_map(|n| n << 40)]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (address(), any::<usize>()).prop_map(|(block, value)| Step::Insert(block, value)),
            2 => address().prop_map(Step::Remove),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec(step(), 1..3000)) {
            let (mut table, mut model) = (Blocks::new(), HashMap::new());
            for step in steps {
                match step {
                    Step::Insert(block, value) => {
                        prop_assert_eq!(table.insert(block, value), Ok(model.insert(block, value)));
                    }
                    Step::Remove(block) => prop_assert_eq!(table.remove(block), model.remove(&block)),
                }
                prop_assert_eq!(table.len(), model.len());
            }
            for (block, value) in model {
                prop_assert_eq!(table.remove(block), Some(value));
            }
            prop_assert!(table.is_empty());
        }
    }

    #[test]
    fn a_million_rounds_of_a_few_blocks_keep_it_small() {
        let mut table = Blocks::new();
        for round in 1..1_000_000usize {
            assert_eq!(table.insert(round * 16, round), Ok(None));
            if round > 100 {
                assert_eq!(table.remove((round - 100) * 16), Some(round - 100));
            }
        }
        assert_eq!((table.len(), table.slots), (100, FIRST));
    }

    #[test]
    fn no_word_of_it_is_the_address_of_a_block() {
        let mut table = Blocks::new();
        for block in 1..=1000usize {
            assert_eq!(table.insert(block << 20 | 16, block), Ok(None));
        }
        // SAFETY: `grow` has mapped `slots` entries of two words each.
        let words = unsafe { std::slice::from_raw_parts(table.entries.cast::<usize>(), table.slots * 2) };
        assert!(words.iter().any(|&word| word != 0));
        assert!(words.iter().all(|&word| !(1 << 20..1 << 47).contains(&word)));
    }

    #[test]
    fn naming_keeps_errno() {
        // SAFETY: `__errno_location` returns the address of this thread's errno, to which nothing else refers.
        let errno = unsafe { &mut *libc::__errno_location() };
        *errno = 77;
        name(1, 1);
        assert_eq!(*errno, 77);
    }

    #[test]
    fn growth_keeps_everything() {
        let mut table = Blocks::new();
        for block in 1..=100_000usize {
            assert_eq!(table.insert(block * 32, block), Ok(None));
        }
        assert!(table.slots * 3 >= table.len() * 4);
        for block in 1..=100_000usize {
            assert_eq!(table.remove(block * 32), Some(block));
        }
    }
}
