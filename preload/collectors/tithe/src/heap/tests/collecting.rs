//! What a collection keeps and what it reclaims, case by case.

use std::vec::Vec;

use super::*;
use crate::runs::blacklist_mark;

/// Sizes of every sort of block: in spans of one word of bits, of one unit and of several, and large ones.
const SIZES: [usize; 8] = [16, 47, 128, 1000, 5000, LAST, SMALL_MAX, 300_000];

#[test]
fn a_root_keeps_its_block_and_nothing_else_is_kept() {
    for bytes in SIZES {
        let fixture = HeapFixture::new(Mode::Collect, 1);
        let blocks: [usize; 3] = core::array::from_fn(|_| fixture.allocate_clear(bytes, false));
        let usable = fixture.usable(blocks[0]);
        set_word(blocks[1], 0x1234);
        let roots = [blocks[1]];
        fixture.add_roots(&roots);
        fixture.collect_lazily();
        fixture.check();
        assert_eq!(blocks.map(|block| fixture.is_taken(block)), [false, true, false], "{bytes}");
        assert_eq!(word(blocks[1]), 0x1234);
        assert!(fixture.is_spoilt(blocks[0], usable) && fixture.is_spoilt(blocks[2], usable), "{bytes}");
        assert_eq!(fixture.census().live_bytes, usable as u64);
        fixture.audit();
    }
}

#[test]
fn without_roots_everything_goes_and_comes_again() {
    for bytes in SIZES {
        let fixture = HeapFixture::new(Mode::Collect, 1);
        let lowest = fixture.allocate(bytes);
        let mut most = 0;
        for _ in 0..20 {
            for _ in 0..(4 << 20) / bytes.next_multiple_of(UNIT) {
                most = most.max(fixture.allocate(bytes));
            }
            fixture.collect();
            fixture.check();
        }
        assert!(most - lowest < 12 << 20, "{bytes}: memory is used again, and {} bytes were", most - lowest);
        fixture.audit();
    }
}

#[test]
fn interior_addresses_keep_and_the_one_past_the_end_does_not() {
    for bytes in SIZES {
        for (place, kept) in [(0, true), (1, true), (8, true), (usize::MAX / 2, true), (usize::MAX, true)] {
            let fixture = HeapFixture::new(Mode::Hybrid, 1);
            let block = fixture.allocate_clear(bytes, false);
            let last = fixture.usable(block) - 1;
            let roots = [block + if place == usize::MAX / 2 { last / 2 } else { last.min(place) }];
            fixture.add_roots(&roots);
            fixture.collect();
            assert_eq!(fixture.is_taken(block), kept, "{bytes} at {place}");
        }
        let fixture = HeapFixture::new(Mode::Hybrid, 1);
        let block = fixture.allocate_clear(bytes, false);
        let roots = [block + fixture.usable(block), block - 1];
        fixture.add_roots(&roots);
        fixture.collect();
        assert!(!fixture.is_taken(block), "{bytes}");
        fixture.audit();
    }
}

#[test]
fn the_spare_units_after_a_large_block_and_the_rest_of_a_span_keep_nothing() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let large = fixture.allocate_clear(SMALL_MAX, false);
    let small = fixture.allocate_clear(5000, false);
    let class = &CLASS[class_of(5000)];
    let span = fixture
        .heap
        .reservation
        .address(fixture.heap.reservation.first(fixture.heap.reservation.unit_of(small).expect("a unit")));
    let rest = span + class.blocks as usize * class.size as usize;
    assert!(rest < span + class.units as usize * UNIT, "the class leaves a rest");
    let roots = [large + fixture.usable(large), large + 3 * UNIT - 8, rest];
    fixture.add_roots(&roots);
    fixture.collect();
    assert!(!fixture.is_taken(large) && !fixture.is_taken(small));
    fixture.audit();
}

#[test]
fn pointer_free_blocks_keep_nothing() {
    for bytes in SIZES {
        let fixture = HeapFixture::new(Mode::Hybrid, 1);
        let atomic = fixture.allocate_clear(bytes, true);
        let plain = fixture.allocate_clear(bytes, false);
        let (a, b) = (fixture.allocate_clear(64, false), fixture.allocate_clear(64, false));
        set_word(atomic + bytes / 2 / 8 * 8, a);
        set_word(plain + bytes / 2 / 8 * 8, b);
        let roots = [atomic, plain];
        fixture.add_roots(&roots);
        fixture.collect();
        assert_eq!(
            [atomic, plain, a, b].map(|block| fixture.is_taken(block)),
            [true, true, false, true],
            "{bytes}"
        );
        assert_eq!(word(atomic + bytes / 2 / 8 * 8), a, "contents are left alone");
        fixture.audit();
    }
}

