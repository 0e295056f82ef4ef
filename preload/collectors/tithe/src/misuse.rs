//! Misuse by the program: the first of each sort is reported and the call is ignored, or, with `TITHE_ABORT=on`, the
//! process ends.

use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use heaptoll_runtime::{Message, Misuse};

/// Sorts of misuse already reported, one bit each.
static REPORTED: AtomicU8 = AtomicU8::new(0);

/// Whether a wrong call ends the process.
static ABORTS: AtomicBool = AtomicBool::new(false);

/// Sets whether a wrong call ends the process.
pub fn abort(aborts: bool) {
    ABORTS.store(aborts, Ordering::Relaxed);
}

/// A block that was written after its free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateWrite {
    pub address: usize,
    pub to_stderr: bool,
}

impl LateWrite {
    /// Reports it, once: to standard error, or only by ending the process. The program runs, and no lock is held.
    #[cold]
    #[inline(never)]
    pub fn report(&self) {
        if self.to_stderr || ABORTS.load(Ordering::Relaxed) {
            let line = Message::new().text("tithe: ").address(self.address);
            write_once(8, line.text(": this block was written after its free"));
        }
    }
}

/// Reports a wrong address, once for each sort.
#[cold]
#[inline(never)]
pub fn report(call: &str, address: usize, misuse: Misuse) {
    let bit = match misuse {
        Misuse::DoubleFree => 1,
        Misuse::Foreign => 2,
        Misuse::Damaged => 4,
    };
    let text = match misuse {
        Misuse::DoubleFree => "this block is free already (a double free)",
        Misuse::Foreign => "this address was not allocated here",
        Misuse::Damaged => "this address is not where a block begins",
    };
    let line = Message::new().text("tithe: ").text(call).text("(").address(address).text("): ").text(text);
    let line = if ABORTS.load(Ordering::Relaxed) { line } else { line.text("; the call is ignored") };
    write_once(bit, line);
}

/// Writes a line about a sort of misuse that has not been reported.
fn write_once(bit: u8, line: Message) {
    if REPORTED.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
        return;
    }
    // SAFETY: errno's address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    if ABORTS.load(Ordering::Relaxed) {
        line.abort();
    }
    line.text(", and further ones of this sort are not reported").write();
    // SAFETY: errno's address is valid for the calling thread.
    unsafe { *libc::__errno_location() = errno };
}
