//! What a collection keeps and what it takes, case by case.

use std::vec::Vec;

use super::*;
use crate::runs::shade;

/// Sizes of every sort of block: one word of bits, spans of one unit and of several, large ones.
const SIZES: [usize; 8] = [16, 47, 128, 1000, 5000, LAST, SMALL_MAX, 300_000];

#[test]
fn a_root_keeps_its_block_and_nothing_else_is_kept() {
    for bytes in SIZES {
        let bench = Bench::new(Mode::Collect, 1);
        let blocks: [usize; 3] = core::array::from_fn(|_| bench.allocate_clear(bytes, false));
        let usable = bench.usable(blocks[0]);
        set_word(blocks[1], 0x1234);
        let roots = [blocks[1]];
        bench.add_roots(&roots);
        bench.collect_lazily();
        bench.check();
        assert_eq!(blocks.map(|block| bench.is_taken(block)), [false, true, false], "{bytes}");
        assert_eq!(word(blocks[1]), 0x1234);
        assert!(bench.is_spoilt(blocks[0], usable) && bench.is_spoilt(blocks[2], usable), "{bytes}");
        assert_eq!(bench.census().live_bytes, usable as u64);
        bench.audit();
    }
}

#[test]
fn without_roots_everything_goes_and_comes_again() {
    for bytes in SIZES {
        let bench = Bench::new(Mode::Collect, 1);
        let lowest = bench.allocate(bytes);
        let mut most = 0;
        for _ in 0..20 {
            for _ in 0..(4 << 20) / bytes.next_multiple_of(UNIT) {
                most = most.max(bench.allocate(bytes));
            }
            bench.collect();
            bench.check();
        }
        assert!(most - lowest < 12 << 20, "{bytes}: memory is used again, and {} bytes were", most - lowest);
        bench.audit();
    }
}

#[test]
fn interior_addresses_keep_and_the_one_past_the_end_does_not() {
    for bytes in SIZES {
        for (place, kept) in [(0, true), (1, true), (8, true), (usize::MAX / 2, true), (usize::MAX, true)] {
            let bench = Bench::new(Mode::Hybrid, 1);
            let block = bench.allocate_clear(bytes, false);
            let last = bench.usable(block) - 1;
            let roots = [block + if place == usize::MAX / 2 { last / 2 } else { last.min(place) }];
            bench.add_roots(&roots);
            bench.collect();
            assert_eq!(bench.is_taken(block), kept, "{bytes} at {place}");
        }
        let bench = Bench::new(Mode::Hybrid, 1);
        let block = bench.allocate_clear(bytes, false);
        let roots = [block + bench.usable(block), block - 1];
        bench.add_roots(&roots);
        bench.collect();
        assert!(!bench.is_taken(block), "{bytes}");
        bench.audit();
    }
}

#[test]
fn the_room_behind_a_large_block_and_the_rest_of_a_span_keep_nothing() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let large = bench.allocate_clear(SMALL_MAX, false);
    let small = bench.allocate_clear(5000, false);
    let class = &CLASS[class_of(5000)];
    let span =
        bench.heap.room.address(bench.heap.room.first(bench.heap.room.unit_of(small).expect("a unit")));
    let rest = span + class.blocks as usize * class.size as usize;
    assert!(rest < span + class.units as usize * UNIT, "the class leaves a rest");
    let roots = [large + bench.usable(large), large + 3 * UNIT - 8, rest];
    bench.add_roots(&roots);
    bench.collect();
    assert!(!bench.is_taken(large) && !bench.is_taken(small));
    bench.audit();
}

#[test]
fn pointer_free_blocks_keep_nothing() {
    for bytes in SIZES {
        let bench = Bench::new(Mode::Hybrid, 1);
        let atomic = bench.allocate_clear(bytes, true);
        let plain = bench.allocate_clear(bytes, false);
        let (a, b) = (bench.allocate_clear(64, false), bench.allocate_clear(64, false));
        set_word(atomic + bytes / 2 / 8 * 8, a);
        set_word(plain + bytes / 2 / 8 * 8, b);
        let roots = [atomic, plain];
        bench.add_roots(&roots);
        bench.collect();
        assert_eq!(
            [atomic, plain, a, b].map(|block| bench.is_taken(block)),
            [true, true, false, true],
            "{bytes}"
        );
        assert_eq!(word(atomic + bytes / 2 / 8 * 8), a, "contents are left alone");
        bench.audit();
    }
}

