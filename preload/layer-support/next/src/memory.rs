//! A layer's own memory, from the system.
//!
//! It is named, for collectors that honour names: addresses of blocks lie in it, which are not the program's.

use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};

/// What it is called in `/proc/PID/maps`, where the kernel keeps names.
const NAME: &CStr = c"heaptoll layer";

/// Bytes in a page.
pub const PAGE: usize = 4096;

/// Keeps `errno` as the program has it.
fn keeping_errno<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: errno's address is valid for the calling thread.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let answer = work();
        *errno = before;
        answer
    }
}

/// New zeroed memory of whole pages.
pub fn map(bytes: usize) -> Option<NonNull<c_void>> {
    keeping_errno(|| {
        // SAFETY: a new mapping, whose failure is tested; its name concerns it alone, and nothing depends on it.
        unsafe {
            let made = libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            if made == libc::MAP_FAILED {
                return None;
            }
            libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, made, bytes, NAME.as_ptr());
            NonNull::new(made)
        }
    })
}

/// New zeroed memory, which takes up memory where it is touched only, and which a child of fork finds zeroed again; `None`
/// where the system cannot.
pub fn map_wiped_in_child(bytes: usize) -> Option<NonNull<c_void>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let made = keeping_errno(|| {
        // SAFETY: a new mapping, whose failure is tested; its name concerns it alone, and nothing depends on it.
        unsafe {
            let made = libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if made == libc::MAP_FAILED {
                return None;
            }
            libc::prctl(libc::PR_SET_VMA, libc::PR_SET_VMA_ANON_NAME, made, bytes, NAME.as_ptr());
            NonNull::new(made)
        }
    })?;
    // SAFETY: the advice concerns the mapping made above alone, and changes nothing in this process.
    if keeping_errno(|| unsafe { libc::madvise(made.as_ptr(), bytes, libc::MADV_WIPEONFORK) == 0 }) {
        return Some(made);
    }
    // SAFETY: the mapping was made above, and no address in it is kept.
    unsafe { unmap(made, bytes) };
    None
}

/// Enlarges a mapping of [`map`]; it may move.
///
/// # Safety
/// The mapping has `old` bytes, and no address in it is kept.
pub unsafe fn enlarge(memory: NonNull<c_void>, old: usize, new: usize) -> Option<NonNull<c_void>> {
    keeping_errno(|| {
        // SAFETY: the caller passes a mapping of [`map`] of `old` bytes, as this function requires.
        let made = unsafe { libc::mremap(memory.as_ptr(), old, new, libc::MREMAP_MAYMOVE) };
        if made == libc::MAP_FAILED { None } else { NonNull::new(made) }
    })
}

/// Unmaps a mapping.
///
/// # Safety
/// The mapping has so many bytes, and no address in it is kept.
pub unsafe fn unmap(memory: NonNull<c_void>, bytes: usize) {
    // SAFETY: the caller passes a mapping of [`map`] of so many bytes, as this function requires.
    keeping_errno(|| unsafe { libc::munmap(memory.as_ptr(), bytes) });
}
