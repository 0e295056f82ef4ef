//! The instructions of collections by phase, as the manager announces where each begins: what part of a collector is the
//! algorithm and what part the process of today, whose threads are stopped and whose mappings are searched for roots.

use heaptoll_reftrace::Clock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `heaptoll_phase` of include/heaptoll.h.
const STOP: u64 = 1;
const ROOTS: u64 = 2;
const MARK: u64 = 3;
const SWEEP: u64 = 4;
const RESUME: u64 = 5;

/// Instructions of all collections, by phase. Of the threads that collect; marker threads are in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// Stopping the world, until a root is found or marking begins: a manager without a phase of its own for roots
    /// finds them here.
    pub stop: u64,
    /// Finding roots, where that is announced.
    pub roots: u64,
    /// Marking, the words of roots included.
    pub mark: u64,
    /// Sweeping that is part of the collection.
    pub sweep: u64,
    /// Resuming the world, and what follows until the collection's end.
    pub resume: u64,
    /// From the collection's start to its first phase, and phases of other names.
    pub other: u64,
}

impl Phases {
    /// The sum.
    pub fn plus(self, other: Phases) -> Phases {
        Phases {
            stop: self.stop + other.stop,
            roots: self.roots + other.roots,
            mark: self.mark + other.mark,
            sweep: self.sweep + other.sweep,
            resume: self.resume + other.resume,
            other: self.other + other.other,
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.stop + self.roots + self.mark + self.sweep + self.resume + self.other
    }

    fn of(&mut self, phase: u64) -> &mut u64 {
        match phase {
            STOP => &mut self.stop,
            ROOTS => &mut self.roots,
            MARK => &mut self.mark,
            SWEEP => &mut self.sweep,
            RESUME => &mut self.resume,
            _ => &mut self.other,
        }
    }
}

/// The phase that a thread's collection is in.
#[derive(Debug, Clone, Copy, Default)]
pub struct PhaseClock {
    since: Option<(u64, Clock)>,
}

impl PhaseClock {
    /// A phase begins at the thread's clock; `None`: the collection ends.
    pub fn enters(&mut self, phase: Option<u64>, clock: Clock, phases: &mut Phases) {
        if let Some((before, begun)) = self.since {
            *phases.of(before) += clock.since(begun).instructions;
        }
        self.since = phase.map(|phase| (phase, clock));
    }

    /// Whether a collection runs.
    pub fn is_collecting(&self) -> bool {
        self.since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phase_has_the_instructions_until_the_next() {
        let (mut phases, mut clock) = (Phases::default(), PhaseClock::default());
        let at = |instructions| Clock { instructions, ..Clock::default() };
        for (phase, instructions) in [
            (Some(0), 100),
            (Some(STOP), 110),
            (Some(MARK), 150),
            (Some(SWEEP), 450),
            (Some(RESUME), 500),
            (None, 503),
        ] {
            clock.enters(phase, at(instructions), &mut phases);
        }
        let all = Phases { other: 10, stop: 40, mark: 300, sweep: 50, resume: 3, roots: 0 };
        assert_eq!((phases, phases.total(), clock.is_collecting()), (all, 403, false));
        clock.enters(None, at(900), &mut phases);
        assert_eq!(phases, all, "nothing ran");
    }
}
