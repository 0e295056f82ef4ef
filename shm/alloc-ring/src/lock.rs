//! The lock of rare operations: registration, and writes to the ring that threads share.

use crate::atomic::{AtomicU32, Ordering};
use crate::bounds::{LOCK_SPINS, LOCK_YIELDS};
use crate::sys;

/// Takes a spin lock. Its holders wait for nothing but, at worst, the tool. A holder that has died is found by its
/// kernel number, a thread of process `pid` (0: not known yet). False when the caller itself holds the lock: it is a
/// signal handler that interrupted the holder.
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
        if rounds < LOCK_SPINS {
            sys::spin();
        } else if rounds < LOCK_YIELDS {
            sys::yield_now();
        } else {
            sys::futex_wait(word, held, 200_000);
            if held & 1 << 31 == 0
                && held != 0
                && pid != 0
                && rounds.is_multiple_of(64)
                && !sys::thread_exists(pid as i32, held as i32)
                // A child of vfork is not a thread of the process.
                && !sys::exists(held as i32)
                && word.compare_exchange(held, holder, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return true;
            }
        }
    }
}

#[cfg(all(test, feature = "tool"))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    #[test]
    fn a_lock_is_taken_from_the_dead_and_not_from_a_child_of_vfork() {
        // Another process, as a child of vfork is one.
        let mut other = std::process::Command::new("sleep").arg("100").spawn().expect("it runs");
        let word = AtomicU32::new(other.id());
        let taken = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mine = lock(&word, sys::gettid() as u32, std::process::id());
                taken.store(mine, Ordering::SeqCst);
            });
            std::thread::sleep(Duration::from_millis(400));
            let early = taken.load(Ordering::SeqCst);
            other.kill().and_then(|()| other.wait()).expect("it ends");
            assert!(!early, "its holder was alive");
        });
        assert!(taken.load(Ordering::SeqCst));
    }
}
