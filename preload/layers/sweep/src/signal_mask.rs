//! The signal mask during a collection: no handler of the program's runs on this thread.
//!
//! A collection holds locks, and signals gather while the world is stopped. Were they handled before the locks are
//! released, a handler that forks would leave its child a collector that is busy for ever.

use heaptoll_roots::DEFAULT_SIGNAL;
use heaptoll_roots::system_call;

/// Signals that stay open, by number: those of the C library, one of which stops threads.
const OPEN: [u32; 2] = [32, DEFAULT_SIGNAL as u32];

/// All signals of the program's are blocked until it is dropped.
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
        mask(self.former, core::ptr::null_mut());
    }
}

fn mask(signals: u64, former: *mut u64) {
    let how = libc::SIG_SETMASK as usize;
    // SAFETY: a set of 64 signals to read, and null or one to write.
    unsafe {
        system_call(libc::SYS_rt_sigprocmask, [how, (&raw const signals) as usize, former as usize, 8, 0, 0])
    };
}
