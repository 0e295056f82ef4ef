//! What the user asks for while a program is being recorded, by signals to heaptoll.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// Shared between whoever catches signals and the recorder, which looks at it every few milliseconds.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    asked: AtomicU32,
    forward: AtomicI32,
}

impl Interrupt {
    /// Ctrl-C, and what else a terminal sends to all that it runs. The first time the program has got it too and decides
    /// what it does; the recording goes on until it ends. The second time the recording stops, and the program goes on
    /// without it.
    pub fn ask(&self) {
        self.0.asked.fetch_add(1, Relaxed);
    }

    /// A signal that was meant for the program and reached heaptoll alone, as `kill` sends it: it is passed on. It
    /// counts as asked for, too.
    pub fn pass_on(&self, signal: i32) {
        self.0.forward.store(signal, Relaxed);
        self.ask();
    }

    /// How often it was asked.
    pub(crate) fn asked(&self) -> u32 {
        self.0.asked.load(Relaxed)
    }

    /// A signal to pass on, once.
    pub(crate) fn take_signal(&self) -> Option<i32> {
        match self.0.forward.swap(0, Relaxed) {
            0 => None,
            signal => Some(signal),
        }
    }
}

/// A signal that ended the program reaches us at the same time, and is noticed within this time on a loaded machine.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Which interrupts were the program's.
#[derive(Debug, Default)]
pub(crate) struct Whose {
    /// How many there had been when the program was found to have ended.
    before_end: Option<u32>,
    /// Whether the one that ended it may not have been noticed here yet.
    one_to_come: bool,
}

impl Whose {
    /// The program has ended; `asked` was read just before that was looked for.
    pub fn program_ended(&mut self, asked: u32, by_signal: bool) {
        self.before_end = Some(asked);
        self.one_to_come = by_signal && asked == 0;
    }

    /// Whether `asked` interrupts stop the recording, so long after the program's end.
    pub fn stop(&mut self, asked: u32, since_end: Duration) -> bool {
        let Some(before) = self.before_end else { return asked >= 2 };
        if self.one_to_come && asked > before && since_end < SAME_SIGNAL {
            self.one_to_come = false;
            self.before_end = Some(before + 1);
            return asked > before + 1;
        }
        asked >= 2 || asked > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_after_the_programs_end_stops_the_recording() {
        let mut whose = Whose::default();
        assert!(!whose.stop(0, Duration::ZERO));
        whose.program_ended(0, false);
        assert!(!whose.stop(0, Duration::ZERO));
        assert!(whose.stop(1, Duration::ZERO), "also one that comes before its end is dealt with");
    }

    #[test]
    fn the_interrupt_that_ends_the_program_does_not_stop_the_recording_of_others() {
        let mut early = Whose::default();
        assert!(!early.stop(1, Duration::ZERO));
        early.program_ended(1, true);
        assert!(!early.stop(1, Duration::ZERO));
        assert!(early.stop(2, Duration::ZERO));
        let mut late = Whose::default();
        late.program_ended(0, true);
        assert!(!late.stop(1, Duration::from_millis(30)), "it was noticed here after the end");
        assert!(!late.stop(1, SAME_SIGNAL * 2));
        assert!(late.stop(2, SAME_SIGNAL * 2));
    }

    #[test]
    fn a_program_that_another_signal_killed_leaves_the_first_interrupt_to_us() {
        let mut whose = Whose::default();
        whose.program_ended(0, true);
        assert!(whose.stop(1, SAME_SIGNAL * 2));
    }
}
