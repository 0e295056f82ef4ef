//! The collector's own tables: mappings outside of the heap, which grow and may move.

use core::marker::PhantomData;
use core::ops::Range;
use core::ptr;

use heaptoll_runtime::{PAGE, round_up};

/// An array of `T` in a mapping of its own, zeroed from the start.
#[derive(Debug)]
pub struct Buffer<T> {
    start: usize,
    bytes: usize,
    of: PhantomData<T>,
}

impl<T> Buffer<T> {
    /// Nothing yet.
    pub const fn new() -> Buffer<T> {
        Buffer { start: 0, bytes: 0, of: PhantomData }
    }

    /// How many elements there is space for.
    pub const fn capacity(&self) -> usize {
        self.bytes / size_of::<T>()
    }

    /// Where it lies: to be left out of the roots.
    pub const fn range(&self) -> Range<usize> {
        self.start..self.start + self.bytes
    }

    /// Makes space for `elements`, twice what there was at least; new ones are zero. `None` when the system gives no
    /// more: it is as it was. Keeps `errno`.
    pub fn reserve(&mut self, elements: usize) -> Option<()> {
        let bytes = elements.checked_mul(size_of::<T>())?;
        if bytes <= self.bytes {
            return Some(());
        }
        // SAFETY: errno's address is valid for the calling thread.
        let errno = unsafe { *libc::__errno_location() };
        let grown = self.grow(bytes.max(2 * self.bytes)).or_else(|| self.grow(bytes));
        // SAFETY: errno's address is valid for the calling thread.
        unsafe { *libc::__errno_location() = errno };
        grown
    }

    fn grow(&mut self, bytes: usize) -> Option<()> {
        let bytes = round_up(bytes, PAGE);
        // SAFETY: a new mapping, or the one that is only this buffer's, which may move.
        let at = unsafe {
            match self.start {
                0 => libc::mmap(
                    ptr::null_mut(),
                    bytes,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                ),
                start => libc::mremap(start as *mut libc::c_void, self.bytes, bytes, libc::MREMAP_MAYMOVE),
            }
        };
        if at == libc::MAP_FAILED {
            return None;
        }
        (self.start, self.bytes) = (at as usize, bytes);
        Some(())
    }

    /// The address of an element.
    #[inline(always)]
    pub fn at(&self, index: usize) -> *mut T {
        debug_assert!(index < self.capacity());
        (self.start + index * size_of::<T>()) as *mut T
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Buffer::new()
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.start != 0 {
            // SAFETY: the mapping is this buffer's, and no element of it is used any more.
            unsafe { libc::munmap(self.start as *mut libc::c_void, self.bytes) };
        }
    }
}
