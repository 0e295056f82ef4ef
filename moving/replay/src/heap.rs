//! A heap with its collector, as a replay uses it.

use crate::header::Header;
use crate::world::World;

/// What collections have copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Bytes, headers included.
    pub bytes: u64,
    /// Copies of objects.
    pub objects: u64,
}

/// See the module.
pub trait Heap {
    /// What it shares with the replay. No reference to it is kept while another of these functions runs.
    fn world(&mut self) -> &mut World;

    /// A new object, its words zero; 0 when it does not fit into the heap. May collect.
    fn allocate(&mut self, header: &Header) -> usize;

    /// Stores a reference (0 for none) into a word of an object.
    ///
    /// # Safety
    /// Both are objects in the heap, and the first has the word.
    unsafe fn store(&mut self, from: usize, word: u32, to: usize);

    /// Roots end here: those of a root point follow.
    #[inline(always)]
    fn point(&mut self) {
        self.world().table.point();
    }

    /// The object is a root: a root point has found it, or the program has touched it.
    #[inline(always)]
    fn root(&mut self, handle: u32) {
        self.world().table.root(handle);
    }

    /// Collects the whole heap, or as much of it as the collector does on request; where there is no such thing, nothing.
    fn collect(&mut self) {}

    /// What collections have copied.
    fn copied(&self) -> Copied {
        Copied::default()
    }

    /// CPU time of the collections that ran on the replay's own thread, ns. None where the collector has its own.
    fn collector_cpu_ns(&self) -> Option<u64> {
        None
    }
}
