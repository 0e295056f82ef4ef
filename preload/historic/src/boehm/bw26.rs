//! Boehm, Demers and Weiser's conservative collector for C as Detlefs, Dosser and Zorn measured it, version 2.6 with
//! `MERGE_SIZES` and `ALL_INTERIOR_POINTERS` (Detlefs 1994, Table III), and free that does nothing.
//!
//! - A request has one byte more than was requested, so that a pointer after the last is still one to the object.
//!   Sizes are even numbers of words up to 8, then four for each doubling, up to half a chunk of 4 KiB. Large objects
//!   have chunks of their own, cleared when handed out.
//! - Headers lie outside the heap, so that objects begin with their chunks.
//! - Sweeping is lazy: a collection only frees the chunks without a marked object. The others wait, and are swept when
//!   the list of their size is empty.
//! - When all of that is used up, a collection is made if a quarter of the heap and the roots was allocated since the
//!   last one (stacks count twice, since they cost more to scan); otherwise the heap grows.
//! - It begins with 64 KiB and grows by 64 KiB and what is needed, then by half as much again each time, by 2 MiB at
//!   most. Detlefs' text speaks of units of 64 KiB; the sizes in his Table IX follow the sources: the heaps of gawk and
//!   cfrac, 352 and 504 KB, differ by exactly the third growth.
//! - Chunks that a false pointer in the program points into are on black lists (Boehm 1993) and avoided once two
//!   collections have seen it. On a machine with addresses of 64 bits that hardly ever happens.
//!
//! The facts are from the sources of 2.6. What differs: words have 8 bytes, and an object is aligned to 16. The roots
//! are all writable memory of the process and the stacks and registers of all its threads. Interior pointers are found
//! by a multiplication, not by a table for each size, and the headers by the chunk's number. The stack is not cleared
//! of old pointers now and then, since it is the program's. A chunk that is on the black lists stays a free one; the
//! original withdrew every fourth such chunk until the next collection. Where the original ends the process for lack of
//! memory, malloc returns null, after one collection that was forced.

use crate::boehm::{Boehm, CHUNK, Classes, Collector, MOST_WORDS, Version};

/// Chunks of a fresh heap, and of its first growth: 64 KiB.
const FIRST: usize = 16;
/// Chunks of the largest growth: 2 MiB.
const LARGEST: usize = 512;
/// Which part of heap and roots must be allocated between two collections.
const DIVISOR: usize = 4;

/// Sizes in words: even ones up to 8, then those of three significant bits.
const fn sizes() -> [u16; MOST_WORDS + 1] {
    let mut map = [2; MOST_WORDS + 1];
    let mut words = 1;
    while words <= MOST_WORDS {
        let (mut size, mut bits) = ((words + 1) & !1, 0);
        if size > 8 {
            while size > 7 {
                size = (size + 1) >> 1;
                bits += 1;
            }
        }
        map[words] = (size << bits) as u16;
        words += 1;
    }
    map
}

/// Version 2.6.
#[derive(Debug)]
pub enum V26 {}

/// Detlefs' subject.
pub type Bw26 = Boehm<V26>;

impl V26 {
    /// Begins the heap.
    fn begin(heap: &mut Bw26) {
        if heap.bytes() == 0 {
            heap.increment = FIRST;
            // Without it the first need is what it begins with.
            let _ = heap.grow(FIRST, FIRST);
        }
    }

    /// Collects if enough was allocated, and grows otherwise. `None` when neither helps.
    fn collect_or_expand(heap: &mut Bw26, needed: usize, forced: &mut bool) -> Option<()> {
        // An empty heap, whose first growth was refused, has nothing to collect.
        let due = heap.bytes() > 0 && heap.allocated() >= (heap.bytes() + heap.roots()) / DIVISOR;
        if due && heap.collect_by_itself().is_ok() {
            return Some(());
        }
        if heap.grow(needed, heap.increment.checked_add(needed)?).is_some() {
            heap.increment = (heap.increment * 3 / 2).min(LARGEST);
            return Some(());
        }
        if core::mem::replace(forced, true) {
            return None;
        }
        heap.collect_for_memory().ok().filter(|outcome| !heap.is_short(outcome)).map(drop)
    }
}

impl Version for V26 {
    const NAME: &'static str = "bw26";
    const HEADER_INSIDE: bool = false;
    const SLOP: usize = 1;
    const CLASSES: &'static Classes = &Classes::new(sizes());
    const KNOWS_CLEAN: bool = false;
    const BLACK_LISTS: bool = true;
    const EAGER: bool = false;

    fn refill(heap: &mut Bw26, class: usize) -> Option<()> {
        Self::begin(heap);
        let mut forced = false;
        loop {
            if heap.sweep_for(class) {
                return Some(());
            }
            if let Some(chunk) = heap.take(CHUNK) {
                heap.carve(class, chunk);
                return Some(());
            }
            Self::collect_or_expand(heap, 1, &mut forced)?;
        }
    }

    fn run(heap: &mut Bw26, bytes: usize) -> Option<usize> {
        Self::begin(heap);
        let mut forced = false;
        loop {
            if let Some(run) = heap.take(bytes) {
                return Some(run);
            }
            Self::collect_or_expand(heap, bytes / CHUNK + 1, &mut forced)?;
        }
    }
}
