//! Young collections: what they keep, what they reclaim, and that they find all that a full marking finds, after any
//! sequence of allocations, writes and frees. `TITHE_CHECK=young` compares each of them; on kernels that record no writes
//! all collections are full, and hold too.

mod unread;

use std::vec::Vec;

use super::mutator::{Contents, run};
use super::*;
use crate::generations::Generation;

fn settings(mode: Mode) -> Settings {
    Settings {
        mode,
        min_headroom: 1 << 40,
        poison: true,
        generations: true,
        check_young: true,
        ..Settings::new()
    }
}

impl HeapFixture {
    fn generational(mode: Mode) -> HeapFixture {
        HeapFixture::with(&settings(mode), 1)
    }

    /// A collection that is young if it can be; returns whether it was.
    fn collect_young(&self) -> bool {
        let facts = crate::generations::Facts {
            due: true,
            pressure: false,
            live: self.heap.live_after_gc.load(Ordering::Relaxed),
            units: self.heap.reservation.units(),
        };
        let chosen = self.heap.collector.lock().generations.choose(&facts);
        assert_eq!(self.heap.collect(Reason::Budget), Ok(()));
        let aged = self.heap.collector.lock().generations.is_aged();
        chosen == Generation::Young && aged
    }

    /// Whether this kernel records writes.
    fn is_tracked(&self) -> bool {
        self.heap.collector.lock().generations.enabled
    }
}

#[test]
fn a_young_collection_keeps_old_garbage_and_reclaims_young() {
    for bytes in [16, 100, 1000, 5000, 300_000] {
        let fixture = HeapFixture::generational(Mode::Collect);
        let old: [usize; 2] = core::array::from_fn(|_| fixture.allocate_clear(bytes, false));
        let mut roots = std::boxed::Box::new([old[0], old[1]]);
        fixture.add_roots(&roots[..]);
        fixture.collect();
        roots[1] = 0;
        let young: [usize; 2] = core::array::from_fn(|_| fixture.allocate_clear(bytes, false));
        set_word(old[0], young[0]);
        let was_young = fixture.collect_young();
        assert_eq!(was_young, fixture.is_tracked());
        let taken = [old[0], old[1], young[0], young[1]].map(|block| fixture.is_taken(block));
        assert_eq!(taken, [true, was_young, true, false], "{bytes}");
        fixture.collect();
        let taken = [old[0], old[1], young[0]].map(|block| fixture.is_taken(block));
        assert_eq!(taken, [true, false, true], "{bytes}");
        fixture.audit();
    }
}

#[test]
fn an_old_block_that_is_not_written_keeps_what_it_points_to_for_ever() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let chain: Vec<usize> = (0..2000).map(|_| fixture.allocate_clear(64, false)).collect();
    chain.windows(2).for_each(|pair| set_word(pair[0], pair[1]));
    let roots = std::boxed::Box::new([chain[0]]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    for _ in 0..20 {
        (0..500).for_each(|_| assert_ne!(fixture.allocate_clear(64, false), 0));
        fixture.collect_young();
        assert!(chain.iter().all(|&block| fixture.is_taken(block)));
    }
    fixture.audit();
}

/// A young collection reads old blocks elsewhere than in dense spans in any case.
#[test]
fn spans_that_are_half_empty_are_not_sampled() {
    for step in [1, 2] {
        let fixture = HeapFixture::with(&Settings { check_young: false, ..settings(Mode::Collect) }, 1);
        let blocks: Vec<usize> = (0..50_000).map(|_| fixture.allocate_clear(63, false)).collect();
        let roots: Vec<usize> = blocks.into_iter().step_by(step).collect();
        fixture.add_roots(&roots);
        assert!(!fixture.collect_young());
        let is_sampling = fixture.heap.collector.lock().generations.is_sampling();
        assert_eq!(is_sampling, step == 1 && fixture.is_tracked());
        fixture.audit();
    }
}

/// Blocks without pointers are never read again: it does not matter where they lie.
#[test]
fn blocks_without_pointers_do_not_decide_whether_spans_are_sampled() {
    for step in [1, 2] {
        let fixture = HeapFixture::with(&Settings { check_young: false, ..settings(Mode::Collect) }, 1);
        let blocks: Vec<usize> = (0..20_000).map(|_| fixture.allocate_clear(63, false)).collect();
        let atomic: Vec<usize> = (0..60_000).map(|_| fixture.allocate_clear(63, true)).collect();
        let roots: Vec<usize> = blocks.into_iter().step_by(step).chain(atomic).collect();
        fixture.add_roots(&roots);
        assert!(!fixture.collect_young());
        let is_sampling = fixture.heap.collector.lock().generations.is_sampling();
        assert_eq!(is_sampling, step == 1 && fixture.is_tracked());
        fixture.audit();
    }
}

