//! The signal that stops threads, and the one that a linked heap takes instead.

use core::ffi::c_int;

use heaptoll_roots::DEFAULT_SIGNAL;
use heaptoll_runtime::{single_threaded, system_call};

/// Distance below the highest signal of the one that a linked heap takes where another heap has taken its own: with one
/// signal for both, each handler would forward a foreign signal to the other, for ever.
const LINKED_SIGNAL_OFFSET: c_int = 7;

/// The highest signal, the C library's SIGRTMAX.
const HIGHEST: c_int = 64;

/// Signals that stay unblocked during a collection: those of the C library, one of which stops threads, and the one by
/// which a second heap in the process stops them. Two heaps that collect at once would otherwise wait for each other.
const UNBLOCKED: [c_int; 3] = [32, DEFAULT_SIGNAL, HIGHEST - LINKED_SIGNAL_OFFSET];

/// Signals that stay unblocked until the world stops, when all are blocked. While there is one thread no other heap stops
/// it, and all are blocked from the beginning: that saves two system calls.
pub fn unblocked() -> &'static [c_int] {
    if single_threaded() { &[] } else { &UNBLOCKED }
}

/// The signal by which a heap stops threads: the user's, or the default. A linked heap takes another where that is
/// handled already.
pub fn stopping_signal(wanted: Option<c_int>, is_linked: bool) -> c_int {
    let signal = wanted.unwrap_or(DEFAULT_SIGNAL);
    if is_linked && is_handled(signal) { libc::SIGRTMAX() - LINKED_SIGNAL_OFFSET } else { signal }
}

/// Whether a handler is set for the signal. glibc's own function refuses to report on the signals that glibc uses.
fn is_handled(signal: c_int) -> bool {
    let mut action = [0_usize; 4];
    // SAFETY: `action` is as long as the kernel's structure, which begins with the handler; without a new action the
    // call changes nothing.
    let status = unsafe {
        let place = action.as_mut_ptr() as usize;
        system_call(libc::SYS_rt_sigaction, [signal as usize, 0, place, size_of::<u64>(), 0, 0])
    };
    status == 0 && action[0] != libc::SIG_DFL && action[0] != libc::SIG_IGN
}

const _: () = assert!(DEFAULT_SIGNAL != 0);
