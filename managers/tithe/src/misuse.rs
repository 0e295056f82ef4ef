//! What the program did wrong: told once of each sort, and the call ignored.

use core::sync::atomic::{AtomicU8, Ordering};

use heaptoll_floor::{Message, Misuse};

/// Sorts that were told.
static TOLD: AtomicU8 = AtomicU8::new(0);

/// Tells of a wrong address once a sort.
#[cold]
#[inline(never)]
pub fn tell(call: &str, address: usize, misuse: Misuse) {
    let bit = match misuse {
        Misuse::DoubleFree => 1,
        Misuse::Foreign => 2,
        Misuse::Damaged => 4,
    };
    if TOLD.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return;
    }
    let text = match misuse {
        Misuse::DoubleFree => "this block is free already (a double free)",
        Misuse::Foreign => "this address was not allocated here",
        Misuse::Damaged => "this address is not where a block begins",
    };
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    let line = Message::new().text("tithe: ").text(call).text("(").address(address).text("): ").text(text);
    line.text("; the call is ignored, and further ones of this sort are not told").write();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
