//! An object in memory: its header, then the program's words.

use crate::header::{Header, WORD};

/// Makes one.
///
/// # Safety
/// `address` begins [`Header::total_bytes`] bytes that nothing uses.
#[inline(always)]
pub unsafe fn create(address: usize, header: &Header) {
    // SAFETY: the precondition of this function.
    unsafe {
        (address as *mut u8).write_bytes(0, header.total_bytes());
        header.write(address as *mut u64);
    }
}

/// The header of one.
///
/// # Safety
/// `address` is that of an object.
#[inline(always)]
pub unsafe fn header(address: usize) -> Header {
    // SAFETY: the precondition of this function.
    unsafe { Header::read(address as *const u64) }
}

/// The words of one that may hold references.
///
/// # Safety
/// `address` is that of an object, and what uses a word uses none of an object that is gone.
#[inline(always)]
pub unsafe fn slots(address: usize) -> impl Iterator<Item = *mut usize> {
    // SAFETY: the precondition of this function.
    let header = unsafe { header(address) };
    let first = (address + header.own_words() as usize * WORD) as *mut usize;
    (0..header.scanned as usize).map(move |word| first.wrapping_add(word))
}

/// The objects that one leads to.
///
/// # Safety
/// As for [`slots`].
#[inline(always)]
pub unsafe fn references(address: usize) -> impl Iterator<Item = usize> {
    // SAFETY: the precondition of this function; slots are words of the object.
    unsafe { slots(address).map(|slot| slot.read()).filter(|&to| to != 0) }
}

/// A word of one.
///
/// # Safety
/// `address` is that of an object with this word.
#[inline(always)]
pub unsafe fn slot(address: usize, word: u32) -> *mut usize {
    // SAFETY: the precondition of this function.
    let own = unsafe { header(address) }.own_words() as usize;
    (address + (own + word as usize) * WORD) as *mut usize
}
