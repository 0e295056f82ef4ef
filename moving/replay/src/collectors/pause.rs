//! A time for which the mutator waits: how long it was, and the CPU time that goes to the collector.

use heaptoll_assertions::assert_sound;

use crate::clock::Span;
use crate::collectors::damage::Damage;
use crate::heap::Heap;
use crate::world::World;

/// See the module.
#[derive(Debug)]
pub struct Pause {
    began: Span,
    bookkeeping_ns: u64,
}

impl Pause {
    /// Begins one, with so many pages in use.
    pub fn begin(world: &mut World, used_pages: usize) -> Pause {
        let record = &mut world.record;
        record.most_pages = record.most_pages.max(used_pages as u64);
        Pause { bookkeeping_ns: record.bookkeeping_ns, began: Span::begin() }
    }

    /// Ends it, and adds the CPU time.
    pub fn end(self, world: &mut World, cpu: &mut u64) {
        let record = &mut world.record;
        let pause_ns = self.began.elapsed_ns();
        record.pauses_ns.push(pause_ns.saturating_sub(record.bookkeeping_ns - self.bookkeeping_ns));
        *cpu += self.began.cpu_ns();
    }
}

/// A heap that can prove its own structure.
pub trait Sound: Heap {
    /// Walks the whole heap.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    fn check(&self) -> Result<(), Damage>;
}

/// Proves a heap's structure after a collection, and what it kept, where the replay checks collections.
pub fn verify(heap: &mut impl Sound) {
    assert_sound!(heap.check());
    if heap.world().model.is_none() {
        return;
    }
    if let Err(damage) = heap.check() {
        heap.world().record.damage.get_or_insert(damage.to_string());
    }
    // SAFETY: this thread is the mutator and the collector, and the collection is complete.
    unsafe { heap.world().check() };
}
