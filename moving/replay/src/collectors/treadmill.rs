//! Baker's treadmill ("The Treadmill: Real-Time Garbage Collection Without Motion Sickness", 1992): incremental and
//! not moving. What a copying collector does by moving objects between spaces, this one does by moving them between
//! segments of a doubly linked circle, a wheel for each size class.
//!
//! ```text
//!               bottom
//!        ecru  ●──────○  free cells ◀─ allocation takes the first,
//!            ●          ○                   which becomes black
//!      top ─ ●          ○ ─ free
//!            ◐          ●
//!       grey  ◐───┬────●  black
//!                scan
//! ```
//!
//! A collection begins with everything ecru. What a root leads to is unlinked and linked between `top` and `scan`: it
//! is grey. The grey one next to `scan` is scanned: what it leads to is shaded, and `scan` moves past it: it is black.
//! When nothing is grey, what is still ecru is free, by moving a sentinel. The meaning of the colour's bit is inverted
//! when the next collection begins, so that all that is black is ecru without a pass over it.
//!
//! - Increments run at allocations, each as long as keeps marking and allocation ending together. A heap that is full
//!   before ends the collection in one.
//! - Objects that are allocated meanwhile are black. A store shades what it stores, and a touch shades what is touched:
//!   the replay has no loads, so this stands for Baker's barrier, which shades what is loaded.
//! - Pages of cells that are free are given to other classes when the heap is full, which takes a pass over those.
//! - A large object has pages of its own, on a wheel for all of them.

mod check;
mod marking;

use heaptoll_wheel::class::CLASSES;
use heaptoll_wheel::{Links, SENTINEL_BYTES, Segment, Wheel};

use crate::collectors::cells::{Cells, class_of_bytes};
use crate::collectors::object;
use crate::collectors::pages::PAGE_BYTES;
use crate::error::Error;
use crate::header::{Header, WORD};
use crate::heap::Heap;
use crate::world::World;

/// The wheel of large objects; those of classes come before.
const LARGE: usize = CLASSES;
const WHEELS: usize = CLASSES + 1;
/// Bytes allocated from one increment to the next.
const INCREMENT_BYTES: usize = 32 << 10;

/// Bytes of cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bytes {
    ecru: usize,
    grey: usize,
    black: usize,
    free: usize,
}

/// See the module.
#[derive(Debug)]
pub struct Treadmill {
    world: World,
    cells: Cells,
    links: Links,
    wheels: [Wheel; WHEELS],
    /// Wheels that may have grey cells, a bit each.
    grey: u64,
    /// The colour of what is grey and black.
    colour: bool,
    /// A collection runs.
    marking: bool,
    bytes: Bytes,
    /// Bytes allocated since the last increment.
    debt: usize,
    /// The next collection begins when no more bytes than these are left.
    begin_at: usize,
    cpu_ns: u64,
}

impl Treadmill {
    /// An empty heap.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn new(world: World) -> Result<Treadmill, Error> {
        let mut cells = Cells::new(world.heap_pages)?;
        let links = Links::new(cells.base());
        const { assert!(WHEELS * SENTINEL_BYTES <= PAGE_BYTES && WHEELS <= 64) };
        let Some(sentinels) = cells.take_own() else { return Err(Error::Refused("a heap of no pages")) };
        // SAFETY: the page holds the sentinels of all wheels, and nothing else.
        let wheels =
            std::array::from_fn(|number| unsafe { Wheel::new(links, sentinels + number * SENTINEL_BYTES) });
        let mut new = Treadmill {
            world,
            cells,
            links,
            wheels,
            grey: 0,
            colour: false,
            marking: false,
            bytes: Bytes::default(),
            debt: 0,
            begin_at: 0,
            cpu_ns: 0,
        };
        new.begin_at = new.left_bytes() / 2;
        Ok(new)
    }

    /// Bytes that can be allocated before the heap is full, if sizes suit.
    fn left_bytes(&self) -> usize {
        self.cells.left() * PAGE_BYTES + self.bytes.free
    }

    /// The wheel of a cell.
    #[inline(always)]
    fn wheel(&self, cell: usize) -> (usize, Wheel) {
        let number = self.cells.class_of(cell).unwrap_or(LARGE);
        (number, self.wheels[number])
    }

    /// A cell for so many bytes, black; none when the heap is full.
    #[inline(always)]
    fn try_cell(&mut self, bytes: usize) -> Option<usize> {
        let Some(class) = class_of_bytes(bytes) else { return self.take_large(bytes) };
        let cell = self.wheels[class].take(self.links).or_else(|| self.cut(class))?;
        let size = self.cells.size_of(cell);
        self.bytes.free -= size;
        self.bytes.black += size;
        Some(cell)
    }

    fn take_large(&mut self, bytes: usize) -> Option<usize> {
        let block = self.cells.take_large(bytes)?;
        // SAFETY: the cell is fresh.
        unsafe { self.wheels[LARGE].add_black(self.links, block.first) };
        self.bytes.black += block.size;
        Some(block.first)
    }

    /// Adds the cells of a fresh block to a wheel, and takes the first.
    #[inline(never)]
    fn cut(&mut self, class: usize) -> Option<usize> {
        let block = self.cells.cut(class)?;
        let wheel = self.wheels[class];
        // SAFETY: the cells are fresh.
        block.cells().for_each(|cell| unsafe { wheel.add_free(self.links, cell) });
        self.bytes.free += block.count * block.size;
        wheel.take(self.links)
    }

    /// Ends the collection that runs, or has one from its begin to its end, until there is a cell.
    #[inline(never)]
    fn reclaim(&mut self, bytes: usize) -> Option<usize> {
        let mut cell = None;
        // What was allocated while marking is black: a second collection may find it dead.
        for _ in 0..if self.marking { 2 } else { 1 } {
            self.collect();
            cell = self.try_cell(bytes);
            if cell.is_none() {
                self.give_back();
                cell = self.try_cell(bytes);
            }
            if cell.is_some() {
                break;
            }
        }
        cell
    }

    /// Gives blocks without an object back to the heap.
    fn give_back(&mut self) {
        self.cells.count_all();
        let free = |wheel: &Wheel| wheel.cells(self.links, Segment::Free).collect::<Vec<usize>>();
        let free: Vec<usize> = self.wheels.iter().flat_map(free).collect();
        free.iter().for_each(|&cell| self.cells.free_cell(cell));
        for cell in free.into_iter().filter(|&cell| self.cells.is_in_free_block(cell)) {
            // SAFETY: the cell is free, and its block is given back.
            unsafe { self.links.unlink(cell) };
            self.bytes.free -= self.cells.size_of(cell);
        }
        self.cells.give_back_free_blocks();
    }
}

