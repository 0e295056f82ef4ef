//! A wheel: the cells of one size class in a circle, in four segments between four sentinels.
//!
//! ```text
//!        bottom ─ ecru ─ top ─ grey ─ scan ─ black ─ free ─ free cells ─┐
//!           └───────────────────────────────────────────────────────────┘
//! ```
//!
//! No cell ever moves in memory, and no pass over the heap frees any: a segment becomes another by moving a sentinel.

use super::links::Links;
use crate::class::GRANULE;

/// A segment, by the sentinel in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// Not reached by the collection that runs; empty when none does.
    Ecru,
    /// Reached, its words not yet scanned.
    Grey,
    /// Reached and scanned, or new.
    Black,
    /// In no use.
    Free,
}

/// Segments in the order of the wheel.
pub const SEGMENTS: [Segment; 4] = [Segment::Ecru, Segment::Grey, Segment::Black, Segment::Free];
/// Bytes of a wheel's sentinels.
pub const SENTINEL_BYTES: usize = 4 * GRANULE;

/// See the module.
#[derive(Debug, Clone, Copy)]
pub struct Wheel {
    bottom: usize,
    top: usize,
    scan: usize,
    free: usize,
}

impl Wheel {
    /// The one with its sentinels at an address.
    #[inline(always)]
    pub const fn at(at: usize) -> Wheel {
        Wheel { bottom: at, top: at + GRANULE, scan: at + 2 * GRANULE, free: at + 3 * GRANULE }
    }

    /// One without cells, its sentinels at an address.
    ///
    /// # Safety
    /// [`SENTINEL_BYTES`] from there on are the wheel's alone.
    pub unsafe fn new(links: Links, at: usize) -> Wheel {
        let wheel = Wheel::at(at);
        // SAFETY: the precondition of this function.
        unsafe {
            links.alone(wheel.bottom);
            [wheel.top, wheel.scan, wheel.free].into_iter().for_each(|sentinel| {
                links.alone(sentinel);
                links.link_before(sentinel, wheel.bottom);
            });
        }
        wheel
    }

    /// Adds a cell that is in no wheel, as the last one to be taken.
    ///
    /// # Safety
    /// It is a cell of the class, and holds no object.
    pub unsafe fn add_free(&self, links: Links, cell: usize) {
        // SAFETY: the precondition of this function.
        unsafe {
            links.alone(cell);
            links.link_before(cell, self.bottom);
        }
    }

    /// Takes a free cell, which is black from here on, whatever its colour.
    #[inline(always)]
    pub fn take(&self, links: Links) -> Option<usize> {
        // SAFETY: the wheel's cells are linked.
        unsafe {
            let cell = links.after(self.free);
            if cell == self.bottom {
                return None;
            }
            links.exchange(self.free, cell);
            Some(cell)
        }
    }

    /// An ecru cell is reached: it is grey.
    ///
    /// # Safety
    /// It is an ecru cell of this wheel.
    #[inline(always)]
    pub unsafe fn shade(&self, links: Links, cell: usize) {
        // SAFETY: the precondition of this function.
        unsafe { self.put_before(links, cell, self.scan) };
    }

    /// A new cell, in no wheel, joins the black ones.
    ///
    /// # Safety
    /// It is a cell of this class.
    pub unsafe fn add_black(&self, links: Links, cell: usize) {
        // SAFETY: the precondition of this function.
        unsafe {
            links.alone(cell);
            links.link_before(cell, self.free);
        }
    }

    /// The grey cell that was shaded last is to be scanned: it is black.
    #[inline(always)]
    pub fn blacken(&self, links: Links) -> Option<usize> {
        // SAFETY: the wheel's cells are linked.
        unsafe {
            let cell = links.before(self.scan);
            if cell == self.top {
                return None;
            }
            links.exchange(cell, self.scan);
            Some(cell)
        }
    }

    /// The first half of a flip, when nothing is grey: ecru cells are free.
    pub fn free_ecru(&self, links: Links) {
        // SAFETY: the wheel's cells are linked.
        unsafe { self.put_before(links, self.bottom, self.top) };
    }

    /// The second half, when nothing is ecru or grey: black cells are ecru.
    pub fn begin(&self, links: Links) {
        // SAFETY: the wheel's cells are linked.
        unsafe {
            self.put_before(links, self.top, self.free);
            self.put_before(links, self.scan, self.free);
        }
    }

