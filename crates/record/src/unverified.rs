//! Process images that may never have existed: a program whose memory is corrupted can write into the list of processes
//! for ever.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Traces without an event that are made for processes which were gone when they arrived.
const EMPTY_TRACES: usize = 2048;

/// The state of these checks.
#[derive(Debug, Default)]
pub struct UnverifiedImages {
    /// Traces that are being written of processes that were gone when they arrived.
    open: HashSet<PathBuf>,
    /// How many of those that have ended have no event.
    empty: usize,
    corrupted: bool,
}

impl UnverifiedImages {
    /// Whether a process that was gone when it arrived gets a trace.
    pub fn admits(&mut self) -> bool {
        self.corrupted |= self.empty >= EMPTY_TRACES;
        self.empty < EMPTY_TRACES
    }

    /// The trace of such a process begins.
    pub fn begins(&mut self, path: PathBuf) {
        self.open.insert(path);
    }

    /// A trace has ended with this many events.
    pub fn ends(&mut self, path: &Path, events: u64) {
        if self.open.remove(path) && events == 0 {
            self.empty += 1;
        }
    }

    /// An image cannot have existed.
    pub fn found_corruption(&mut self) {
        self.corrupted = true;
    }

    /// Whether an image cannot have existed, or too many traces of such processes were empty.
    pub fn are_corrupted(&self) -> bool {
        self.corrupted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_were_never_seen_and_recorded_nothing_get_a_bounded_number_of_traces() {
        let mut unverified = UnverifiedImages::default();
        let mut one = |number: usize, events| {
            let path = PathBuf::from(number.to_string());
            let admitted = unverified.admits();
            unverified.begins(path.clone());
            unverified.ends(&path, events);
            admitted
        };
        assert!((0..2 * EMPTY_TRACES).all(|number| one(number, 1)), "these recorded something");
        assert!((0..EMPTY_TRACES).all(|number| one(number, 0)));
        assert!(!one(0, 0));
        assert!(unverified.are_corrupted());
    }
}
