//! Signals that cancel what heaptoll runs.

use heaptoll_experiment::interrupt::Interrupt;
use signal_hook::iterator::Signals;

use crate::exit;
use heaptoll_command::failure::Failure;

/// An interrupt that Ctrl-C and its like set.
///
/// # Errors
/// Signals cannot be caught.
pub fn watch() -> Result<Interrupt, Failure> {
    let interrupt = Interrupt::default();
    let mut signals = vec![libc::SIGINT, libc::SIGTERM];
    // Under `nohup` the caller wants heaptoll to outlive the terminal.
    if !is_ignored(libc::SIGHUP) {
        signals.push(libc::SIGHUP);
    }
    let mut signals = Signals::new(signals).map_err(exit::cannot_watch)?;
    let shared = interrupt.clone();
    in_a_thread(move || {
        let mut count = 0;
        for signal in signals.forever() {
            count = if shared.is_set() { count + 1 } else { 1 };
            shared.set();
            // A supervisor waits for no program that ends in its own way.
            if signal != libc::SIGINT {
                shared.set();
            }
            // The first requests an orderly end, which may take a run; the third exits at once, and the launcher
            // cleans up.
            if count >= 3 {
                std::process::exit(i32::from(exit::INTERRUPTED));
            }
        }
    })?;
    Ok(interrupt)
}

pub(crate) fn in_a_thread(watch: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    std::thread::Builder::new().spawn(watch).map(drop).map_err(exit::cannot_watch)
}

/// Whether the caller had a signal ignored, which the programs that heaptoll runs inherit.
pub(crate) fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeroes is a valid `sigaction`; with a null new action the call only writes to the old one, a live
    // local.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