    /// A black cell is free, and the next to be taken.
    ///
    /// # Safety
    /// It is a black cell of this wheel, and nothing uses its object.
    pub unsafe fn give_back(&self, links: Links, cell: usize) {
        // SAFETY: the precondition of this function.
        unsafe { self.put_after(links, cell, self.free) };
    }

    /// Parks the free cells that are not: those that the last flip freed and that were not taken since. They are the
    /// last ones, where fresh cells are added only to a wheel without free ones.
    pub fn settle(&self, links: Links) {
        // SAFETY: the wheel's cells are linked.
        unsafe {
            let mut cell = links.before(self.bottom);
            while cell != self.free && !links.is_parked(cell) {
                links.park(cell);
                cell = links.before(cell);
            }
        }
    }

    /// A collection is aborted: what is ecru or grey is black.
    pub fn abort(&self, links: Links) {
        // SAFETY: the wheel's cells are linked.
        unsafe {
            self.put_after(links, self.top, self.bottom);
            self.put_after(links, self.scan, self.top);
        }
    }

    /// Cells of a segment, in order.
    pub fn cells(&self, links: Links, segment: Segment) -> impl Iterator<Item = usize> {
        let [from, to] = match segment {
            Segment::Ecru => [self.bottom, self.top],
            Segment::Grey => [self.top, self.scan],
            Segment::Black => [self.scan, self.free],
            Segment::Free => [self.free, self.bottom],
        };
        // SAFETY: the wheel's cells are linked.
        let after = move |cell: &usize| unsafe { links.after(*cell) };
        core::iter::successors(Some(after(&from)), move |cell| Some(after(cell)))
            .take_while(move |&cell| cell != to)
    }

    /// Whether following links leads around the wheel through the sentinels in their order, in at most so many cells,
    /// and back. Nothing is followed but sentinels and what `is_cell` has in this wheel.
    pub fn is_whole(&self, links: Links, most: usize, is_cell: impl Fn(usize) -> bool) -> bool {
        let sentinels = [self.top, self.scan, self.free, self.bottom];
        let (mut at, mut passed) = (self.bottom, 0);
        for _ in 0..most + sentinels.len() {
            // SAFETY: the wheel's cells are linked.
            let after = unsafe { links.after(at) };
            if !sentinels.contains(&after) && !is_cell(after) {
                return false;
            }
            // SAFETY: what follows a cell of the wheel is one too.
            if unsafe { links.before(after) } != at {
                return false;
            }
            at = after;
            if sentinels.contains(&at) {
                if at != sentinels[passed] {
                    return false;
                }
                passed += 1;
            }
            if at == self.bottom {
                return true;
            }
        }
        false
    }

    /// # Safety
    /// Both are cells or sentinels of this wheel.
    #[inline(always)]
    unsafe fn put_before(&self, links: Links, cell: usize, after: usize) {
        // SAFETY: the precondition of this function. A cell that is there already stays.
        unsafe {
            if links.after(cell) != after {
                links.unlink(cell);
                links.link_before(cell, after);
            }
        }
    }

