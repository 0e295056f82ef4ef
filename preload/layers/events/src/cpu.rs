//! Processor time of threads, recorded where the tool requests it: other work on the machine is not in it.

use core::sync::atomic::{AtomicBool, Ordering};

static RECORDED: AtomicBool = AtomicBool::new(false);

/// Records the processor time of requests from now on.
pub fn record() {
    RECORDED.store(true, Ordering::Relaxed);
}

/// Processor time of the calling thread so far, ns; `None` where it is not recorded. A system call, which changes
/// `errno` only where it fails: it cannot with these arguments.
#[inline(always)]
pub fn time() -> Option<u64> {
    RECORDED.load(Ordering::Relaxed).then(of_thread)
}

#[inline(never)]
fn of_thread() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to `now`, a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
