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
    std::thread::spawn(move || {
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
    });
    Ok(interrupt)
}

/// Catches the signals of a user or a supervisor while a program is recorded. Those that the caller ignores (`nohup`,
/// `command &` in a script) stay ignored, for the program inherits that.
///
/// # Errors
/// Signals cannot be caught.
pub fn pass_on(interrupt: &heaptoll_runs::record::Interrupt) -> Result<(), Failure> {
    let wanted = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM];
    let caught: Vec<i32> = wanted.into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let mut signals = Signals::new(caught).map_err(exit::cannot_watch)?;
    let interrupt = interrupt.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            match signal {
                // A supervisor's signal for the program; a signal of the terminal has reached the program by itself.
                libc::SIGTERM => interrupt.pass_on(signal),
                _ => interrupt.raise(),
            }
        }
    });
    Ok(())
}

/// Whether the caller had a signal ignored, which the programs that heaptoll runs inherit.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeroes is a valid `sigaction`; with a null new action the call only writes to the old one, a live
    // local.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
