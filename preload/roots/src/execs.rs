//! Calls of the exec family, made while no stop is in progress ([`crate::exec_gate`]).

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering;

use heaptoll_runtime::SignalMaskGuard;
use heaptoll_runtime::execs::AroundExec;

use crate::handshake::Handshake;
use crate::{kernel, signal};

/// Keeps stops away from a call, in the process whose threads are stopped: a child of vfork has its memory and is
/// another.
pub struct WithoutStops;

impl AroundExec for WithoutStops {
    fn around(_: *const c_char, call: impl FnOnce() -> c_int) -> c_int {
        let process = kernel::process();
        let Some(handshake) =
            Handshake::published().filter(|handshake| handshake.process.load(Ordering::Relaxed) == process)
        else {
            return call();
        };
        let generation = handshake.exec_gate.begin();
        take_late_signal(handshake);
        let failed = call();
        // A handler that interrupts the call may fork, and the child's gate knows of no call.
        if kernel::process() == process {
            handshake.exec_gate.end(generation);
        }
        failed
    }
}

/// Takes the signal of a stop that was given up, which this thread may block.
fn take_late_signal(handshake: &Handshake) {
    let thread = kernel::thread();
    let is_late = handshake.records.iter().any(|(_, record)| {
        record.tid.load(Ordering::Relaxed) == thread && record.pending.load(Ordering::SeqCst)
    });
    let signal = handshake.signal.load(Ordering::Relaxed);
    if is_late && signal::install(signal).is_ok() {
        drop(SignalMaskGuard::all_but(&[signal]));
    }
}