    /// # Safety
    /// Both are cells or sentinels of this wheel.
    #[inline(always)]
    unsafe fn put_after(&self, links: Links, cell: usize, before: usize) {
        // SAFETY: the precondition of this function. A cell that is there already stays.
        unsafe {
            if links.before(cell) != before {
                links.unlink(cell);
                links.link_before(cell, links.after(before));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use proptest::collection::vec as vec_of;
    use proptest::prelude::{ProptestConfig, proptest};

    use super::*;

    const CELLS: usize = 40;

    /// A wheel in memory of its own, and the segments as they should be: the first in front.
    struct Trial {
        memory: Vec<u128>,
        wheel: Wheel,
        added: usize,
        model: [Vec<usize>; 4],
    }

    impl Trial {
        fn new() -> Trial {
            let mut memory = vec![0_u128; CELLS + 5];
            // SAFETY: the first four are the wheel's sentinels. Addresses that are links are never 0.
            let wheel =
                unsafe { Wheel::new(Links::new(memory.as_ptr() as usize), memory.as_mut_ptr() as usize) };
            Trial { memory, wheel, added: 0, model: Default::default() }
        }

        fn links(&self) -> Links {
            Links::new(self.memory.as_ptr() as usize)
        }

        fn is_whole(&self, most: usize) -> bool {
            let first = self.memory.as_ptr() as usize + SENTINEL_BYTES;
            self.wheel.is_whole(self.links(), most, |cell| (first..first + CELLS * 16).contains(&cell))
        }

        fn add(&mut self) {
            if self.added < CELLS {
                let cell = self.memory.as_mut_ptr() as usize + SENTINEL_BYTES + self.added * 16;
                self.added += 1;
                // SAFETY: each cell is added once.
                unsafe {
                    self.wheel.add_free(self.links(), cell);
                    self.links().park(cell);
                }
                self.model[3].push(cell);
            }
        }

        /// What allocation and marking do.
        fn step(&mut self, operation: usize, pick: usize) {
            let (links, wheel) = (self.links(), self.wheel);
            let [ecru, grey, black, free] = &mut self.model;
            match operation {
                // SAFETY: they are cells of the wheel.
                0 if free.iter().all(|&cell| unsafe { links.is_parked(cell) }) => self.add(),
                1 | 2 => {
                    let taken = wheel.take(links);
                    assert_eq!(taken, free.first().copied());
                    // SAFETY: it is a cell of the wheel.
                    taken.into_iter().for_each(|cell| unsafe { links.renew(cell, false) });
                    black.extend(taken);
                    free.drain(..free.len().min(1));
                }
                3 if !ecru.is_empty() => {
                    let cell = ecru.remove(pick % ecru.len());
                    // SAFETY: it is ecru.
                    unsafe { wheel.shade(links, cell) };
                    grey.push(cell);
                }
                4 => {
                    assert_eq!(wheel.blacken(links), grey.last().copied());
                    grey.pop().into_iter().for_each(|cell| black.insert(0, cell));
                }
                _ => self.turn(operation, pick),
            }
        }

        /// What moves whole segments, and an explicit free.
        fn turn(&mut self, operation: usize, pick: usize) {
            let (links, wheel) = (self.links(), self.wheel);
            let [ecru, grey, black, free] = &mut self.model;
            match operation {
                5 if grey.is_empty() => {
                    wheel.free_ecru(links);
                    free.append(ecru);
                    if pick.is_multiple_of(2) {
                        wheel.begin(links);
                        ecru.append(black);
                    }
                }
                6 if !black.is_empty() => {
                    let cell = black.remove(pick % black.len());
                    // SAFETY: it is black.
                    unsafe {
                        wheel.give_back(links, cell);
                        links.park(cell);
                    }
                    free.insert(0, cell);
                }
                7 => {
                    wheel.settle(links);
                    // SAFETY: they are cells of the wheel.
                    let parked = |cell: &usize| unsafe { links.is_parked(*cell) };
                    assert!(free.iter().all(parked), "a settled wheel has no free cell that is not parked");
                    assert!(![ecru, grey, black].into_iter().flatten().any(|cell| parked(cell)));
                }
                8 if pick.is_multiple_of(4) => {
                    wheel.abort(links);
                    ecru.append(grey);
                    ecru.append(black);
                    std::mem::swap(ecru, black);
                }
                _ => {}
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn segments_are_those_of_the_model_after_random_operations(
            steps in vec_of((0..9_usize, 0..1000_usize), 1..300)
        ) {
            let mut trial = Trial::new();
            for (operation, pick) in steps {
                trial.step(operation, pick);
                assert!(trial.is_whole(CELLS), "the wheel is whole");
                for (segment, model) in SEGMENTS.into_iter().zip(&trial.model) {
                    let cells: Vec<usize> = trial.wheel.cells(trial.links(), segment).collect();
                    assert!(&cells == model, "a segment is as the model has it");
                }
            }
        }
    }

    #[test]
    fn a_wheel_with_a_link_that_leads_elsewhere_is_not_whole() {
        let mut trial = Trial::new();
        (0..5).for_each(|_| trial.add());
        assert!(trial.is_whole(5));
        assert!(!trial.is_whole(4));
        let cell = trial.memory[6];
        trial.memory[6] = trial.memory[5];
        assert!(!trial.is_whole(5));
        // Beyond all cells, where nothing can be read.
        trial.memory[6] = cell | 0x7fff_ffff;
        assert!(!trial.is_whole(5));
    }
}
