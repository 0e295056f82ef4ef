//! Reading roots: which parts of one can be read now, as the program may have unmapped others without removing the root,
//! and words at any address.

use core::ops::Range;

use heaptoll_assertions::assert_internal;
use heaptoll_roots::is_readable;
use heaptoll_runtime::PAGE;

/// Visits the parts of a range that can be read now, page by page; the program may have unmapped others without
/// removing the root. `range` is of whole words.
pub fn readable(range: Range<usize>, visit: &mut dyn FnMut(Range<usize>)) {
    let mut at = range.start;
    while at < range.end {
        let end = (at / PAGE + 1).saturating_mul(PAGE).min(range.end);
        assert_internal!(at < end && end <= range.end, "a range is read page by page, up to its end");
        // The kernel takes a set of signals at 0 for no set.
        if is_readable(at.max(size_of::<usize>())) {
            visit(at..end);
        }
        at = end;
    }
}

/// Reads a word at any address. Byte by byte: the stack that this runs on may be read too, and an unaligned read would copy
/// a word there onto itself.
///
/// # Safety
/// The word's bytes are readable.
#[inline(always)]
pub unsafe fn word_at(address: usize) -> usize {
    usize::from_ne_bytes(core::array::from_fn(|byte| {
        // SAFETY: this function's contract.
        unsafe { ((address + byte) as *const u8).read_volatile() }
    }))
}
