//! Blocks for a run that proves that nothing is touched after it was freed: no memory is used twice.
//!
//! With [`Retire::Guard`] each block has pages of its own, and a block that is freed becomes inaccessible: by guard pages
//! (Linux 6.13), which need no mapping each, or by the pages' protection. Where the system refuses both, for instance
//! because a process has at most 65,530 mappings, and with [`Retire::Poison`], a freed block is overwritten instead.

use core::ffi::c_void;
use core::ptr::{self, NonNull};

use heaptoll_next::memory::PAGE;

/// What happens to a block that is freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retire {
    /// Its pages become inaccessible.
    Guard,
    /// It is overwritten by [`POISON`].
    Poison,
}

/// The byte that overwrites a block: as an address it is not canonical.
pub const POISON: u8 = 0xf5;

/// Address space for blocks, bytes.
const SPACE: usize = 1 << 42;
/// Bytes before a block: its size, and its allocation index.
const HEADER: usize = 16;
/// `MADV_GUARD_INSTALL`, which libc does not define yet.
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// Blocks in a reserved range of addresses, from low to high.
///
/// Invariants: `next <= SPACE`; a block's header lies right before it; `owners` has a number for each page below `next`
/// in which a block begins.
pub struct Pages {
    base: NonNull<u8>,
    /// Per page: the allocation index of the block that begins in it, plus 1; 0 for none.
    owners: NonNull<u32>,
    next: usize,
    retire: Retire,
    /// Blocks that could only be overwritten.
    overwritten: u64,
}

impl Pages {
    /// Reserves the addresses; `None` where the system refuses them.
    pub fn new(retire: Retire) -> Option<Pages> {
        let base = reserve(SPACE)?;
        let owners = reserve(SPACE / PAGE * size_of::<u32>())?;
        Some(Pages { base, owners: owners.cast(), next: 0, retire, overwritten: 0 })
    }

    /// A zeroed block for the object with an allocation index; null when the addresses are used up. `align` is a power of
    /// two.
    pub fn allocate(&mut self, size: usize, align: usize, index: u64) -> *mut c_void {
        let align = align.max(HEADER);
        let own_page = match self.retire {
            Retire::Guard => self.next.next_multiple_of(PAGE),
            Retire::Poison => self.next,
        };
        let base = self.base.as_ptr() as usize;
        let start = (base + own_page + HEADER).checked_next_multiple_of(align).map(|start| start - base);
        let end = start.and_then(|start| start.checked_add(size)).filter(|end| *end <= SPACE);
        let (Some(start), Some(end)) = (start, end) else { return ptr::null_mut() };
        self.next = end;
        // SAFETY: `start` and its header lie below `SPACE`, in the range that `new` reserved, and no block has them. The
        // table has a number for each page of the range.
        unsafe {
            let block = self.base.as_ptr().add(start);
            block.sub(HEADER).cast::<u64>().write(size as u64);
            block.sub(HEADER / 2).cast::<u64>().write(index);
            self.owners.as_ptr().add(start / PAGE).write(index as u32 + 1);
            block.cast()
        }
    }

    fn holds(&self, address: usize) -> bool {
        address.wrapping_sub(self.base.as_ptr() as usize) < self.next
    }

    /// Bytes of a block.
    ///
    /// # Safety
    /// [`Pages::allocate`] returned the block, and it was not retired.
    pub unsafe fn size(&self, block: *mut c_void) -> usize {
        // SAFETY: by this function's contract the header is before it.
        unsafe { block.cast::<u8>().sub(HEADER).cast::<u64>().read() as usize }
    }

    /// Makes a block inaccessible, or overwrites it.
    ///
    /// # Safety
    /// [`Pages::allocate`] returned the block, and it was not retired.
    pub unsafe fn retire(&mut self, block: *mut c_void) {
        // SAFETY: by this function's contract the header is before it.
        let size = unsafe { self.size(block) };
        if self.retire == Retire::Guard {
            let start = (block as usize - HEADER) & !(PAGE - 1);
            let end = (block as usize + size).next_multiple_of(PAGE);
            if protect(start, end - start) {
                return;
            }
            self.overwritten += 1;
        }
        // SAFETY: the block has `size` bytes, which are still accessible.
        unsafe { ptr::write_bytes(block.cast::<u8>(), POISON, size) };
    }

