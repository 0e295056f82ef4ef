//! Bartlett's mostly-copying collector ("Compacting Garbage Collection with Ambiguous Roots", 1988): objects that only
//! other objects lead to are copied; what an ambiguous root may lead to stays where it is.
//!
//! ```text
//!   space of each page    before         while collecting                 after
//!
//!   root ─────────────▶ [ 7 │ a b c ]   [ 8 │ a b c ]  promoted          [ 8 │ a b c ]
//!                           │               │  scanned whole                 │
//!                           ▼               ▼                                ▼
//!                       [ 7 │ d e f ]   [ 7 │ d e f ]──copy──▶ [ 8 │ e ] [ 8 │ e ]
//!                       [ 7 │ g h   ]   [ 7 │ g h   ]                     free, free
//! ```
//!
//! A page has the number of a space. A collection begins the next space: each page with an object that a root leads to
//! is *promoted* into it by its number alone, and all that is on it is kept, dead or alive, since it is not known which
//! of its objects the ambiguous word means. Pages of the next space are scanned in the order in which they came into
//! it; what they lead to in the old space is copied to fresh pages. Then pages of the old space are free.
//!
//! - In a replay all roots are ambiguous: registers, stacks, static data. What only its last touch ahead keeps is
//!   copied when all else has been: by then, others may have left its page.
//! - An object of more than a page has pages of its own, which are promoted instead of copied.
//! - A heap is full when what is in use and a copy of all small objects would not fit: half of it, for small ones.

mod check;
mod collection;
mod forwarding;

use crate::collectors::object;
use crate::collectors::pages::{PAGE_BYTES, Pages};
use crate::error::Error;
use crate::header::Header;
use crate::heap::{Copied, Heap};
use crate::world::World;

/// Of a page that is free.
const FREE: u32 = 0;

/// What the table of pages has of each.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    /// Its space; of pages after the first of a large object, that of the first at its allocation.
    space: u32,
    /// Bytes with objects from its begin. Of a large object: all of its bytes, at its first page; 0 at the others.
    filled: u32,
}

/// Bytes of the table a page: [`Page`], and a number in the queue of a collection.
const TABLE_BYTES: usize = 12;

/// See the module.
#[derive(Debug)]
pub struct MostlyCopying {
    world: World,
    pages: Pages,
    map: Vec<Page>,
    /// The current space.
    space: u32,
    /// The page that small objects are allocated in, until it is full.
    open: Option<usize>,
    /// Pages of small objects.
    small: usize,
    copied: Copied,
    /// A collection has needed more pages than the heap has.
    overrun: bool,
    cpu_ns: u64,
}

impl MostlyCopying {
    /// An empty heap.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn new(world: World) -> Result<MostlyCopying, Error> {
        let pages = Pages::reserve(world.heap_pages, TABLE_BYTES)?;
        let map = vec![Page::default(); pages.reserved()];
        let copied = Copied::default();
        Ok(MostlyCopying {
            world,
            pages,
            map,
            space: FREE + 1,
            open: None,
            small: 0,
            copied,
            overrun: false,
            cpu_ns: 0,
        })
    }

    /// Bytes of the open page, if the object fits in.
    #[inline(always)]
    fn bump(&mut self, bytes: usize) -> Option<usize> {
        let number = self.open?;
        let page = &mut self.map[number];
        let filled = page.filled as usize;
        if filled + bytes > PAGE_BYTES {
            return None;
        }
        page.filled += bytes as u32;
        Some(self.pages.address(number) + filled)
    }

    /// Opens a fresh page of a space, whatever the limit.
    fn open_page(&mut self, space: u32) -> Option<usize> {
        let number = self.pages.take(1)?;
        self.map[number] = Page { space, filled: 0 };
        self.open = Some(number);
        self.small += 1;
        Some(number)
    }

    #[inline(never)]
    fn allocate_slowly(&mut self, bytes: usize) -> Option<usize> {
        let (count, copies) = if bytes > PAGE_BYTES { (bytes.div_ceil(PAGE_BYTES), 0) } else { (1, 1) };
        if self.pages.left() < count + self.small + copies {
            self.collect();
            if let (1, Some(address)) = (copies, self.bump(bytes)) {
                return Some(address);
            }
            if self.overrun || self.pages.left() < count + self.small + copies {
                return None;
            }
        }
        if copies == 1 {
            self.open_page(self.space)?;
            return self.bump(bytes);
        }
        let first = self.pages.take(count)?;
        self.map[first..first + count].fill(Page { space: self.space, filled: 0 });
        // Less than 2^32: objects of 32 GiB are refused when a program is prepared, and no heap has 4 GiB for one.
        self.map[first].filled = bytes as u32;
        Some(self.pages.address(first))
    }
}