/// The next collection would read all in any case: until then no write is recorded, and free places are used.
#[test]
fn a_full_collection_that_finds_half_empty_spans_leaves_nothing_old() {
    for step in [1, 2] {
        let fixture = HeapFixture::with(&Settings { check_young: false, ..settings(Mode::Collect) }, 1);
        let blocks: Vec<usize> = (0..60_000).map(|_| fixture.allocate_clear(63, false)).collect();
        let mut roots: Box<[usize]> = blocks.clone().into();
        fixture.add_roots(&roots);
        assert!(!fixture.collect_young());
        let is_sampling = fixture.heap.collector.lock().generations.is_sampling();
        assert_eq!(is_sampling, fixture.is_tracked());
        roots[21] = 0;
        if step == 2 {
            roots[15_000..].iter_mut().step_by(step).for_each(|root| *root = 0);
        }
        assert!(!fixture.collect_young());
        let is_aged = fixture.heap.collector.lock().generations.is_aged();
        assert_eq!(is_aged, step == 1 && fixture.is_tracked());
        assert!(!fixture.is_taken(blocks[21]));
        assert_eq!((0..40_000).any(|_| fixture.allocate_clear(63, false) == blocks[21]), !is_aged);
        fixture.audit();
    }
}

/// Blocks between old ones would be writes to old pages; a span whose blocks the program frees is used again.
#[test]
fn a_dense_span_gets_no_block_until_more_of_it_is_free() {
    let fixture = HeapFixture::generational(Mode::Hybrid);
    let blocks: Vec<usize> = (0..64).map(|_| fixture.allocate_clear(1000, false)).collect();
    let mut roots: Box<[usize]> = blocks.clone().into();
    fixture.add_roots(&roots);
    roots[21] = 0;
    fixture.collect();
    assert!(!fixture.is_taken(blocks[21]));
    let is_used_again = || (0..200).any(|_| fixture.allocate_clear(1000, false) == blocks[21]);
    assert_eq!(is_used_again(), !fixture.is_tracked());
    for (at, block) in blocks.iter().enumerate().filter(|(at, _)| at % 2 == 0) {
        roots[at] = 0;
        fixture.free(*block).expect("a live block");
    }
    fixture.heap.flush_all(fixture.cache(0));
    assert!(is_used_again() || !fixture.is_tracked());
    fixture.audit();
}

/// The program may free blocks of a span between its marking and its sweep.
#[test]
fn a_dense_span_whose_blocks_are_freed_before_it_is_swept_is_used_again() {
    for kept in [0, 3] {
        let settings = Settings { poison: false, ..settings(Mode::Hybrid) };
        let fixture = HeapFixture::with(&settings, 1);
        let blocks: Vec<usize> = (0..64).map(|_| fixture.allocate_clear(1000, false)).collect();
        fixture.add_roots(&blocks);
        fixture.collect();
        fixture.collect_young();
        for block in &blocks[kept..] {
            fixture.free(*block).expect("a live block");
        }
        fixture.heap.flush_all(fixture.cache(0));
        fixture.heap.sweep_all();
        fixture.check();
        let again: Vec<usize> = (0..64).map(|_| fixture.allocate_clear(1000, false)).collect();
        assert!(again.iter().any(|block| blocks.contains(block)), "{kept} kept");
        fixture.audit();
    }
}

#[test]
fn without_memory_and_collections_the_places_in_dense_spans_are_used() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let blocks: Vec<usize> = (0..64).map(|_| fixture.allocate_clear(1000, false)).collect();
    let mut roots: Box<[usize]> = blocks.clone().into();
    fixture.add_roots(&roots);
    roots[21] = 0;
    fixture.collect();
    let is_used_again = || (0..200).any(|_| fixture.allocate_clear(1000, false) == blocks[21]);
    assert_eq!(is_used_again(), !fixture.is_tracked());
    fixture.heap.skipped_collections.store(1, Ordering::Relaxed);
    assert_eq!(fixture.heap.collect_for_memory(fixture.cache(0), 1), fixture.is_tracked());
    assert!(is_used_again() || !fixture.is_tracked());
    fixture.audit();
    fixture.collect_young();
    fixture.audit();
}

/// A stack that the program has mapped is read whole, while the collector runs on it: an unaligned read copies a word to
/// there, onto itself.
#[test]
fn the_check_reads_the_stack_that_it_runs_on() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let young = fixture.allocate_clear(48, false);
    let here = [young; 4];
    let end = here.as_ptr_range().end as usize;
    // SAFETY: words of this thread's stack, the unused part of which is mapped.
    fixture.add_roots(unsafe { core::slice::from_raw_parts((end - (64 << 10)) as *const usize, 8 << 10) });
    for _ in 0..3 {
        fixture.collect_young();
    }
    assert!(fixture.is_taken(core::hint::black_box(here)[0]));
    fixture.audit();
}

/// The word is written in the second page of an old block, and crosses a border of pages at half a word.
#[test]
fn an_address_across_two_pages_is_found() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let old = fixture.allocate_clear(100_000, false);
    let roots = std::boxed::Box::new([old]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    fixture.collect_young();
    let young = fixture.allocate_clear(48, false);
    let border = (old + PAGE).next_multiple_of(PAGE);
    // SAFETY: eight bytes in the old block, half of them in front of the border of two pages.
    unsafe { ((border - 4) as *mut usize).write_unaligned(young) };
    fixture.collect_young();
    assert!(fixture.is_taken(young));
    // Of another address only the lower half is written, in the first of the pages.
    fixture.collect();
    fixture.collect_young();
    let another = fixture.allocate_clear(48, false);
    // SAFETY: four bytes in the old block, in front of the border.
    unsafe { ((border - 4) as *mut u32).write(another as u32) };
    fixture.collect_young();
    assert!(fixture.is_taken(another));
    fixture.audit();
}

