//! The values of signals that the program has queued to itself and that wait: nothing that a process may read shows them,
//! so they are recorded when it calls `sigqueue` or `pthread_sigqueue`.
//!
//! A value is kept until its signal waits for no thread any more: by then it is in the memory of who took it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use heaptoll_assertions::assert_internal;

/// How many values are recorded at most. Where more wait, those that came last are not, which [`are_lost`] states.
const VALUES: usize = 256;

/// One value.
struct Queued {
    /// 0: free. Otherwise the signal, and whether the call that queues it goes on.
    state: AtomicU32,
    /// The value's complement: these statics are roots themselves, and would keep what the value points to for ever.
    hidden: AtomicUsize,
}

/// Added to the signal while the call goes on: the signal does not wait yet.
const CALLING: u32 = 1 << 8;

static QUEUED: [Queued; VALUES] =
    [const { Queued { state: AtomicU32::new(0), hidden: AtomicUsize::new(0) } }; VALUES];
/// A value was recorded since the process began.
static USED: AtomicBool = AtomicBool::new(false);
/// There was no space for a value.
static LOST: AtomicBool = AtomicBool::new(false);

/// Whether the program has queued values: if so, stops read from the kernel which signals wait.
pub fn are_used() -> bool {
    USED.load(Ordering::SeqCst)
}

/// Whether the program has queued more values than are recorded.
pub fn are_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Records a value while `call` queues it, and from then on if it returns 0. A handler may call this.
pub fn record(signal: c_int, value: usize, call: impl FnOnce() -> c_int) -> c_int {
    let signal = match u32::try_from(signal) {
        Ok(signal @ 1..=64) => signal,
        // Nothing is queued.
        _ => return call(),
    };
    USED.store(true, Ordering::SeqCst);
    let free = QUEUED.iter().find(|queued| {
        let calling = signal | CALLING;
        queued.state.compare_exchange(0, calling, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    });
    let Some(queued) = free else {
        LOST.store(true, Ordering::Relaxed);
        return call();
    };
    // A stop before this line finds the value in the registers or on the stack of this thread.
    queued.hidden.store(!value, Ordering::SeqCst);
    let status = call();
    queued.state.store(if status == 0 { signal } else { 0 }, Ordering::SeqCst);
    status
}

/// Shows the values that wait; forgets the others. The world is stopped, and `pending` are the signals that wait for any
/// thread.
///
/// # Errors
/// What `visit` returns.
pub fn visit<E>(pending: u64, visit: &mut dyn FnMut(usize) -> Result<(), E>) -> Result<(), E> {
    if !are_used() {
        return Ok(());
    }
    for queued in &QUEUED {
        let state = queued.state.load(Ordering::SeqCst);
        if state == 0 {
            continue;
        }
        let signal = state & !CALLING;
        assert_internal!((1..=64).contains(&signal), "a value was queued with a signal");
        if state & CALLING != 0 || pending >> (signal - 1) & 1 != 0 {
            visit(!queued.hidden.load(Ordering::SeqCst))?;
        } else {
            queued.state.store(0, Ordering::SeqCst);
        }
    }
    Ok(())
}