impl Heap for MostlyCopying {
    #[inline(always)]
    fn world(&mut self) -> &mut World {
        &mut self.world
    }

    #[inline(always)]
    fn allocate(&mut self, header: &Header) -> usize {
        let bytes = header.total_bytes();
        match self.bump(bytes).or_else(|| self.allocate_slowly(bytes)) {
            Some(address) => {
                // SAFETY: the bytes are the heap's, and in no other object.
                unsafe { object::create(address, header) };
                address
            }
            None => 0,
        }
    }

    #[inline(always)]
    unsafe fn store(&mut self, from: usize, word: u32, to: usize) {
        // SAFETY: the precondition of this function.
        unsafe { object::slot(from, word).write(to) };
    }

    fn copied(&self) -> Copied {
        self.copied
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

    fn heap(program: &Program, heap_bytes: u64) -> MostlyCopying {
        MostlyCopying::new(world(program, heap_bytes)).unwrap()
    }

    #[test]
    fn random_graphs_are_kept_as_the_trace_has_them() {
        for seed in 0..12 {
            let program = random(seed, &USUAL);
            let mut heap = heap(&program, 1 << 20);
            let answer = run(&mut heap, &program);
            assert!(answer.fits && answer.copied_objects > 100, "{answer:?}");
            assert!(answer.collections.full > 2, "{answer:?}");
        }
    }

    #[test]
    fn large_objects_keep_what_they_lead_to_and_stay_where_they_are() {
        for seed in 0..6 {
            let program = random(seed, &Shape { large_one_in: 10, objects: 6000, ..USUAL });
            let answer = run(&mut heap(&program, 5 << 20), &program);
            assert!(answer.fits && answer.collections.full > 2, "{answer:?}");
        }
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
    fn where_each_object_has_a_page_nothing_is_kept_but_what_is_reached() {
        let program = random(1, &Shape { words: 257..500, large_one_in: 20, ..USUAL });
        let answer = run(&mut heap(&program, 16 << 20), &program);
        assert!(answer.fits && answer.collections.full > 2, "{answer:?}");
        assert_eq!(answer.collections.beyond_objects, 0, "{answer:?}");
    }

    #[test]
    fn all_that_is_on_a_page_with_a_root_is_kept_and_the_root_does_not_move() {
        use crate::program::Operation::{Allocate, Edge, Point, Release, Root};
        let mut operations: Vec<_> =
            (0..4).map(|handle| Allocate { handle, words: 10, scanned: 10 }).collect();
        operations.extend((4..60).map(|handle| Allocate { handle, words: 100, scanned: 100 }));
        operations.extend([
            Edge { from: 0, word: 0, to: 59 },
            Edge { from: 58, word: 3, to: 57 },
            Point,
            Root(0),
        ]);
        operations.extend((0..60).map(Release));
        let program = Program::of(&operations, 60).unwrap();
        let mut heap = heap(&program, 1 << 20);
        run(&mut heap, &program);
        let before: Vec<usize> = (0..60).map(|handle| heap.world.table.address(handle)).collect();
        heap.collect();
        right(&mut heap);
        let page = heap.pages.number(before[0]);
        for handle in 0..60 {
            let address = heap.world.table.address(handle);
            match handle {
                59 => assert!(address != 0 && address != before[59], "it is copied"),
                _ if heap.pages.number(before[handle as usize]) == page => {
                    assert_eq!(address, before[handle as usize], "it is on the root's page");
                }
                _ => assert_eq!(address, 0, "{handle} is dead"),
            }
        }
        assert_eq!(heap.copied.objects, 1);
    }
}
