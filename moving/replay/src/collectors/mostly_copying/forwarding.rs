//! Where an object has gone: its header is replaced by a word that no header is, and the word after it by the new
//! address. Every object has two words.

/// A header of no words of which some hold references.
const FORWARDED: u64 = ((1 << 18) - 1) << 18;

/// Copies an object of so many bytes, and leaves where to.
///
/// # Safety
/// `from` is an object that was not copied in this collection; `to` begins as many bytes that nothing uses.
pub unsafe fn copy(from: usize, to: usize, bytes: usize) {
    // SAFETY: the precondition of this function: both are apart, and have two words at least.
    unsafe {
        std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes);
        (from as *mut u64).write(FORWARDED);
        (from as *mut usize).add(1).write(to);
    }
}

/// Where an object has gone, if it has.
///
/// # Safety
/// `address` is that of an object, or of what [`copy`] left of it.
pub unsafe fn new_address(address: usize) -> Option<usize> {
    // SAFETY: the precondition of this function: every object has two words.
    unsafe {
        let forwarded = (address as *const u64).read() == FORWARDED;
        forwarded.then(|| (address as *const usize).add(1).read())
    }
}
