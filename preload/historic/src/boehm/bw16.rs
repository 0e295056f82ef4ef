//! Boehm and Weiser's conservative collector for C as Zorn measured it, version 1.6 (Zorn 1992 §2.2): chunks of a page
//! with header and mark bits in the page, free lists by size, serial mark and sweep at once, free that does nothing.
//!
//! - Sizes of 2, 4, 6 words, then growing by half up to half a chunk: 16 to 2048 bytes here, 8 to 2048 (8, 16, 24, 32,
//!   48, ...) with the words of 4 bytes of Zorn's SPARC, which are the sizes his text names.
//! - The header is 96 bytes at the beginning of each chunk: four words and a bit for each word of the chunk. Headers of
//!   all chunks fall on the same sets of a cache, which Boehm, Weiser and Zorn (§5.3) found in its misses.
//! - A list that is empty is filled by a collection if no chunk is free, and with a new chunk otherwise. So is a large
//!   object's run of chunks.
//! - The heap begins with 256 KiB. A collection that reclaims less than a quarter of it makes it half as large again
//!   (§2.2, the configuration of Zorn's experiments).
//!
//! Sources of the facts: Zorn's text; for the rest the sources of 1.9, the oldest that is public, with its list of
//! what changed since 1.6 (Ultrix support, a bug of realloc). SPARC's alignment to two words, which came with 1.6,
//! turned on the merging of sizes there. Not known: whether Zorn's copy followed pointers to the inside of objects, an
//! option of its header file. This one does; compilers and programs of today leave no other choice.
//!
//! What else differs: words have 8 bytes; an object is aligned to 16 bytes, which are two words as on the SPARC. The
//! roots are all writable memory of the process and the stacks and registers of all its threads. The mark stack lies in
//! a mapping of its own, not below the program's stack, and an overflow is made up for by scanning the marked objects
//! again. Where the original ends the process for lack of memory, malloc returns null.

use crate::boehm::{Boehm, CHUNK, Classes, Collector, MOST_WORDS, Version};

/// Chunks of a fresh heap: 256 KiB.
const FIRST: usize = 64;

/// Sizes in words: even ones, from 8 words on each by half larger than the smallest request it serves.
const fn sizes() -> [u16; MOST_WORDS + 1] {
    let mut map = [2; MOST_WORDS + 1];
    let (mut words, mut size) = (1, 0);
    while words <= MOST_WORDS {
        if words < 8 {
            size = (words + 1) & !1;
        } else if size < words || words == 8 {
            size = (words + (words >> 1) + 1) & !1;
            if size > MOST_WORDS {
                size = MOST_WORDS;
            }
        }
        map[words] = size as u16;
        words += 1;
    }
    map
}

/// Version 1.6.
#[derive(Debug)]
pub enum V16 {}

/// Zorn's subject.
pub type Bw16 = Boehm<V16>;

impl V16 {
    /// Extends a heap by what is needed, at least one chunk, and half of what it has; if that cannot be had, by what is
    /// needed.
    fn grow(heap: &mut Bw16, needed: usize) -> Option<()> {
        let more = if heap.bytes() == 0 { FIRST } else { heap.bytes() / CHUNK / 2 };
        heap.grow(needed, needed.checked_add(more)?)
    }
}

impl Version for V16 {
    const NAME: &'static str = "bw16";
    const HEADER_INSIDE: bool = true;
    const SLOP: usize = 0;
    const CLASSES: &'static Classes = &Classes::new(sizes());
    const KNOWS_CLEAN: bool = true;
    const BLACK_LISTS: bool = false;
    const EAGER: bool = true;

    fn refill(heap: &mut Bw16, class: usize) -> Option<()> {
        if heap.bytes() == 0 {
            heap.grow(1, FIRST)?;
        } else if !heap.has_free_chunks() {
            let outcome = heap.collect_by_itself();
            if outcome.is_err() {
                // By little, so that a program that has collections aborted for long stays small.
                heap.grow(1, FIRST)?;
            }
            if outcome.is_ok_and(|outcome| heap.is_short(&outcome)) {
                return None;
            }
            if heap.has(class) {
                return Some(());
            }
        }
        let chunk = match heap.take(CHUNK) {
            Some(chunk) => chunk,
            None => {
                Self::grow(heap, 1)?;
                heap.take(CHUNK)?
            }
        };
        heap.carve(class, chunk);
        Some(())
    }

    fn run(heap: &mut Bw16, bytes: usize) -> Option<usize> {
        if heap.bytes() == 0 {
            // What is needed may be more than that.
            let _ = heap.grow(1, FIRST);
        }
        if let Some(run) = heap.take(bytes) {
            return Some(run);
        }
        let outcome = heap.collect_by_itself();
        if outcome.is_ok_and(|outcome| heap.is_short(&outcome)) {
            return None;
        }
        if let Some(run) = heap.take(bytes) {
            return Some(run);
        }
        Self::grow(heap, bytes.div_ceil(CHUNK))?;
        heap.take(bytes)
    }

    fn collected(heap: &mut Bw16, reclaimed: usize) {
        if reclaimed < heap.bytes() / 4 {
            // Without more memory the next collection comes sooner.
            let _ = heap.grow(1, heap.bytes() / CHUNK / 2);
        }
    }
}
