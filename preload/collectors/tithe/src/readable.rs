//! Which parts of a root can be read now: the program may have unmapped others without removing the root.

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
