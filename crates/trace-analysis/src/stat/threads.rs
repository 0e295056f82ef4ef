//! Allocations and frees by thread: a program whose threads free each other's objects demands more of a manager.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Threads that are distinguished; those with higher numbers are merged into the last.
const THREADS: usize = 1 << 20;

/// The figures of one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadFigures {
    /// Its number in the trace, in order of first events.
    pub thread: u32,
    /// Objects it made.
    pub objects: u64,
    /// Bytes it requested, growth of reallocs included.
    pub bytes: u64,
    /// Objects it resized.
    pub resizes: u64,
    /// Objects it freed.
    pub frees: u64,
    /// Of these, objects that another thread had allocated.
    pub frees_of_others: u64,
}

/// All threads.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    threads: Vec<ThreadFigures>,
}

impl Threads {
    /// The thread's sums.
    #[inline(always)]
    pub fn of(&mut self, thread: u32) -> &mut ThreadFigures {
        let index = thread as usize;
        if index < self.threads.len() {
            return &mut self.threads[index];
        }
        self.grow(index)
    }

    #[cold]
    fn grow(&mut self, index: usize) -> &mut ThreadFigures {
        let index = index.min(THREADS - 1);
        for thread in self.threads.len()..=index {
            self.threads.push(ThreadFigures { thread: thread as u32, ..ThreadFigures::default() });
        }
        &mut self.threads[index]
    }

    /// Threads with an event, by number.
    pub fn figures(self) -> Vec<ThreadFigures> {
        let mut threads = self.threads;
        threads.retain(|thread| thread.objects + thread.resizes + thread.frees > 0);
        threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_out_of_all_bounds_takes_no_memory() {
        let mut threads = Threads::default();
        threads.of(2).objects += 1;
        threads.of(u32::MAX).frees += 1;
        let figures = threads.figures();
        assert_eq!((figures.len(), figures[0].thread, figures[1].thread), (2, 2, THREADS as u32 - 1));
    }
}
