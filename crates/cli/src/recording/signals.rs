//! Signals to heaptoll while it records.

use heaptoll_record::Interrupt;
use signal_hook::iterator::Signals;

use crate::interrupt::is_ignored;
use heaptoll_experiments::failure::Failure;

/// Catches the signals of a user or a supervisor. Those that the caller ignores (`nohup`, `command &` in a script) stay
/// ignored, for the program inherits that.
///
/// # Errors
/// The system refuses a handler.
pub fn watch(interrupt: &Interrupt) -> Result<(), Failure> {
    let wanted = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM];
    let caught: Vec<i32> = wanted.into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let mut signals = Signals::new(caught).map_err(crate::exit::cannot_watch)?;
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