/// The program maps other memory in place of pages of its block: what it writes there is not recorded.
#[test]
fn pages_that_the_program_has_replaced_are_read() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let old = fixture.allocate_clear(300_000, false);
    let roots = std::boxed::Box::new([old]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    fixture.collect_young();
    let page = (old + 5 * PAGE).next_multiple_of(PAGE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: pages in the middle of a block of the test's, which it may replace as a program may.
    let made =
        unsafe { libc::mmap(page as *mut _, 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    assert_eq!(made as usize, page);
    let young = fixture.allocate_clear(48, false);
    set_word(page + 128, young);
    for _ in 0..5 {
        fixture.collect_young();
        assert!(fixture.is_taken(young));
    }
    fixture.audit();
}

/// Of each such page the first write and the reading take as long as two pages.
#[test]
fn a_program_that_writes_to_two_fifths_of_its_old_pages_has_no_more_young_collections() {
    let fixture = HeapFixture::with(&Settings { check_young: false, ..settings(Mode::Collect) }, 1);
    let bytes = 4 << 20;
    let roots = std::boxed::Box::new([fixture.allocate_clear(bytes, false)]);
    fixture.add_roots(&roots[..]);
    let write = |pages: usize| (0..pages).for_each(|page| set_word(roots[0] + page * PAGE, 1));
    let collect = |expected: &str| {
        assert_eq!(fixture.heap.collect(Reason::Budget), Ok(()), "{expected}");
        !fixture.heap.collector.lock().generations.is_backing_off()
    };
    for kind in ["samples pages", "full", "young"] {
        collect(kind);
    }
    if !fixture.is_tracked() {
        return;
    }
    assert!(fixture.heap.collector.lock().generations.is_aged());
    write(bytes / PAGE / 5);
    assert!(collect("young"), "a fifth twice is less than half");
    write(bytes / PAGE * 2 / 5);
    assert!(!collect("young"), "two fifths twice are more");
    fixture.audit();
}

/// A word of an old block equals an address to which the heap grows much later.
#[test]
fn a_heap_that_has_grown_beyond_what_was_recorded_is_read_whole() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let old = fixture.allocate_clear(48, false);
    let roots = std::boxed::Box::new([old]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    let ahead = crate::reservation::AHEAD + fixture.heap.reservation.units() + 64;
    set_word(old, fixture.heap.reservation.base() + ahead * UNIT);
    fixture.collect();
    let block = loop {
        let block = fixture.allocate(8 << 20);
        if block + (8 << 20) > word(old) {
            break block;
        }
    };
    assert!(block <= word(old));
    assert!(!fixture.collect_young(), "what points there is not known");
    assert!(fixture.is_taken(block));
    fixture.audit();
}

#[test]
fn young_collections_find_what_full_ones_find() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let young = run(0..6, &settings(mode), Contents::Own, 600, HeapFixture::collect_young);
        assert!(young > 20 || !HeapFixture::generational(mode).is_tracked(), "{young} were young");
    }
}

/// Words may point to any place of the heap, long before a block is there, and blocks keep what was in them before.
#[test]
fn young_collections_find_what_words_point_to_that_are_no_addresses() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let young = run(0..12, &settings(mode), Contents::Stray, 600, HeapFixture::collect_young);
        assert!(young > 20 || !HeapFixture::generational(mode).is_tracked(), "{young} were young");
    }
}

#[test]
#[ignore = "slow: many thousand young collections"]
fn very_many_young_collections_find_what_full_ones_find() {
    for mode in [Mode::Collect, Mode::Hybrid] {
        let of = |contents| run(1000..1600, &settings(mode), contents, 4000, HeapFixture::collect_young);
        let young = of(Contents::Own) + of(Contents::Stray);
        std::println!("{young} young collections in mode {}", mode.as_str());
    }
}

// Found by fault_threads of the conformance suite: the assertion on the epoch failed in the thread that came second.
#[test]
fn a_thread_without_memory_collects_after_another_thread_did() {
    let fixture = HeapFixture::generational(Mode::Collect);
    let roots = std::boxed::Box::new([fixture.allocate_clear(64, false)]);
    fixture.add_roots(&roots[..]);
    fixture.collect();
    let requested = fixture.heap.epoch();
    fixture.collect();
    let epoch = fixture.heap.epoch();
    assert_eq!(fixture.heap.collect_since(requested, Reason::Budget), Ok(()));
    assert_eq!(fixture.heap.epoch(), epoch);
    assert_eq!(fixture.heap.collect_since(requested, Reason::Memory), Ok(()));
    assert_eq!(fixture.heap.epoch() != epoch, fixture.is_tracked());
    fixture.audit();
}
