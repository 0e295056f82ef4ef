//! Deferred reference counting (Deutsch and Bobrow 1976) with a zero count table, and a backup tracing collection for
//! cycles.
//!
//! ```text
//!   roots (not counted)         heap (counted)
//!   ┌───────┐                   ┌──────────────┐ word 0
//!   │ stack │─────────────────▶ │ 0 │ object a │───────▶ ┌──────────────┐
//!   └───────┘                   └──────────────┘         │ 2 │ object b │
//!        zero count table:  a, c     ▲                   └──────────────┘ ◀─ another object
//!                              └──▶ ┌──────────────┐
//!                                   │ 0 │ object c │  no root: free at the next reconciliation
//!                                   └──────────────┘
//! ```
//!
//! A store counts the references that it makes and destroys; roots are not counted. An object whose count is zero may
//! still be a root, so it is not freed but noted in the zero count table, in which every object begins. The table is
//! *reconciled* when the program has passed a root point, and when the heap is full: what is in it, without a reference
//! and no root, is freed, and what only that led to.
//!
//! Cycles are never without references. When reconciling a full heap frees little, the *backup collection* marks from
//! the roots and frees all that is not marked; references from the freed to the live are uncounted.
//!
//! Counts have 32 bits: no heap has as many words, so none is stuck.

mod cell_word;
mod check;
mod reconciliation;
mod trace;

use heaptoll_wheel::class::CLASSES;

use crate::collectors::cells::{Block, Cells, class_of_bytes};
use crate::collectors::object;
use crate::error::Error;
use crate::header::{Header, WORD};
use crate::heap::Heap;
use crate::world::World;
use cell_word::CellWord;

/// See the module.
#[derive(Debug)]
pub struct Counting {
    world: World,
    cells: Cells,
    /// The first free cell of each class; free cells are linked through their words.
    free: [usize; CLASSES],
    /// The zero count table: objects that may have no reference.
    zero_count: Vec<usize>,
    /// A root point has passed since the last reconciliation.
    point_passed: bool,
    cpu_ns: u64,
}

impl Counting {
    /// An empty heap.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn new(world: World) -> Result<Counting, Error> {
        let cells = Cells::new(world.heap_pages)?;
        let free = [0; CLASSES];
        Ok(Counting { world, cells, free, zero_count: Vec::new(), point_passed: false, cpu_ns: 0 })
    }

    /// The word of an object's cell.
    fn word(object: usize) -> CellWord {
        CellWord::at(object - WORD)
    }

    /// Notes an object whose count is zero.
    #[inline(always)]
    fn note(&mut self, object: usize) {
        self.zero_count.push(object);
        self.cells.table_bytes = self.zero_count.len() * WORD;
    }

    /// A free cell of a class; the heap may be full.
    #[inline(always)]
    fn take(&mut self, class: usize) -> Option<usize> {
        if self.free[class] == 0 {
            let block = self.cells.cut(class)?;
            self.link(block, class);
        }
        let cell = self.free[class];
        // SAFETY: cells of the free list are free, and hold its links.
        self.free[class] = unsafe { CellWord::at(cell).next_free() };
        self.cells.use_cell(cell);
        Some(cell)
    }

    /// Makes the cells of a block free, the lowest first.
    fn link(&mut self, block: Block, class: usize) {
        for number in (0..block.count).rev() {
            self.put(block.first + number * block.size, class);
        }
    }

    /// Makes a cell the first of its free list.
    fn put(&mut self, cell: usize, class: usize) {
        // SAFETY: the cell is the heap's, and no object is in it.
        unsafe { CellWord::at(cell).set_free(self.free[class]) };
        self.free[class] = cell;
    }

    #[inline(always)]
    fn try_cell(&mut self, bytes: usize) -> Option<usize> {
        match class_of_bytes(bytes) {
            Some(class) => self.take(class),
            None => self.cells.take_large(bytes).map(|block| block.first),
        }
    }

    /// Frees what may be freed until there is a cell of so many bytes.
    #[inline(never)]
    fn reclaim(&mut self, bytes: usize) -> Option<usize> {
        let before = self.cells.left();
        self.reconcile();
        self.give_back();
        // Less than a thirty-second of the heap would be full again at once.
        if self.cells.left() >= before + self.cells.limit() / 32
            && let Some(cell) = self.try_cell(bytes)
        {
            return Some(cell);
        }
        self.trace();
        self.give_back();
        self.try_cell(bytes)
    }

    /// Gives blocks without an object back to the heap.
    fn give_back(&mut self) {
        for class in 0..CLASSES {
            let (mut at, mut kept) = (std::mem::take(&mut self.free[class]), Vec::new());
            while at != 0 {
                if !self.cells.is_in_free_block(at) {
                    kept.push(at);
                }
                // SAFETY: cells of the free list are free, and hold its links.
                at = unsafe { CellWord::at(at).next_free() };
            }
            kept.into_iter().rev().for_each(|cell| self.put(cell, class));
        }
        self.cells.give_back_free_blocks();
    }
}

