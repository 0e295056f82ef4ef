//! A signal-mask guard: while it lives, no signal handler of the program's runs on this thread.
//!
//! A collection holds every lock of the heap, and signals become pending while the world is stopped. If one were
//! handled before the locks are released, a handler that forks would leave its child a heap that is locked for ever.

use core::ffi::c_int;
use core::ptr;

use heaptoll_marking::call;
use heaptoll_roots::DEFAULT_SIGNAL;

use crate::signal::LINKED_SIGNAL_OFFSET;

/// Signals that stay unblocked, by number: those of the C library, one of which stops threads, and the one by which a
/// second heap in the process stops them. Two heaps that collect at once would otherwise wait for each other.
const OPEN: [u32; 3] = [32, DEFAULT_SIGNAL as u32, (HIGHEST - LINKED_SIGNAL_OFFSET) as u32];
/// The highest signal, the C library's SIGRTMAX.
const HIGHEST: c_int = 64;

/// All other signals are blocked until it is dropped.
pub struct SignalMaskGuard {
    /// What the thread blocked before.
    former: u64,
}

impl SignalMaskGuard {
    pub fn new() -> SignalMaskGuard {
        let mut former = 0;
        mask(OPEN.iter().fold(u64::MAX, |all, signal| all & !(1 << (signal - 1))), &raw mut former);
        SignalMaskGuard { former }
    }
}

impl Drop for SignalMaskGuard {
    fn drop(&mut self) {
        mask(self.former, ptr::null_mut());
    }
}

fn mask(signals: u64, former: *mut u64) {
    let how = libc::SIG_SETMASK as usize;
    // SAFETY: the kernel reads `signals`, a set of 64 signals, and writes `former` if it is not null.
    unsafe { call(libc::SYS_rt_sigprocmask, [how, (&raw const signals) as usize, former as usize, 8]) };
}