impl Heap for Treadmill {
    #[inline(always)]
    fn world(&mut self) -> &mut World {
        &mut self.world
    }

    #[inline(always)]
    fn allocate(&mut self, header: &Header) -> usize {
        let bytes = Cells::bytes_for(header.total_bytes());
        self.debt += bytes;
        if self.debt >= INCREMENT_BYTES {
            self.advance();
        }
        let Some(cell) = self.try_cell(bytes).or_else(|| self.reclaim(bytes)) else { return 0 };
        let object = cell + WORD;
        // SAFETY: the cell was free, and is as large as was requested.
        unsafe {
            self.links.paint(cell, self.colour);
            object::create(object, header);
        }
        object
    }

    #[inline(always)]
    unsafe fn store(&mut self, from: usize, word: u32, to: usize) {
        // SAFETY: the precondition of this function.
        unsafe {
            object::slot(from, word).write(to);
            if self.marking && to != 0 {
                self.shade(to);
            }
        }
    }

    #[inline(always)]
    fn root(&mut self, handle: u32) {
        self.world.table.root(handle);
        let object = self.world.table.address(handle);
        if self.marking && object != 0 {
            // SAFETY: it is an object of the heap.
            unsafe { self.shade(object) };
        }
    }

    fn collector_cpu_ns(&self) -> Option<u64> {
        Some(self.cpu_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::pause::Sound;
    use crate::collectors::trial::{Shape, USUAL, random, right, run, world};
    use crate::program::Program;

    fn heap(program: &Program, heap_bytes: u64) -> Treadmill {
        Treadmill::new(world(program, heap_bytes)).unwrap()
    }

    #[test]
    fn random_graphs_are_kept_as_the_trace_has_them() {
        for seed in 0..12 {
            let program = random(seed, &USUAL);
            let answer = run(&mut heap(&program, 700 << 10), &program);
            assert!(answer.fits && answer.collections.full > 2, "{answer:?}");
            assert!(answer.collections.hidden > 0 && answer.copied_bytes == 0, "{answer:?}");
        }
    }

    #[test]
    fn a_heap_with_headroom_is_collected_in_increments() {
        let program = random(5, &Shape { objects: 12_000, live: 3000, roots: 1500, ..USUAL });
        let answer = run(&mut heap(&program, 3 << 20), &program);
        let collections = &answer.collections;
        assert!(collections.full > 1, "{answer:?}");
        assert!(collections.pauses_ns.len() as u64 > 4 * collections.full, "{answer:?}");
    }

    #[test]
    fn objects_of_every_size_class_are_kept_and_no_page_is_lost() {
        let program = random(5, &Shape { objects: 3000, words: 1..1100, ..USUAL });
        let answer = run(&mut heap(&program, 6 << 20), &program);
        assert!(answer.fits && answer.collections.full > 2, "{answer:?}");
    }

    #[test]
    fn a_heap_that_is_too_small_ends_the_replay_with_a_sound_heap() {
        for pages in (1..60).step_by(3) {
            let program = random(pages, &USUAL);
            let mut heap = heap(&program, pages * 4096);
            assert!(!run(&mut heap, &program).fits, "{pages} pages");
            assert_eq!(heap.check(), Ok(()));
        }
    }

    #[test]
    fn what_a_collection_finds_unreachable_at_its_begin_is_gone_at_its_end() {
        for seed in 0..4 {
            let program = random(seed, &USUAL);
            let mut heap = heap(&program, 2 << 20);
            run(&mut heap, &program);
            // The first may have begun while the program ran.
            heap.collect();
            heap.world.record = Default::default();
            heap.collect();
            right(&mut heap);
            let record = &heap.world.record;
            assert_eq!((record.beyond_objects, record.full), (0, 1));
            assert!(record.reached_objects > 25);
        }
    }

    #[test]
    fn pages_without_an_object_are_given_to_other_classes() {
        use crate::program::Operation::{Allocate, Point, Release};
        let of_words = |words| {
            let allocate = move |handle| [Allocate { handle, words, scanned: 0 }, Release(handle)];
            (0..8000 / words).flat_map(allocate)
        };
        let phases = [3, 20, 100, 2].into_iter().flat_map(|words| {
            let ends = (0..8000 / words).map(crate::program::Operation::End);
            of_words(words).chain([Point]).chain(ends)
        });
        let program = Program::of(&phases.collect::<Vec<_>>(), 4000).unwrap();
        let mut heap = heap(&program, 40 * 4096);
        assert!(run(&mut heap, &program).fits);
    }
}
