//! Which parts of a root can be read now: the program may have unmapped others without removing the root.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr;

use heaptoll_assertions::assert_internal;
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

/// Whether a word can be read. The kernel reads the set of signals before it rejects the unknown command.
fn is_readable(address: usize) -> bool {
    const NOTHING_KNOWN: c_int = -1;
    // SAFETY: the kernel only reads the word, if it can, and changes nothing for a command that it does not know.
    let status =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, NOTHING_KNOWN, address, ptr::null::<c_void>(), 8) };
    // SAFETY: errno's address is valid for the calling thread. The callers restore its value.
    status == 0 || unsafe { *libc::__errno_location() } != libc::EFAULT
}
