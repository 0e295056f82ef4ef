//! Process images that may never have been: a program that has run wild can write into the list of processes for ever.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Traces without an event that processes may have which were gone when they arrived.
const EMPTY_TRACES: usize = 2048;

/// What is known of them.
#[derive(Debug, Default)]
pub struct Strays {
    /// Traces that are being written of processes that were gone when they arrived.
    open: HashSet<PathBuf>,
    /// Of those that have ended, how many have no event.
    empty: usize,
    wild: bool,
}

impl Strays {
    /// Whether a process gets a trace that was gone when it arrived.
    pub fn admits(&mut self) -> bool {
        self.wild |= self.empty >= EMPTY_TRACES;
        self.empty < EMPTY_TRACES
    }

    /// The trace of such a process begins.
    pub fn begins(&mut self, path: PathBuf) {
        self.open.insert(path);
    }

    /// A trace has ended with so many events.
    pub fn ends(&mut self, path: &Path, events: u64) {
        if self.open.remove(path) && events == 0 {
            self.empty += 1;
        }
    }

    /// An image cannot have been.
    pub fn found_wild(&mut self) {
        self.wild = true;
    }

    /// Whether one cannot have been, or there were too many to believe in.
    pub fn are_wild(&self) -> bool {
        self.wild
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_nobody_saw_and_that_told_nothing_get_a_bounded_number_of_traces() {
        let mut strays = Strays::default();
        let mut one = |number: usize, events| {
            let path = PathBuf::from(number.to_string());
            let admitted = strays.admits();
            strays.begins(path.clone());
            strays.ends(&path, events);
            admitted
        };
        assert!((0..2 * EMPTY_TRACES).all(|number| one(number, 1)), "these told something");
        assert!((0..EMPTY_TRACES).all(|number| one(number, 0)));
        assert!(!one(0, 0));
        assert!(strays.are_wild());
    }
}
