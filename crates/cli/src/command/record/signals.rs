//! Signals to heaptoll while it records.

use heaptoll_record::Interrupt;
use signal_hook::iterator::Signals;

use crate::failure::Failure;

/// Catches what a user or a supervisor sends. What the caller has us ignore (`nohup`, `command &` in a script) stays
/// ignored, for the program inherits it.
///
/// # Errors
/// The system does not let us.
pub fn watch(interrupt: &Interrupt) -> Result<(), Failure> {
    let wanted = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM];
    let caught: Vec<i32> = wanted.into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let mut signals = Signals::new(caught).map_err(Failure::Signals)?;
    let interrupt = interrupt.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            match signal {
                // A supervisor's word for the program; what a terminal sends has reached the program by itself.
                libc::SIGTERM => interrupt.pass_on(signal),
                _ => interrupt.ask(),
            }
        }
    });
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeroes is a valid sigaction, which is only filled in.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
