//! Interrupts of a recording: what the user requests by signals to heaptoll.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Shared between the signal handler and the recorder, which reads it every few milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    count: AtomicU32,
    forward: AtomicI32,
}

impl Interrupt {
    /// Ctrl-C, and what else a terminal sends to all processes that it runs. The first one reaches the program too,
    /// which decides what it does; the recording goes on until the program ends. The second one stops the recording,
    /// and the program goes on without it.
    pub fn raise(&self) {
        self.0.count.fetch_add(1, Relaxed);
    }

    /// A signal that was meant for the program and reached heaptoll alone, as `kill` sends it: it is passed on. It
    /// counts as an interrupt, too.
    pub fn pass_on(&self, signal: i32) {
        self.0.forward.store(signal, Relaxed);
        self.raise();
    }

    /// Number of interrupts so far.
    pub(crate) fn count(&self) -> u32 {
        self.0.count.load(Relaxed)
    }

    /// A signal to pass on, once.
    pub(crate) fn take_signal(&self) -> Option<i32> {
        match self.0.forward.swap(0, Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}

/// A signal that ended the program reaches heaptoll at the same time, and is noticed within this time on a loaded
/// machine.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Decides which interrupts were meant for the program and which stop the recording.
#[derive(Debug, Default)]
pub(crate) struct InterruptPolicy {
    /// Number of interrupts when the program was found to have ended.
    before_end: Option<u32>,
    /// Whether the one that ended it may not have been noticed here yet.
    interrupt_pending: bool,
}

impl InterruptPolicy {
    /// The program has ended; `interrupts` was read just before that was checked.
    pub fn program_ended(&mut self, interrupts: u32, by_signal: bool) {
        self.before_end = Some(interrupts);
        self.interrupt_pending = by_signal && interrupts == 0;
    }

    /// Whether this number of interrupts stops the recording, `since_end` after the program's end.
    pub fn stop(&mut self, interrupts: u32, since_end: Duration) -> bool {
        let Some(before) = self.before_end else { return interrupts >= 2 };
        if self.interrupt_pending && interrupts > before && since_end < SAME_SIGNAL {
            self.interrupt_pending = false;
            self.before_end = Some(before + 1);
            return interrupts > before + 1;
        }
        interrupts >= 2 || interrupts > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_after_the_programs_end_stops_the_recording() {
        let mut policy = InterruptPolicy::default();
        assert!(!policy.stop(0, Duration::ZERO));
        policy.program_ended(0, false);
        assert!(!policy.stop(0, Duration::ZERO));
        assert!(policy.stop(1, Duration::ZERO), "also one that comes before its end is handled");
    }

    #[test]
    fn the_interrupt_that_ends_the_program_does_not_stop_the_recording_of_others() {
        let mut early = InterruptPolicy::default();
        assert!(!early.stop(1, Duration::ZERO));
        early.program_ended(1, true);
        assert!(!early.stop(1, Duration::ZERO));
        assert!(early.stop(2, Duration::ZERO));
        let mut late = InterruptPolicy::default();
        late.program_ended(0, true);
        assert!(!late.stop(1, Duration::from_millis(30)), "it was noticed here after the end");
        assert!(!late.stop(1, SAME_SIGNAL * 2));
        assert!(late.stop(2, SAME_SIGNAL * 2));
    }

    #[test]
    fn a_program_that_another_signal_killed_leaves_the_first_interrupt_to_the_recorder() {
        let mut policy = InterruptPolicy::default();
        policy.program_ended(0, true);
        assert!(policy.stop(1, SAME_SIGNAL * 2));
    }
}