#[test]
fn a_block_moved_by_realloc_stays_pointer_free() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let target = bench.allocate_clear(64, false);
    let mut block = bench.allocate_clear(100, true);
    for bytes in [1000, SMALL_MAX, 100_000, 800_000, 2000] {
        let at = NonNull::new(block as *mut u8).expect("an address");
        // SAFETY: a live block.
        block = unsafe { bench.heap.reallocate(bench.cache(0), at, bytes) }.expect("a live block") as usize;
        set_word(block, target);
    }
    let roots = [block];
    bench.add_roots(&roots);
    bench.collect();
    assert!(bench.is_taken(block) && !bench.is_taken(target));
}

/// `Cache::pop` left the link to the next free block in the block it handed out.
#[test]
fn a_fresh_block_does_not_keep_the_next_one() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let blocks: Vec<_> = (0..200).map(|_| bench.allocate(48)).collect();
    let roots = [blocks[0]];
    bench.add_roots(&roots);
    bench.collect();
    let kept = blocks.iter().filter(|&&block| bench.is_taken(block)).count();
    assert_eq!(kept, 1, "nothing was written to the block");
}

#[test]
fn words_that_look_like_addresses_of_free_units_blacken_them() {
    let bench = Bench::new(Mode::Hybrid, 1);
    bench.allocate(16);
    let room = &bench.heap.room;
    let beyond = room.units() + 7;
    let roots: Vec<_> =
        (1..=40).map(|unit| room.address(unit) + 24).chain([room.address(beyond as u32)]).collect();
    bench.add_roots(&roots);
    bench.collect();
    // SAFETY: the table has a row for every unit and some more.
    let black = |unit: usize| unsafe { room.black().add(unit).read() };
    assert_eq!(black(1), shade(bench.heap.epoch()));
    assert_eq!((black(0), black(41), black(beyond)), (0, 0, shade(bench.heap.epoch())));
    assert_eq!(bench.heap.units.lock().avoided, 0);
    let unit_of = |address| bench.heap.room.unit_of(address).expect("a block of the heap");
    // The cache has blocks of the first unit.
    assert_eq!(unit_of(bench.allocate(1000)), 41);
    assert!(unit_of(bench.allocate(100_000)) > 40);
    assert!(unit_of(bench.allocate(5000)) > 40);
    assert!(bench.heap.units.lock().avoided > 0);
    // Whoever holds no pointers may lie there.
    let atomic: [usize; 8] =
        core::array::from_fn(|_| bench.heap.allocate(bench.cache(0), 100_000, true) as usize);
    assert!(atomic.iter().any(|&block| (1..=40).contains(&unit_of(block))));
    bench.audit();
}

#[test]
fn caches_keep_their_blocks_through_a_collection() {
    let mut bench = Bench::new(Mode::Hybrid, 3);
    let mut blocks = Vec::new();
    for cache in 0..3 {
        for bytes in [16, 200, 5000, LAST] {
            let all: [usize; 4] =
                core::array::from_fn(|_| bench.heap.allocate(bench.cache(cache), bytes, false) as usize);
            // SAFETY: live blocks, given up.
            all[..2].iter().for_each(|&block| unsafe {
                assert_eq!(bench.heap.free(bench.cache(cache), block as *mut u8), Ok(()));
            });
            blocks.extend(all.map(|block| (cache, bytes, block)));
        }
    }
    let lengths = |bench: &Bench| -> Vec<u32> {
        (0..3).flat_map(|cache| (1..KINDS).map(move |kind| bench.cache(cache).length(kind))).collect()
    };
    let before = lengths(&bench);
    for _ in 0..3 {
        bench.collect();
        bench.heap.sweep_all();
        bench.audit();
    }
    assert_eq!(lengths(&bench), before);
    for cache in 0..3 {
        for kind in 1..KINDS {
            let mut block = bench.cache(cache).lists[kind].head;
            let mut length = 0;
            while !block.is_null() {
                assert!(bench.is_taken(block as usize));
                // SAFETY: a block in a list is free and linked.
                block = unsafe { (*block).next };
                length += 1;
            }
            assert_eq!(length, bench.cache(cache).length(kind));
        }
    }
    // What was freed is in its cache, what was forgotten was swept.
    let taken = blocks.iter().filter(|&&(_, _, block)| bench.is_taken(block)).count();
    assert_eq!(taken, 3 * 4 * 2);
    bench.close();
    bench.audit();
    assert_eq!(bench.census().live_bytes, 0);
}

