//! A collection in increments: begin, marking, end.

use heaptoll_assertions::{assert_internal, assert_sound};
use heaptoll_wheel::Segment;

use super::{LARGE, Treadmill};
use crate::collectors::object;
use crate::collectors::pause::{Pause, Sound, verify};
use crate::collectors::roots::{forget_dead, hidden, roots};
use crate::header::WORD;

impl Treadmill {
    /// An increment, if it is time for one.
    #[inline(never)]
    pub(super) fn advance(&mut self) {
        let debt = std::mem::take(&mut self.debt);
        let left = self.left_bytes();
        if !self.marking && left > self.begin_at {
            return;
        }
        let pause = Pause::begin(&mut self.world, self.cells.used_pages());
        if !self.marking {
            self.begin();
        }
        let done = self.mark(self.due(debt, left));
        if done {
            self.end();
        }
        pause.end(&mut self.world, &mut self.cpu_ns);
        if done {
            verify(self);
        } else {
            assert_sound!(self.check());
        }
    }

    /// Bytes to mark for so many allocated: as large a share of what is not marked as that was of what may still be
    /// allocated until marking should end, which is when half of what was left at its begin is left.
    fn due(&self, debt: usize, left: usize) -> usize {
        let unmarked = self.bytes.ecru + self.bytes.grey;
        let until_end = left.saturating_sub(self.begin_at / 2).max(debt);
        (unmarked as f64 * (debt as f64 / until_end as f64)) as usize
    }

    /// Ends the collection that runs, or has one from its begin to its end.
    pub(super) fn collect(&mut self) {
        let pause = Pause::begin(&mut self.world, self.cells.used_pages());
        if !self.marking {
            self.begin();
        }
        self.mark(usize::MAX);
        self.end();
        pause.end(&mut self.world, &mut self.cpu_ns);
        verify(self);
    }

    /// Black is ecru from here on, but for the roots.
    fn begin(&mut self) {
        self.colour = !self.colour;
        self.marking = true;
        self.wheels.iter().for_each(|wheel| wheel.begin(self.links));
        self.bytes.ecru = std::mem::take(&mut self.bytes.black);
        for root in roots(&mut self.world) {
            // SAFETY: addresses in the table are those of objects.
            unsafe { self.shade(root) };
        }
    }

    /// Reaches an object: it is grey, unless it was before.
    ///
    /// # Safety
    /// It is an object of the heap, and a collection runs.
    #[inline(always)]
    pub(super) unsafe fn shade(&mut self, object: usize) {
        let cell = object - WORD;
        // SAFETY: the precondition of this function: what has the other colour is ecru.
        unsafe {
            if self.links.colour(cell) == self.colour {
                return;
            }
            self.links.paint(cell, self.colour);
            let (number, wheel) = self.wheel(cell);
            wheel.shade(self.links, cell);
            self.grey |= 1 << number;
        }
        let size = self.cells.size_of(cell);
        assert_internal!(self.bytes.ecru >= size, "what is shaded was ecru");
        self.bytes.ecru -= size;
        self.bytes.grey += size;
    }

    /// Scans so many bytes of cells, or more by one. Whether nothing is grey any more.
    fn mark(&mut self, most_bytes: usize) -> bool {
        let mut scanned = 0;
        while self.grey != 0 {
            let number = self.grey.trailing_zeros() as usize;
            let Some(cell) = self.wheels[number].blacken(self.links) else {
                self.grey &= self.grey - 1;
                continue;
            };
            // SAFETY: grey cells hold objects, which lead to objects.
            unsafe { object::references(cell + WORD).for_each(|to| self.shade(to)) };
            let size = self.cells.size_of(cell);
            self.bytes.grey -= size;
            self.bytes.black += size;
            scanned += size;
            if scanned >= most_bytes {
                return self.grey == 0;
            }
        }
        true
    }

    /// Nothing is grey: what is ecru is free, but for what only its last touch ahead keeps and that leads to.
    fn end(&mut self) {
        let (links, colour) = (self.links, self.colour);
        // SAFETY: addresses in the table are those of objects.
        let is_reached = |object: usize| unsafe { links.colour(object - WORD) == colour };
        for object in hidden(&mut self.world, is_reached) {
            // SAFETY: it is an object of the heap.
            unsafe { self.shade(object) };
        }
        self.mark(usize::MAX);
        assert_internal!(self.bytes.grey == 0, "a collection ends with nothing grey");
        forget_dead(&mut self.world, |object| if is_reached(object) { object } else { 0 });
        self.free_large();
        self.wheels.iter().for_each(|wheel| wheel.free_ecru(self.links));
        self.bytes.free += std::mem::take(&mut self.bytes.ecru);
        self.marking = false;
        self.begin_at = self.left_bytes() / 2;
        self.world.record.full += 1;
    }

    /// Gives the pages of large objects back that are ecru.
    fn free_large(&mut self) {
        let ecru: Vec<usize> = self.wheels[LARGE].cells(self.links, Segment::Ecru).collect();
        for cell in ecru {
            self.bytes.ecru -= self.cells.size_of(cell);
            // SAFETY: the cell is in the wheel, and dead.
            unsafe { self.links.unlink(cell) };
            self.cells.free_cell(cell);
        }
    }
}
