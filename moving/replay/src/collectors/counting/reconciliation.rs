//! Reconciling the zero count table: what is in it, without a reference and no root, is dead, and what only the dead
//! led to.

use super::Counting;
use crate::collectors::object;
use crate::collectors::pause::{Pause, verify};
use crate::collectors::roots::{forget_dead, held, roots};
use crate::header::WORD;

impl Counting {
    /// Reconciles.
    #[inline(never)]
    pub(super) fn reconcile(&mut self) {
        let pause = Pause::begin(&mut self.world, self.cells.used_pages());
        self.point_passed = false;
        let (roots, held) = (roots(&mut self.world), held(&mut self.world));
        let kept = || roots.iter().chain(&held);
        // SAFETY: addresses in the table are those of objects.
        kept().for_each(|&object| _ = unsafe { Counting::word(object).mark() });
        let dead = self.find_dead();
        // What has references is kept by them; whether roots reach it is not known here.
        // SAFETY: what was marked is not among the dead.
        let hidden = held.iter().filter(|&&object| unsafe { Counting::word(object).count() } == 0).count();
        self.world.count_hidden(hidden as u64);
        // SAFETY: they were marked, so they are not among the dead.
        kept().for_each(|&object| unsafe { Counting::word(object).unmark() });
        self.free_dead(&dead);
        self.world.record.nursery += 1;
        pause.end(&mut self.world, &mut self.cpu_ns);
        verify(self);
    }

    /// Empties the zero count table but for what is marked; the dead are uncounted where they lead to.
    fn find_dead(&mut self) -> Vec<usize> {
        let (mut dead, mut kept) = (Vec::new(), Vec::new());
        for object in std::mem::take(&mut self.zero_count) {
            let word = Counting::word(object);
            // SAFETY: the table has objects; none of them is freed before the end of this function's caller.
            unsafe {
                if word.count() > 0 {
                    word.forget();
                } else if word.is_marked() {
                    kept.push(object);
                } else {
                    self.kill(object, &mut dead, &mut kept);
                }
            }
        }
        self.cells.table_bytes = kept.len() * WORD;
        self.zero_count = kept;
        dead
    }

    /// Adds an object to the dead, and what it alone led to. What is marked is `kept`.
    ///
    /// # Safety
    /// It is an object without references, and no root.
    unsafe fn kill(&mut self, object: usize, dead: &mut Vec<usize>, kept: &mut Vec<usize>) {
        let mut at = dead.len();
        dead.push(object);
        while let Some(&object) = dead.get(at) {
            at += 1;
            // SAFETY: the dead are objects until they are freed, and what they lead to has been counted.
            unsafe {
                Counting::word(object).kill();
                for to in object::references(object) {
                    // One that was noted before has its turn, or had it as a root.
                    if Counting::word(to).uncount_one() {
                        if Counting::word(to).is_marked() { &mut *kept } else { &mut *dead }.push(to);
                    }
                }
            }
        }
    }

    /// Frees what a collection found dead.
    pub(super) fn free_dead(&mut self, dead: &[usize]) {
        // SAFETY: addresses in the table are those of objects: the dead are freed after this.
        forget_dead(&mut self.world, |object| unsafe {
            if Counting::word(object).is_dead() { 0 } else { object }
        });
        for &object in dead {
            let cell = object - WORD;
            let class = self.cells.class_of(cell);
            self.cells.free_cell(cell);
            if let Some(class) = class {
                self.put(cell, class);
            }
        }
    }
}