#[test]
fn a_block_moved_by_realloc_stays_pointer_free() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let target = fixture.allocate_clear(64, false);
    let mut block = fixture.allocate_clear(100, true);
    for bytes in [1000, SMALL_MAX, 100_000, 800_000, 2000] {
        let at = NonNull::new(block as *mut u8).expect("an address");
        // SAFETY: `block` was allocated above or returned by the last call, and is live.
        block =
            unsafe { fixture.heap.reallocate(fixture.cache(0), at, bytes) }.expect("a live block") as usize;
        set_word(block, target);
    }
    let roots = [block];
    fixture.add_roots(&roots);
    fixture.collect();
    assert!(fixture.is_taken(block) && !fixture.is_taken(target));
}

/// `Cache::pop` once left the link to the next free block in the block it returned.
#[test]
fn a_fresh_block_does_not_keep_the_next_one() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let blocks: Vec<_> = (0..200).map(|_| fixture.allocate(48)).collect();
    let roots = [blocks[0]];
    fixture.add_roots(&roots);
    fixture.collect();
    let kept = blocks.iter().filter(|&&block| fixture.is_taken(block)).count();
    assert_eq!(kept, 1, "nothing was written to the block");
}

#[test]
fn words_equal_to_addresses_in_free_units_blacklist_them() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    fixture.allocate(16);
    let reservation = &fixture.heap.reservation;
    let beyond = reservation.units() + 7;
    let roots: Vec<_> = (1..=40)
        .map(|unit| reservation.address(unit) + 24)
        .chain([reservation.address(beyond as u32)])
        .collect();
    fixture.add_roots(&roots);
    fixture.collect();
    // SAFETY: the table has a row for every unit and some more.
    let blacklist = |unit: usize| unsafe { reservation.blacklist().add(unit).read() };
    assert_eq!(blacklist(1), blacklist_mark(fixture.heap.epoch()));
    assert_eq!(
        (blacklist(0), blacklist(41), blacklist(beyond)),
        (0, 0, blacklist_mark(fixture.heap.epoch()))
    );
    assert_eq!(fixture.heap.units.lock().avoided, 0);
    let unit_of = |address| fixture.heap.reservation.unit_of(address).expect("a block of the heap");
    // The cache has blocks of the first unit.
    assert_eq!(unit_of(fixture.allocate(1000)), 41);
    assert!(unit_of(fixture.allocate(100_000)) > 40);
    assert!(unit_of(fixture.allocate(5000)) > 40);
    assert!(fixture.heap.units.lock().avoided > 0);
    // Pointer-free blocks may lie there.
    let atomic: [usize; 8] =
        core::array::from_fn(|_| fixture.heap.allocate(fixture.cache(0), 100_000, true) as usize);
    assert!(atomic.iter().any(|&block| (1..=40).contains(&unit_of(block))));
    fixture.audit();
}

#[test]
fn caches_keep_their_blocks_through_a_collection() {
    let mut fixture = HeapFixture::new(Mode::Hybrid, 3);
    let mut blocks = Vec::new();
    for cache in 0..3 {
        for bytes in [16, 200, 5000, LAST] {
            let all: [usize; 4] =
                core::array::from_fn(|_| fixture.heap.allocate(fixture.cache(cache), bytes, false) as usize);
            // SAFETY: live blocks, not used after this.
            all[..2].iter().rev().for_each(|&block| unsafe {
                assert_eq!(fixture.heap.free(fixture.cache(cache), block as *mut u8), Ok(()));
            });
            blocks.extend(all.map(|block| (cache, bytes, block)));
        }
    }
    let lengths = |fixture: &HeapFixture| -> Vec<u32> {
        (0..3)
            .flat_map(|cache| {
                (1..SPAN_CLASSES).map(move |span_class| fixture.cache(cache).length(span_class))
            })
            .collect()
    };
    let before = lengths(&fixture);
    for _ in 0..3 {
        fixture.collect();
        fixture.heap.sweep_all();
        fixture.audit();
    }
    assert_eq!(lengths(&fixture), before);
    for cache in 0..3 {
        for span_class in 1..SPAN_CLASSES {
            let mut block = fixture.cache(cache).lists[span_class].head;
            let mut length = 0;
            while !block.is_null() {
                assert!(fixture.is_taken(block as usize));
                // SAFETY: a block in a list is free and linked.
                block = unsafe { (*block).next };
                length += 1;
            }
            assert_eq!(length, fixture.cache(cache).listed(span_class));
        }
    }
    // Freed blocks are in their cache, unreachable ones were swept.
    let taken = blocks.iter().filter(|&&(_, _, block)| fixture.is_taken(block)).count();
    assert_eq!(taken, 3 * 4 * 2);
    fixture.close();
    fixture.audit();
    assert_eq!(fixture.census().live_bytes, 0);
}

