//! Signals that end a recording, and those that its program gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use heaptoll_command::failure::Failure;
use heaptoll_experiment::sampler::tree;
use heaptoll_runs::record::Interrupt;
use signal_hook::iterator::Signals;

use crate::interrupt::{in_a_thread, is_ignored};
use crate::{exit, terminal};

/// Catches the signals of a user or a supervisor while a program is recorded. Those that the caller ignores (`nohup`,
/// `command &` in a script) stay ignored, for the program inherits that.
///
/// # Errors
/// Signals cannot be caught.
pub fn pass_on(interrupt: &Interrupt) -> Result<(), Failure> {
    let wanted = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM];
    let caught: Vec<i32> = wanted.into_iter().filter(|&signal| !is_ignored(signal)).collect();
    let mut signals = Signals::new(caught).map_err(exit::cannot_watch)?;
    let interrupt = interrupt.clone();
    in_a_thread(move || {
        for signal in signals.forever() {
            match signal {
                // A supervisor's signal for the program; a signal of the terminal has reached the program by itself.
                libc::SIGTERM => interrupt.pass_on(signal),
                _ => interrupt.raise(),
            }
        }
    })
}

/// Time for a program to end after the signal of Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);

/// Ends a recording this time after its program began. The program and all that it has started get the signal of Ctrl-C, as
/// from a terminal. If one of them still runs [`GRACE`] later, the recording ends without it. Gives whether the time is over.
///
/// # Errors
/// There is no thread for that.
pub fn end_after(time: Duration, interrupt: &Interrupt) -> Result<Arc<AtomicBool>, Failure> {
    let (is_over, interrupt) = (Arc::new(AtomicBool::new(false)), interrupt.clone());
    let shared = is_over.clone();
    in_a_thread(move || {
        while descendants().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(time);
        shared.store(true, Relaxed);
        interrupt.raise();
        for pid in descendants() {
            // SAFETY: kill takes plain numbers; one of a process that has ended is an error without effect.
            unsafe { libc::kill(pid, libc::SIGINT) };
        }
        std::thread::sleep(GRACE);
        // A second one after the program's end would cut short the search for names.
        let left = descendants();
        if !left.is_empty() {
            let each = left.iter().map(i32::to_string).collect::<Vec<_>>().join(", ");
            terminal::note(&format!(
                "{} s after the signal of Ctrl-C the program still runs; it goes on unrecorded (process {each})",
                GRACE.as_secs()
            ));
            interrupt.raise();
        }
    })?;
    Ok(is_over)
}

/// The processes that this one has started, and theirs.
fn descendants() -> Vec<i32> {
    tree(std::process::id() as i32).split_off(1)
}
