//! Ctrl-C, once for the whole process: what runs is cancelled, what was measured is kept.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Shared by the signal thread and everything that starts processes.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    again: Arc<AtomicBool>,
    launchers: Arc<Mutex<Vec<u32>>>,
}

impl Interrupt {
    /// Whether the user has cancelled.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Whether the user has cancelled once more: what runs is to end at once.
    pub fn is_repeated(&self) -> bool {
        self.again.load(Ordering::Relaxed)
    }

    /// The flag itself, for code that only polls.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// The flag of the second request.
    pub fn flag_of_second(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.again)
    }

    /// Takes the request back where there was one and not two: it was for what has just ended. Gives whether it did.
    pub fn take_back(&self) -> bool {
        !self.is_repeated() && self.flag.swap(false, Ordering::Relaxed)
    }

    /// Cancels everything: launchers get SIGTERM, kill their program's whole tree and report.
    pub fn set(&self) {
        if self.flag.swap(true, Ordering::Relaxed) {
            self.again.store(true, Ordering::Relaxed);
        }
        self.send(libc::SIGTERM);
    }

    /// Passes Ctrl-C on to the programs, as a terminal would: each ends, or goes on, as it does without heaptoll.
    pub fn pass_on(&self) {
        self.send(libc::SIGINT);
    }

    fn send(&self, signal_number: i32) {
        for &pid in self.launchers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            signal(pid, signal_number);
        }
    }

    /// Registers a launcher that runs. If the user was faster, it is cancelled immediately.
    pub(crate) fn enter(&self, pid: u32) {
        self.launchers.lock().unwrap_or_else(PoisonError::into_inner).push(pid);
        if self.is_set() {
            cancel(pid);
        }
    }

    /// Whether no launcher runs.
    #[cfg(test)]
    pub(crate) fn is_idle(&self) -> bool {
        self.launchers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Deregisters it; must come before the launcher is reaped, while its number is still its own.
    pub(crate) fn leave(&self, pid: u32) {
        self.launchers.lock().unwrap_or_else(PoisonError::into_inner).retain(|&other| other != pid);
    }
}

/// Requests a launcher to end its program and report.
pub(crate) fn cancel(pid: u32) {
    signal(pid, libc::SIGTERM);
}

fn signal(launcher: u32, number: i32) {
    // SAFETY: kill takes plain numbers; the callers pass a child that has not been reaped, so the number is still its
    // own.
    unsafe { libc::kill(launcher as i32, number) };
}