#[test]
fn a_block_in_a_cache_keeps_nothing() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let [a, b] = [fixture.allocate_clear(64, false), fixture.allocate_clear(200, false)];
    set_word(a + 32, b);
    assert_eq!(fixture.free(a), Ok(()));
    set_word(a + 32, b);
    let roots = [a];
    fixture.add_roots(&roots);
    fixture.collect();
    assert!(fixture.is_taken(a) && !fixture.is_taken(b));
}

#[test]
fn collections_are_counted_and_numbered() {
    let fixture = HeapFixture::new(Mode::Collect, 1);
    for number in 1..=600 {
        let bytes = fixture.usable(fixture.allocate(100_000));
        let before = fixture.heap.collector.lock().statistics.collected_bytes;
        fixture.collect();
        let statistics = fixture.heap.collector.lock().statistics;
        assert_eq!(statistics.collections, number);
        assert_eq!(statistics.collected_bytes - before, bytes as u64);
        assert!(statistics.pause_max_ns <= statistics.pause_total_ns);
    }
    fixture.audit();
}

#[test]
fn a_budget_brings_collections_by_itself() {
    let settings = Settings { mode: Mode::Collect, min_headroom: 256 << 10, ..Settings::new() };
    let fixture = HeapFixture::with(&settings, 1);
    for bytes in [100, 5000, 40_000] {
        let before = fixture.heap.collector.lock().statistics.collections;
        for _ in 0..(16 << 20) / bytes {
            let block = fixture.allocate(bytes);
            // Touched memory counts; untouched addresses may not.
            (0..bytes - 8).step_by(PAGE).for_each(|at| set_word(block + at, 1));
        }
        let collections = fixture.heap.collector.lock().statistics.collections - before;
        assert!((20..=80).contains(&collections), "{collections} collections with blocks of {bytes} bytes");
    }
    fixture.audit();
}

#[test]
fn what_is_freed_does_not_count_towards_a_collection() {
    let settings = Settings { mode: Mode::Hybrid, min_headroom: 256 << 10, ..Settings::new() };
    let fixture = HeapFixture::with(&settings, 1);
    for bytes in [100, 5000, 40_000] {
        for _ in 0..(16 << 20) / bytes {
            let blocks: [usize; 4] = core::array::from_fn(|_| fixture.allocate(bytes));
            blocks.iter().for_each(|&block| assert_eq!(fixture.free(block), Ok(())));
        }
    }
    assert_eq!(fixture.heap.collector.lock().statistics.collections, 0);
    fixture.audit();
}

#[test]
fn words_beyond_the_end_are_harmless_wherever_the_tables_end() {
    // Tables are mapped in steps; at some size of the heap each of them ends where its mapping does.
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let mut words = std::vec![0; 600];
    fixture.add_roots(&words);
    for number in 0..36 {
        words[number] = fixture.heap.allocate(fixture.cache(0), 32 << 20, true) as usize;
        assert_ne!(words[number], 0);
        let end = fixture.heap.reservation.base() + fixture.heap.reservation.units() * UNIT;
        for (at, word) in words[100..].iter_mut().enumerate() {
            *word = end + at * (crate::reservation::AHEAD * UNIT / 500);
        }
        fixture.collect();
    }
    assert!(fixture.heap.reservation.units() * UNIT > 1 << 30);
}
