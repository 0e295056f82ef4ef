//! Requests of the program, and what their accesses cost.

use std::collections::BTreeMap;

use heaptoll_moving_answers::SimulatedRequest;

/// See the module. A thread has one at a time: a second beginning replaces the first, an end without one does nothing.
/// Where requests of several threads are open at once, the accesses of each are in all of them.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: BTreeMap<u32, SimulatedRequest>,
    pub ended: Vec<SimulatedRequest>,
    /// Collections so far.
    pub collections: u32,
    /// Accesses of the program so far.
    pub accesses: u64,
    /// Of these, before the last collection ended.
    before_collection: u64,
}

impl Requests {
    pub fn collected(&mut self) {
        self.collections += 1;
        self.before_collection = self.accesses;
    }

    /// `cycles`: of all accesses so far.
    pub fn begin(&mut self, thread: u32, cycles: [u64; 2]) {
        let since = self.accesses - self.before_collection;
        let (after, accesses) = (self.collections, self.accesses);
        self.open.insert(thread, SimulatedRequest { after, interrupted: false, since, accesses, cycles });
    }

    /// See [`Requests::begin`].
    pub fn end(&mut self, thread: u32, cycles: [u64; 2]) {
        let Some(begun) = self.open.remove(&thread) else { return };
        self.ended.push(SimulatedRequest {
            interrupted: begun.after != self.collections,
            accesses: self.accesses - begun.accesses,
            cycles: [0, 1].map(|at| cycles[at] - begun.cycles[at]),
            ..begun
        });
    }
}
