//! The backup collection: marks from the roots, and frees all else, cycles too.

use super::Counting;
use crate::collectors::object;
use crate::collectors::pause::{Pause, verify};
use crate::collectors::roots::{hidden, roots};
use crate::header::WORD;

impl Counting {
    /// Traces.
    #[inline(never)]
    pub(super) fn trace(&mut self) {
        let pause = Pause::begin(&mut self.world, self.cells.used_pages());
        mark(roots(&mut self.world));
        // SAFETY: addresses in the table are those of objects.
        mark(hidden(&mut self.world, |object| unsafe { Counting::word(object).is_marked() }));
        let dead = self.sweep();
        self.free_dead(&dead);
        self.world.record.full += 1;
        pause.end(&mut self.world, &mut self.cpu_ns);
        verify(self);
    }

    /// Finds the dead, takes the marks off the others, and uncounts references from the dead to the live.
    fn sweep(&mut self) -> Vec<usize> {
        let mut dead = Vec::new();
        for object in self.objects() {
            // SAFETY: it is that of an object.
            unsafe {
                if !Counting::word(object).is_marked() {
                    Counting::word(object).kill();
                    dead.push(object);
                }
            }
        }
        for &object in &dead {
            // SAFETY: none of the dead is freed yet.
            for to in unsafe { object::references(object) } {
                // SAFETY: the reference was counted.
                if unsafe { Counting::word(to).uncount_one() } {
                    self.note(to);
                }
            }
        }
        // SAFETY: the table has objects.
        self.zero_count.retain(|&object| unsafe { !Counting::word(object).is_dead() });
        self.cells.table_bytes = self.zero_count.len() * WORD;
        // SAFETY: these are objects.
        self.objects().for_each(|object| unsafe { Counting::word(object).unmark() });
        dead
    }

    /// All objects.
    pub(super) fn objects(&self) -> impl Iterator<Item = usize> {
        let cells = self.cells.blocks().flat_map(|block| block.cells());
        // SAFETY: these are cells of the heap.
        cells.filter(|&cell| unsafe { super::CellWord::at(cell).is_used() }).map(|cell| cell + WORD)
    }
}

/// Marks all that can be reached from these.
fn mark(mut from: Vec<usize>) {
    // SAFETY: these are objects, and lead to objects.
    from.retain(|&object| unsafe { Counting::word(object).mark() });
    while let Some(object) = from.pop() {
        // SAFETY: an object that was marked leads to objects.
        unsafe { from.extend(object::references(object).filter(|&to| Counting::word(to).mark())) };
    }
}
