//! What the program did wrong: written once of each sort, and the call ignored; or the end of the process, where
//! `TITHE_ABORT` wants it.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use heaptoll_floor::{Message, Misuse};

/// Sorts that were told.
static REPORTED: AtomicU8 = AtomicU8::new(0);

/// A wrong call ends the process.
static ABORTS: AtomicBool = AtomicBool::new(false);

/// Has wrong calls end the process, or not.
pub fn abort(aborts: bool) {
    ABORTS.store(aborts, Ordering::Relaxed);
}

/// Tells of a wrong address once a sort.
#[cold]
#[inline(never)]
pub fn report(call: &str, address: usize, misuse: Misuse) {
    let bit = match misuse {
        Misuse::DoubleFree => 1,
        Misuse::Foreign => 2,
        Misuse::Damaged => 4,
    };
    if REPORTED.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
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
    if ABORTS.load(Ordering::Relaxed) {
        line.abort();
    }
    line.text("; the call is ignored, and further ones of this sort are not told").write();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
