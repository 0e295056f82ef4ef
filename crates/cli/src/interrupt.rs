//! Signals that cancel what heaptoll runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::sampler::tree;
use signal_hook::iterator::Signals;

use crate::{exit, terminal};
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

fn in_a_thread(watch: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    std::thread::Builder::new().spawn(watch).map(drop).map_err(exit::cannot_watch)
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
pub fn end_after(
    time: Duration,
    interrupt: &heaptoll_runs::record::Interrupt,
) -> Result<Arc<AtomicBool>, Failure> {
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

/// Whether the caller had a signal ignored, which the programs that heaptoll runs inherit.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeroes is a valid `sigaction`; with a null new action the call only writes to the old one, a live
    // local.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}
