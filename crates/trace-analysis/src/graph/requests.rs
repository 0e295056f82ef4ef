//! Requests that a program marked, and the loads and stores in them, by thread.

use std::collections::BTreeMap;

/// Requests so far. A thread has one at a time: a second beginning replaces the first, an end without one does nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests {
    /// By thread: accesses since its request began.
    open: BTreeMap<u32, u64>,
    /// Requests that ended.
    pub ended: u64,
    /// Accesses in those.
    pub accesses: u64,
}

impl Requests {
    pub fn begin(&mut self, thread: u32) {
        self.open.insert(thread, 0);
    }

    pub fn access(&mut self, thread: u32) {
        if let Some(accesses) = self.open.get_mut(&thread) {
            *accesses += 1;
        }
    }

    pub fn end(&mut self, thread: u32) {
        if let Some(accesses) = self.open.remove(&thread) {
            self.ended += 1;
            self.accesses += accesses;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_threads_are_apart_and_a_second_beginning_replaces_the_first() {
        let mut requests = Requests::default();
        requests.end(0);
        requests.access(0);
        requests.begin(0);
        requests.access(0);
        requests.begin(1);
        requests.access(0);
        requests.access(1);
        requests.access(2);
        requests.end(0);
        requests.access(0);
        assert_eq!((requests.ended, requests.accesses), (1, 2));
        requests.begin(1);
        requests.end(1);
        assert_eq!(
            (requests.ended, requests.accesses),
            (2, 2),
            "the first access was of the request replaced"
        );
    }
}
