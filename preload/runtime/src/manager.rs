//! The contract of a manager: what the malloc family, the control contract and the process's hooks call.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use crate::{EventFunction, RawCensus};

/// The largest request, bytes: differences of pointers into a block must fit `ptrdiff_t`.
pub const LARGEST: usize = isize::MAX as usize;

/// Bytes of a process's address space (x86-64 with four levels of page tables, and by default with five): to collect
/// for a larger request would be in vain.
pub const ADDRESSES: usize = 1 << 47;

/// A manager as a process uses it, from any of its threads. [`crate::Shell`] is one, over a heap and one lock; a
/// manager with caches per thread is another. [`crate::family`] handles the C standard's corner cases and `errno`:
/// every call leaves `errno` as it was.
pub trait Manager: Sync {
    /// Its name in messages and in rows.
    const NAME: &'static str;

    /// A block of at least `bytes`, aligned to [`crate::ALIGNMENT`]; null when there is no memory, and for more than
    /// [`LARGEST`], which no caller has tested before.
    fn allocate(&self, bytes: usize) -> *mut u8;

    /// As [`Manager::allocate`], for contents that are no pointers: a collector need not read them.
    #[inline(always)]
    fn allocate_pointer_free(&self, bytes: usize) -> *mut u8 {
        self.allocate(bytes)
    }

    /// As [`Manager::allocate`], with the first `bytes` of the block zero.
    #[inline(always)]
    fn allocate_zeroed(&self, bytes: usize) -> *mut u8 {
        let block = self.allocate(bytes);
        if !block.is_null() {
            // SAFETY: `allocate` returned a block of at least `bytes` bytes, which only this thread has.
            unsafe { ptr::write_bytes(block, 0, bytes) };
        }
        block
    }

    /// As [`Manager::allocate`], with an address that is a multiple of `alignment`, a power of two above
    /// [`crate::ALIGNMENT`]. `bytes + alignment` does not exceed [`LARGEST`].
    fn allocate_aligned(&self, alignment: usize, bytes: usize) -> *mut u8;

    /// Frees a block; null is allowed and does nothing. The family does not test for it, so that a manager can make the
    /// test a part of one of its own.
    ///
    /// # Safety
    /// As C's `free`.
    unsafe fn free(&self, block: *mut u8);

    /// A block with the contents of `block`, as far as both reach, which replaces it; null when there is no memory,
    /// with `block` as it was. `bytes` is at least 1 and at most [`LARGEST`].
    ///
    /// # Safety
    /// As C's `realloc`.
    unsafe fn reallocate(&self, block: NonNull<u8>, bytes: usize) -> *mut u8;

    /// Bytes that the program may use of a block.
    ///
    /// # Safety
    /// `block` is a live block.
    unsafe fn usable(&self, block: NonNull<u8>) -> usize;

    /// Counts a call that returned null.
    fn failed(&self);

    /// The control contract's `census`.
    ///
    /// # Safety
    /// As `include/heaptoll.h` requires.
    unsafe fn census(&self, census: &mut RawCensus) -> c_int;

    /// The control contract's `check`.
    fn check(&self) -> c_int;

    /// The control contract's `collect`.
    fn collect(&self) -> c_int {
        libc::ENOTSUP
    }

    /// The control contract's `listen`.
    fn listen(&self, function: Option<EventFunction>, context: *mut c_void) -> c_int;

    /// At process start, when there is one thread. The manager has perhaps served calls before, of objects that were
    /// initialised earlier.
    fn start(&'static self);

    /// At process end, when other threads may still run. It may come in a signal handler that interrupted the
    /// manager.
    fn finish(&self);

    /// fork's prepare handler.
    fn before_fork(&self);

    /// fork's handler in the parent.
    fn after_fork(&self);

    /// fork's handler in the child, whose only thread is the caller.
    fn after_fork_in_child(&self);
}
