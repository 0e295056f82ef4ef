//! The pattern that a block is filled with, so that another owner of its bytes is noticed.

use libc::c_void;

/// Fills `size` bytes with a pattern that depends on `seed`.
///
/// # Safety
/// `block` has `size` writable bytes.
pub unsafe fn fill(block: *mut c_void, size: usize, seed: usize) {
    for at in (0..size).step_by(61) {
        // SAFETY: `at < size`, and the caller promises `size` writable bytes.
        unsafe { block.cast::<u8>().add(at).write_volatile((at ^ seed) as u8) }
    }
}

/// Whether the first `size` bytes still hold what [`fill`] wrote.
///
/// # Safety
/// `block` has `size` readable, initialised bytes.
pub unsafe fn holds(block: *const c_void, size: usize, seed: usize) -> bool {
    // SAFETY: `at < size`, and the caller promises `size` readable bytes.
    (0..size).step_by(61).all(|at| unsafe { block.cast::<u8>().add(at).read_volatile() } == (at ^ seed) as u8)
}
