//! A signal-mask guard: while it lives, no handler of the signals that it blocks runs on this thread.
//!
//! A collection holds locks, and signals become pending while the world is stopped. If one were handled before the locks
//! are released, a handler that forks would leave its child a heap that is locked for ever.

use core::ffi::c_int;
use core::marker::PhantomData;

use heaptoll_assertions::assert_internal;

use crate::system_call;

/// The thread blocks these signals until this is dropped; then those that it blocked before.
#[must_use]
pub struct SignalMaskGuard {
    /// Which signals the thread blocks.
    blocked: u64,
    /// What the thread blocked before.
    former: u64,
    /// To be dropped by the same thread.
    _here: PhantomData<*const ()>,
}

impl SignalMaskGuard {
    /// Blocks all signals but `open`, by number.
    pub fn all_but(open: &[c_int]) -> SignalMaskGuard {
        assert_internal!(
            open.iter().all(|signal| (1..=64).contains(signal)),
            "a signal is in the set of signals"
        );
        let signals = open.iter().fold(u64::MAX, |all, signal| all & !(1 << (signal - 1)));
        SignalMaskGuard { blocked: signals, former: block(signals), _here: PhantomData }
    }

    /// Whether all signals are blocked.
    pub fn is_of_all(&self) -> bool {
        self.blocked == u64::MAX
    }
}

impl Drop for SignalMaskGuard {
    fn drop(&mut self) {
        block(self.former);
    }
}

/// Makes the calling thread block these signals and no others; returns those that it blocked before.
fn block(signals: u64) -> u64 {
    let mut former = 0_u64;
    let how = libc::SIG_SETMASK as usize;
    let (new, old) = (&raw const signals as usize, &raw mut former as usize);
    // SAFETY: the kernel reads `signals` and writes `former`, eight bytes each.
    unsafe { system_call(libc::SYS_rt_sigprocmask, [how, new, old, size_of::<u64>(), 0, 0]) };
    former
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signals_that_were_blocked_before_are_blocked_again() {
        let mask = || block(u64::MAX);
        let former = mask();
        block(1 << 9);
        {
            let _guard = SignalMaskGuard::all_but(&[32, 34]);
            // The kernel never blocks SIGKILL and SIGSTOP.
            let unblockable = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
            let within = mask();
            assert_eq!(within, !(1 << 31 | 1 << 33 | unblockable));
            block(within);
        }
        assert_eq!(mask(), 1 << 9);
        block(former);
    }
}
