//! The lock of what happens seldom: registration, and the ring that threads share.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// Takes a spin lock. Its holders do not wait for anything but, at worst, the tool. A holder that has died is known by
/// its kernel number, a thread of process `pid` (0: not known yet). False when the holder is the caller, a signal handler
/// that has interrupted itself.
#[must_use]
pub(crate) fn lock(word: &AtomicU32, holder: u32, pid: u32) -> bool {
    let mut rounds = 0u32;
    loop {
        let held = match word.compare_exchange_weak(0, holder, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(held) => held,
        };
        if held == holder {
            return false;
        }
        rounds += 1;
        if rounds < 64 {
            core::hint::spin_loop();
        } else if rounds < 1000 {
            sys::yield_now();
        } else {
            sys::futex_wait(word, held, 200_000);
            if held & 1 << 31 == 0
                && held != 0
                && pid != 0
                && rounds.is_multiple_of(64)
                && !sys::thread_exists(pid as i32, held as i32)
                && word.compare_exchange(held, holder, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return true;
            }
        }
    }
}