#[test]
fn a_block_in_a_cache_keeps_nothing() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let [a, b] = [bench.allocate_clear(64, false), bench.allocate_clear(200, false)];
    set_word(a + 32, b);
    assert_eq!(bench.free(a), Ok(()));
    set_word(a + 32, b);
    let roots = [a];
    bench.add_roots(&roots);
    bench.collect();
    assert!(bench.is_taken(a) && !bench.is_taken(b));
}

#[test]
fn claims_that_are_not_linked_yet_stay_the_threads() {
    for kind in [1, 30, CLASSES + 20, CLASSES] {
        let bench = Bench::new(Mode::Hybrid, 2);
        let class = &CLASS[kind];
        let batch = TRAFFIC[kind].batch.into();
        let got = bench.heap.claim(bench.cache(0), kind as Kind, batch).expect("memory");
        bench.collect();
        bench.heap.sweep_all();
        bench.check();
        // Another thread gets others.
        let mut others = Vec::new();
        for _ in 0..2 * class.blocks {
            others.push(bench.heap.allocate_kind(bench.cache(1), kind as Kind) as usize);
        }
        bench.heap.count(got as usize * class.size as usize);
        bench.heap.chain(bench.cache(0), kind as Kind);
        for _ in 0..got {
            let block = bench.cache(0).pop(kind) as usize;
            assert!(block != 0 && bench.is_taken(block) && !others.contains(&block));
        }
        bench.audit();
    }
}

#[test]
fn collections_are_counted_and_numbered() {
    let bench = Bench::new(Mode::Collect, 1);
    for number in 1..=600 {
        let bytes = bench.usable(bench.allocate(100_000));
        let before = bench.heap.collection.lock().statistics.collected_bytes;
        bench.collect();
        let statistics = bench.heap.collection.lock().statistics;
        assert_eq!(statistics.collections, number);
        assert_eq!(statistics.collected_bytes - before, bytes as u64);
        assert!(statistics.pause_max_ns <= statistics.pause_total_ns);
    }
    bench.audit();
}

#[test]
fn a_budget_brings_collections_by_itself() {
    let settings = Settings { mode: Mode::Collect, min_headroom: 256 << 10, ..Settings::new() };
    let bench = Bench::with(&settings, 1);
    for bytes in [100, 5000, 40_000] {
        let before = bench.heap.collection.lock().statistics.collections;
        for _ in 0..(16 << 20) / bytes {
            let block = bench.allocate(bytes);
            // Touched memory counts; addresses that nobody uses may not.
            (0..bytes - 8).step_by(PAGE).for_each(|at| set_word(block + at, 1));
        }
        let collections = bench.heap.collection.lock().statistics.collections - before;
        assert!((20..=80).contains(&collections), "{collections} collections with blocks of {bytes} bytes");
    }
    bench.audit();
}

#[test]
fn what_is_freed_does_not_count_towards_a_collection() {
    let settings = Settings { mode: Mode::Hybrid, min_headroom: 256 << 10, ..Settings::new() };
    let bench = Bench::with(&settings, 1);
    for bytes in [100, 5000, 40_000] {
        for _ in 0..(16 << 20) / bytes {
            let blocks: [usize; 4] = core::array::from_fn(|_| bench.allocate(bytes));
            blocks.iter().for_each(|&block| assert_eq!(bench.free(block), Ok(())));
        }
    }
    assert_eq!(bench.heap.collection.lock().statistics.collections, 0);
    bench.audit();
}

#[test]
fn words_beyond_the_end_are_harmless_wherever_the_tables_end() {
    // Tables are mapped in steps; at some size of the heap each of them ends where its mapping does.
    let bench = Bench::new(Mode::Hybrid, 1);
    let mut words = std::vec![0; 600];
    bench.add_roots(&words);
    for number in 0..36 {
        words[number] = bench.heap.allocate(bench.cache(0), 32 << 20, true) as usize;
        assert_ne!(words[number], 0);
        let end = bench.heap.room.base() + bench.heap.room.units() * UNIT;
        for (at, word) in words[100..].iter_mut().enumerate() {
            *word = end + at * (crate::room::AHEAD * UNIT / 500);
        }
        bench.collect();
    }
    assert!(bench.heap.room.units() * UNIT > 1 << 30);
}
