//! The word in front of an object: its count of references, and marks; while the cell is free, the next free one.
//!
//! ```text
//!   63     62     61    60                32 31              0
//!   used │ noted │ mark │ dead │           │ references       │      an object
//!   0    │ address of the next free cell                      │      a free cell
//! ```

const USED: u64 = 1 << 63;
/// In the zero count table.
const NOTED: u64 = 1 << 62;
/// A root, or held to its last touch, while reconciling; reached by the backup collection.
const MARK: u64 = 1 << 61;
/// Found dead by the collection that runs.
const DEAD: u64 = 1 << 60;
const COUNT: u64 = u32::MAX as u64;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct CellWord(*mut u64);

/// All functions: the address is that of a cell of the heap, which nothing else reads or writes meanwhile; those on
/// objects: one is in it.
impl CellWord {
    /// That of a cell.
    #[inline(always)]
    pub fn at(cell: usize) -> CellWord {
        CellWord(cell as *mut u64)
    }

    #[inline(always)]
    unsafe fn get(self) -> u64 {
        // SAFETY: the precondition of all functions.
        unsafe { self.0.read() }
    }

    #[inline(always)]
    unsafe fn set(self, word: u64) {
        // SAFETY: the precondition of all functions.
        unsafe { self.0.write(word) };
    }

    unsafe fn has(self, bit: u64) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe { self.get() & bit != 0 }
    }

    unsafe fn add(self, bit: u64) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(self.get() | bit) };
    }

    unsafe fn remove(self, bit: u64) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(self.get() & !bit) };
    }

    /// That of a new object: no references, noted.
    #[inline(always)]
    pub unsafe fn set_new(self) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(USED | NOTED) };
    }

    /// That of a free cell.
    #[inline(always)]
    pub unsafe fn set_free(self, next: usize) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(next as u64) };
    }

    /// Of a free cell: the next.
    #[inline(always)]
    pub unsafe fn next_free(self) -> usize {
        // SAFETY: the precondition of all functions.
        unsafe { self.get() as usize }
    }

    /// Whether an object is in the cell.
    pub unsafe fn is_used(self) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe { self.has(USED) }
    }

    /// References to the object.
    pub unsafe fn count(self) -> u32 {
        // SAFETY: the precondition of all functions.
        unsafe { (self.get() & COUNT) as u32 }
    }

    /// A reference more.
    #[inline(always)]
    pub unsafe fn count_one(self) {
        // SAFETY: the precondition of all functions.
        unsafe { self.set(self.get() + 1) };
    }

    /// A reference less. Whether the object is to be noted: it has none left and is not in the zero count table; from
    /// here on it is.
    #[inline(always)]
    pub unsafe fn uncount_one(self) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe {
            let word = self.get() - 1;
            let note = word & (COUNT | NOTED) == 0;
            self.set(if note { word | NOTED } else { word });
            note
        }
    }

    /// Whether it is in the zero count table.
    pub unsafe fn is_noted(self) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe { self.has(NOTED) }
    }

    /// It is not in the zero count table any more.
    pub unsafe fn forget(self) {
        // SAFETY: the precondition of all functions.
        unsafe { self.remove(NOTED) };
    }

    /// Whether it is marked.
    pub unsafe fn is_marked(self) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe { self.has(MARK) }
    }

    /// Marks it. Whether it was not.
    pub unsafe fn mark(self) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe {
            let new = !self.has(MARK);
            self.add(MARK);
            new
        }
    }

    /// Takes the mark away.
    pub unsafe fn unmark(self) {
        // SAFETY: the precondition of all functions.
        unsafe { self.remove(MARK) };
    }

    /// Whether it was found dead.
    pub unsafe fn is_dead(self) -> bool {
        // SAFETY: the precondition of all functions.
        unsafe { self.has(DEAD) }
    }

    /// It is found dead.
    pub unsafe fn kill(self) {
        // SAFETY: the precondition of all functions.
        unsafe { self.add(DEAD) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_noted_once_when_its_last_reference_goes() {
        let mut memory = 0_u64;
        let word = CellWord(&raw mut memory);
        // SAFETY: the word is a local variable.
        unsafe {
            word.set_new();
            word.count_one();
            assert!(!word.uncount_one(), "it is noted from the beginning");
            word.count_one();
            word.count_one();
            word.forget();
            assert!(!word.uncount_one());
            assert!(word.uncount_one());
            assert_eq!((word.count(), word.is_noted(), word.is_used()), (0, true, true));
        }
    }

    #[test]
    fn marks_do_not_change_the_count() {
        let mut memory = 0_u64;
        let word = CellWord(&raw mut memory);
        // SAFETY: the word is a local variable.
        unsafe {
            word.set_new();
            word.count_one();
            assert!(word.mark());
            assert!(!word.mark());
            word.kill();
            assert!(word.is_marked() && word.is_dead());
            word.unmark();
            assert_eq!((word.is_marked(), word.count()), (false, 1));
            word.set_free(4096);
            assert_eq!((word.next_free(), word.is_used()), (4096, false));
        }
    }
}
