//! Quiet: no handler of the program's runs on this thread.
//!
//! A collection holds every lock of the heap, and signals gather while the world stands. Were they handled before the
//! locks are given back, a handler that forks would leave its child a heap that is locked for ever.

use core::ptr;

use crate::sync::call;

/// All signals are blocked until it is dropped.
pub struct Quiet {
    /// What the thread blocked before.
    former: u64,
}

impl Quiet {
    pub fn new() -> Quiet {
        let mut former = 0;
        mask(u64::MAX, &raw mut former);
        Quiet { former }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        mask(self.former, ptr::null_mut());
    }
}

fn mask(signals: u64, former: *mut u64) {
    let how = libc::SIG_SETMASK as usize;
    // SAFETY: a set of 64 signals to read, and null or one to write.
    unsafe { call(libc::SYS_rt_sigprocmask, [how, (&raw const signals) as usize, former as usize, 8]) };
}