impl Heap for Counting {
    #[inline(always)]
    fn world(&mut self) -> &mut World {
        &mut self.world
    }

    #[inline(always)]
    fn allocate(&mut self, header: &Header) -> usize {
        if self.point_passed {
            self.reconcile();
        }
        let bytes = Cells::bytes_for(header.total_bytes());
        let Some(cell) = self.try_cell(bytes).or_else(|| self.reclaim(bytes)) else { return 0 };
        let object = cell + WORD;
        // SAFETY: the cell was free, and is as large as was requested.
        unsafe {
            CellWord::at(cell).set_new();
            object::create(object, header);
        }
        self.note(object);
        object
    }

    #[inline(always)]
    unsafe fn store(&mut self, from: usize, word: u32, to: usize) {
        // SAFETY: the precondition of this function; a word holds 0 or an object of the heap.
        unsafe {
            let slot = object::slot(from, word);
            let old = slot.replace(to);
            if to != 0 {
                Counting::word(to).count_one();
            }
            if old != 0 && Counting::word(old).uncount_one() {
                self.note(old);
            }
        }
    }

    #[inline(always)]
    fn point(&mut self) {
        self.world.table.point();
        // Its roots follow: the next allocation is the first operation after them.
        self.point_passed = true;
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

    fn heap(program: &Program, heap_bytes: u64) -> Counting {
        Counting::new(world(program, heap_bytes)).unwrap()
    }

    #[test]
    fn random_graphs_are_kept_as_the_trace_has_them() {
        for seed in 0..6 {
            let program = random(seed, &USUAL);
            let answer = run(&mut heap(&program, 1 << 20), &program);
            assert!(answer.fits && answer.collections.nursery > 50, "{answer:?}");
            assert!(answer.collections.hidden > 0, "{answer:?}");
        }
    }

    #[test]
    fn backup_collections_free_cycles_that_the_program_drops() {
        use crate::program::Operation::{Allocate, Edge, Point, Release};
        let pairs = (0..4000).step_by(2).flat_map(|first| {
            let [one, other] = [first, first + 1];
            let allocate = |handle| Allocate { handle, words: 4, scanned: 4 };
            let edge = |from, to| Edge { from, word: 0, to };
            [allocate(one), allocate(other), edge(one, other), edge(other, one), Release(one), Release(other)]
                .into_iter()
                .chain((first % 64 == 0).then_some(Point))
        });
        let program = Program::of(&pairs.collect::<Vec<_>>(), 4000).unwrap();
        let mut heap = heap(&program, 16 * 4096);
        let answer = run(&mut heap, &program);
        assert!(answer.fits && answer.collections.full > 2, "{answer:?}");
        assert!(answer.collections.beyond_objects > 1000, "{answer:?}");
    }

    #[test]
    fn objects_of_every_size_class_are_kept_and_no_page_is_lost() {
        let program = random(5, &Shape { objects: 3000, words: 1..1100, ..USUAL });
        let answer = run(&mut heap(&program, 5 << 19), &program);
        assert!(answer.fits && answer.collections.full > 0, "{answer:?}");
    }

    #[test]
    fn a_heap_that_is_too_small_ends_the_replay_with_a_sound_heap() {
        for pages in (1..40).step_by(3) {
            let program = random(pages, &USUAL);
            let mut heap = heap(&program, pages * 4096);
            assert!(!run(&mut heap, &program).fits, "{pages} pages");
            assert_eq!(heap.check(), Ok(()));
        }
    }

    #[test]
    fn without_cycles_nothing_is_kept_but_what_is_reached() {
        for seed in 0..4 {
            let program = random(seed, &Shape { acyclic: true, ..USUAL });
            let answer = run(&mut heap(&program, 4 << 20), &program);
            assert!(answer.fits && answer.collections.full == 0, "{answer:?}");
            assert!(answer.collections.nursery > 50, "{answer:?}");
            assert_eq!(answer.collections.beyond_objects, 0, "{answer:?}");
        }
    }

    #[test]
    fn cycles_are_kept_by_counts_and_freed_by_the_backup_collection() {
        let program = random(3, &USUAL);
        let mut heap = heap(&program, 4 << 20);
        assert!(run(&mut heap, &program).collections.beyond_objects > 0);
        heap.trace();
        right(&mut heap);
        assert_eq!(heap.world.record.beyond_objects, 0);
        assert!(heap.world.record.reached_objects > 0);
    }
}