    /// The allocation index of the block that contains an address, or whose pages do.
    pub fn owner(&self, address: usize) -> Option<u64> {
        if !self.holds(address) {
            return None;
        }
        let page = (address - self.base.as_ptr() as usize) / PAGE;
        // SAFETY: pages of the reserved range have numbers in the table.
        let owner = |page: usize| unsafe { self.owners.as_ptr().add(page).read() };
        let first = (0..=page).rev().map(owner).find(|&owner| owner != 0)?;
        Some(u64::from(first) - 1)
    }

    /// How many freed blocks could only be overwritten although they were to be inaccessible.
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }
}

/// Zeroed memory that takes none before it is touched.
fn reserve(bytes: usize) -> Option<NonNull<u8>> {
    let (access, kind) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
    // SAFETY: a new mapping, whose failure is tested.
    unsafe {
        let made = libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0);
        if made == libc::MAP_FAILED {
            return None;
        }
        // A huge page would be shared by many blocks' pages. Without support for huge pages this fails, and need not
        // succeed.
        libc::madvise(made, bytes, libc::MADV_NOHUGEPAGE);
        NonNull::new(made.cast())
    }
}

/// Makes pages inaccessible and gives their memory back; whether the system did it.
fn protect(start: usize, bytes: usize) -> bool {
    // SAFETY: the only caller passes whole pages of one block in a range of this module's own.
    unsafe {
        let errno = *libc::__errno_location();
        let pages = start as *mut c_void;
        let done = libc::madvise(pages, bytes, MADV_GUARD_INSTALL) == 0
            || (libc::mprotect(pages, bytes, libc::PROT_NONE) == 0
                && libc::madvise(pages, bytes, libc::MADV_DONTNEED) == 0);
        *libc::__errno_location() = errno;
        done
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Whether the system can read an address of this process.
    fn readable(address: usize) -> bool {
        let mut pipe = [0; 2];
        // SAFETY: the pipe's ends are written to the array; `write` reports an address that cannot be read.
        unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            let written = libc::write(pipe[1], address as *const c_void, 1);
            libc::close(pipe[0]);
            libc::close(pipe[1]);
            written == 1
        }
    }

    #[test]
    fn a_retired_block_is_inaccessible_and_its_neighbours_are_not() {
        let mut pages = Pages::new(Retire::Guard).unwrap();
        let blocks: Vec<usize> = [1, 24, 4096, 10_000, 0]
            .iter()
            .enumerate()
            .map(|(at, size)| pages.allocate(*size, 16, at as u64) as usize)
            .collect();
        // SAFETY: the block was allocated and not retired.
        unsafe { pages.retire(blocks[3] as *mut c_void) };
        assert!(!readable(blocks[3]) && !readable(blocks[3] + 9_999));
        assert!(readable(blocks[2]) && readable(blocks[2] + 4095) && readable(blocks[4]));
        assert_eq!(pages.owner(blocks[3] + 9_000), Some(3));
        assert_eq!(pages.owner(blocks[1]), Some(1));
        assert_eq!(pages.owner(16), None);
        assert_eq!(pages.overwritten(), 0);
    }

    #[test]
    fn poisoned_blocks_lie_close_together_and_are_overwritten() {
        let mut pages = Pages::new(Retire::Poison).unwrap();
        let (first, second) = (pages.allocate(24, 16, 0), pages.allocate(24, 64, 1));
        assert!((second as usize) - (first as usize) < 256 && (second as usize).is_multiple_of(64));
        // SAFETY: the blocks were allocated and not retired.
        unsafe {
            assert_eq!(pages.size(second), 24);
            pages.retire(first);
            assert_eq!(core::slice::from_raw_parts(first.cast::<u8>(), 24), [POISON; 24]);
            assert_eq!(core::slice::from_raw_parts(second.cast::<u8>(), 24), [0; 24]);
        }
    }

    #[test]
    fn alignments_of_pages_and_more_are_kept() {
        let mut pages = Pages::new(Retire::Guard).unwrap();
        for align in [16, 4096, 1 << 16] {
            assert!((pages.allocate(5, align, 0) as usize).is_multiple_of(align));
        }
        assert!(pages.allocate(SPACE, 16, 0).is_null());
    }
}
