//! Mode `guard`: a freed block is nobody's as long as a word leads to it.

mod model;

use std::vec::Vec;

use super::*;
use crate::class::CACHE_LIMITS;
use crate::collector::Outgrown;
use crate::guard_settings::{AtBound, GuardSettings};
use crate::rule::Rule;

/// Sizes of every sort of block.
const SIZES: [usize; 8] = [16, 47, 128, 1000, 5000, LAST, SMALL_MAX, 300_000];

fn guarded(caches: usize) -> HeapFixture {
    HeapFixture::with(&Settings { mode: Mode::Guard, min_headroom: 1 << 40, ..Settings::new() }, caches)
}

/// Whether a block of this size is handed out where another one lies, in many allocations after a pass.
fn is_handed_out(fixture: &HeapFixture, address: usize, bytes: usize) -> bool {
    let usable = fixture.usable(address).max(bytes);
    let count = (8 << 20) / bytes.max(8 << 10) + 2 * usize::from(CACHE_LIMITS[1].capacity);
    (0..count).any(|_| (address..address + usable).contains(&fixture.allocate(bytes)))
}

#[test]
fn a_freed_block_is_clear_and_waits_while_a_word_leads_to_it() {
    for bytes in SIZES {
        for place in [0, 1, bytes / 2, bytes - 1, bytes] {
            let fixture = guarded(1);
            let block = fixture.allocate(bytes);
            let roots = [block + place];
            fixture.add_roots(&roots);
            set_word(block, 0x1234_5678);
            let usable = fixture.usable(block);
            assert_eq!(fixture.free(block), Ok(()), "{bytes}");
            assert!(bytes_at(block, usable).iter().all(|&byte| byte == 0), "{bytes}");
            fixture.collect();
            assert!(fixture.is_taken(block), "{bytes} at {place}");
            assert!(!is_handed_out(&fixture, block, bytes), "{bytes} at {place}");
            assert_eq!(fixture.free(block), Err(Misuse::DoubleFree), "{bytes}");
            fixture.audit();
        }
    }
}

#[test]
fn a_freed_block_becomes_available_by_a_pass_only() {
    for bytes in SIZES {
        let fixture = guarded(1);
        let block = fixture.allocate(bytes);
        let keeps_the_span = [fixture.allocate(bytes)];
        fixture.add_roots(&keeps_the_span);
        assert_eq!(fixture.free(block), Ok(()));
        assert!(fixture.is_taken(block), "{bytes}");
        assert!(!is_handed_out(&fixture, block, bytes), "{bytes}");
        fixture.collect_lazily();
        assert_eq!(fixture.free(block), Err(Misuse::DoubleFree), "{bytes}: before it is swept");
        fixture.collect();
        assert!(!fixture.is_taken(block), "{bytes}");
        assert_eq!(fixture.free(block), Err(Misuse::DoubleFree), "{bytes}: while it is available");
        fixture.audit();
    }
}

#[test]
fn what_is_unreachable_and_not_freed_is_kept() {
    for bytes in SIZES {
        let fixture = guarded(1);
        let leaked = fixture.allocate(bytes);
        set_word(leaked, 0x77);
        fixture.collect();
        fixture.collect();
        assert!(fixture.is_taken(leaked), "{bytes}");
        assert_eq!(word(leaked), 0x77);
        fixture.audit();
    }
}

#[test]
fn a_word_in_a_leaked_block_holds_and_one_in_a_freed_or_pointer_free_block_does_not() {
    for bytes in SIZES {
        let fixture = guarded(1);
        let targets: [usize; 3] = core::array::from_fn(|_| fixture.allocate(bytes));
        let (leaked, freed) = (fixture.allocate_clear(100, false), fixture.allocate_clear(100, false));
        let atomic = fixture.allocate_clear(100, true);
        for (holder, target) in [leaked, freed, atomic].into_iter().zip(targets) {
            set_word(holder + 8, target);
        }
        // A word leads to the freed one, which is kept: it keeps nothing.
        let roots = [freed];
        fixture.add_roots(&roots);
        for block in targets.into_iter().chain([freed]) {
            assert_eq!(fixture.free(block), Ok(()));
        }
        fixture.collect();
        assert_eq!(targets.map(|target| fixture.is_taken(target)), [true, false, false], "{bytes}");
        fixture.audit();
    }
}

#[test]
fn without_clearing_a_kept_block_keeps_what_it_leads_to() {
    for bytes in SIZES {
        let guard = GuardSettings { clear: false, ..GuardSettings::new() };
        let settings = Settings { mode: Mode::Guard, min_headroom: 1 << 40, guard, ..Settings::new() };
        let fixture = HeapFixture::with(&settings, 1);
        let (first, second, third) = (
            fixture.allocate_clear(bytes, false),
            fixture.allocate_clear(bytes, false),
            fixture.allocate(bytes),
        );
        set_word(first, second);
        set_word(second, third);
        let roots = [first];
        fixture.add_roots(&roots);
        for block in [first, second, third] {
            assert_eq!(fixture.free(block), Ok(()));
        }
        assert_eq!(word(first), second, "{bytes}: a freed block keeps its contents");
        fixture.collect();
        assert!([first, second, third].iter().all(|&block| fixture.is_taken(block)), "{bytes}");
        fixture.audit();
    }
}

#[test]
fn realloc_that_moves_holds_the_old_block_and_one_in_place_does_not() {
    for (bytes, moved) in [(100, 1000), (1000, 100), (5000, 100_000), (100_000, 5000), (100_000, 900_000)] {
        let fixture = guarded(1);
        let block = fixture.allocate(bytes);
        // In the way of a block that grows where it is.
        let next = fixture.allocate(bytes);
        let roots = [block];
        fixture.add_roots(&roots);
        set_word(block, 0x55);
        let at = NonNull::new(block as *mut u8).expect("an address");
        // SAFETY: `block` was allocated above and is live.
        let new =
            unsafe { fixture.heap.reallocate(fixture.cache(0), at, moved) }.expect("a live block") as usize;
        assert_ne!(new, block);
        assert_eq!((word(new), word(block)), (0x55, 0));
        fixture.collect();
        assert!(fixture.is_taken(block) && fixture.is_taken(new) && fixture.is_taken(next));
        // SAFETY: realloc refuses a block that is freed.
        let again = unsafe { fixture.heap.reallocate(fixture.cache(0), at, 3_000_000) };
        assert_eq!(again, Err(Misuse::DoubleFree));
        assert_eq!(fixture.free(block), Err(Misuse::DoubleFree));
        fixture.audit();
    }
}

#[test]
fn the_end_of_a_large_block_that_shrinks_is_clear_and_handed_to_none() {
    let fixture = guarded(1);
    let block = fixture.allocate_clear(400_000, false);
    set_word(block + 300_000, 0x66);
    let at = NonNull::new(block as *mut u8).expect("an address");
    // SAFETY: `block` was allocated above and is live.
    let shrunk = unsafe { fixture.heap.reallocate(fixture.cache(0), at, 100_000) };
    assert_eq!(shrunk.map(|block| block as usize), Ok(block));
    assert_eq!(word(block + 300_000), 0);
    fixture.collect();
    for _ in 0..100 {
        let other = fixture.allocate(50_000);
        assert!(!(block..block + 400_000).contains(&other));
    }
    // A word that leads to the end holds the block after its free, too.
    let roots = [block + 300_000];
    fixture.add_roots(&roots);
    assert_eq!(fixture.free(block), Ok(()));
    fixture.collect();
    assert!(fixture.is_taken(block));
    fixture.audit();
}

#[test]
fn a_large_block_whose_pages_are_locked_is_clear_when_it_is_used_again() {
    let fixture = guarded(1);
    let block = fixture.allocate_clear(300_000, false);
    assert_eq!(fixture.free(block), Ok(()));
    let first = fixture.heap.reservation.unit_of(block).expect("an address in the heap");
    // SAFETY: the first unit of a large block; nothing else runs. As where the system does not drop pages.
    unsafe { (*fixture.heap.reservation.span(first as u32)).clean = false };
    set_word(block + 100_000, 1);
    fixture.collect();
    assert_eq!((word(block + 100_000), fixture.heap.reservation.freed_table.late()), (0, 1));
    fixture.audit();
}

#[test]
fn realloc_of_a_block_that_was_never_handed_out_is_refused() {
    let fixture = guarded(1);
    let first = fixture.allocate(64);
    let step = CLASS[fixture.span_class(first) as usize].size as usize;
    let at = NonNull::new((first + step) as *mut u8).expect("an address");
    for bytes in [60, 1000] {
        // SAFETY: realloc refuses what is no block of the program's.
        let again = unsafe { fixture.heap.reallocate(fixture.cache(0), at, bytes) };
        assert_eq!(again, Err(Misuse::DoubleFree), "{bytes}");
    }
    fixture.audit();
}

#[test]
fn a_collection_that_reclaims_nothing_releases_nothing() {
    let guard = GuardSettings { waiting: Some(1 << 20), at_bound: AtBound::Release, ..GuardSettings::new() };
    let fixture =
        HeapFixture::with(&Settings { mode: Mode::Guard, reclaim: 1 << 20, guard, ..Settings::new() }, 1);
    let roots = free_and_keep(&fixture, 5000);
    assert!(fixture.heap.collector.lock().statistics.collections > 2);
    assert_eq!(fixture.heap.released.load(Ordering::Relaxed), 0);
    assert!(roots.iter().all(|&root| fixture.is_taken(root)));
    fixture.audit();
}

#[test]
fn the_size_of_a_freed_block_is_none() {
    for bytes in SIZES {
        let fixture = guarded(1);
        let block = fixture.allocate(bytes);
        let usable = || fixture.heap.usable_by_program(block as *const u8);
        assert!(usable() >= bytes);
        assert_eq!(fixture.free(block), Ok(()));
        assert_eq!(usable(), 0, "{bytes}");
        fixture.audit();
    }
}

#[test]
fn a_late_write_to_a_span_that_gives_its_memory_back_is_found() {
    let fixture = guarded(1);
    let blocks: Vec<_> = (0..2000).map(|_| fixture.allocate_clear(1000, false)).collect();
    // A word leads to each, so that all wait.
    fixture.add_roots(&blocks);
    for &block in &blocks {
        assert_eq!(fixture.free(block), Ok(()));
    }
    set_word(blocks[1000] + 8, 1);
    let spans = (blocks[0] + UNIT).next_multiple_of(UNIT)..blocks[1900] & !(UNIT - 1);
    fixture.collect();
    assert!(crate::resident::resident_bytes(spans.clone()) > 0);
    fixture.collect();
    assert_eq!(crate::resident::resident_bytes(spans), 0);
    (0..2).for_each(|_| fixture.collect());
    assert!(fixture.is_taken(blocks[1000]));
    assert_eq!((word(blocks[1000] + 8), fixture.heap.reservation.freed_table.late()), (0, 1));
    fixture.audit();
}

#[test]
fn of_a_large_block_an_eighth_waits_where_its_pages_are_given_back() {
    for (clear, part) in [(true, 8), (false, 1)] {
        let guard = GuardSettings { clear, ..GuardSettings::new() };
        let settings = Settings { mode: Mode::Guard, min_headroom: 1 << 40, guard, ..Settings::new() };
        let fixture = HeapFixture::with(&settings, 1);
        let block = fixture.allocate(1 << 20);
        let usable = fixture.usable(block);
        assert_eq!(fixture.free(block), Ok(()));
        assert_eq!(fixture.heap.waiting.load(Ordering::Relaxed), usable / part);
        fixture.audit();
    }
}

#[test]
fn a_request_that_what_waits_may_serve_skips_no_pass() {
    let fixture = guarded(1);
    let blocks: Vec<_> = (0..20).map(|_| fixture.allocate(1 << 20)).collect();
    fixture.heap.units.lock().memory.heap.fail_every(1);
    fixture.heap.skipped_collections.store(1000, Ordering::Relaxed);
    let request = || fixture.heap.allocate(fixture.cache(0), 1 << 20, false);
    while !request().is_null() {}
    let collections = || fixture.heap.collector.lock().statistics.collections;
    assert_eq!(collections(), 0, "nothing waits");
    for block in blocks {
        assert_eq!(fixture.free(block), Ok(()));
    }
    assert!(!request().is_null());
    assert_eq!(collections(), 1);
    fixture.heap.units.lock().memory.heap.fail_every(0);
    fixture.audit();
}

#[test]
fn calloc_is_clear_when_blocks_are_used_again() {
    for bytes in SIZES {
        let fixture = guarded(2);
        for round in 0..3 {
            let blocks: Vec<_> =
                (0..40).map(|_| fixture.heap.allocate_zeroed(fixture.cache(0), bytes) as usize).collect();
            for block in blocks {
                assert!(bytes_at(block, bytes).iter().all(|&byte| byte == 0), "{bytes} in round {round}");
                // SAFETY: a block of this size.
                unsafe { (block as *mut u8).write_bytes(0xa5, fixture.usable(block)) };
                assert_eq!(fixture.free(block), Ok(()));
            }
            fixture.collect();
        }
        fixture.audit();
    }
}

#[test]
fn a_block_in_a_cache_is_not_the_programs() {
    let fixture = guarded(1);
    let first = fixture.allocate(64);
    let step = CLASS[fixture.span_class(first) as usize].size as usize;
    let (mut reserved, mut target) = (first + step, 0);
    // A late write to a block that a cache has reserved: nothing there is read.
    for _ in 0..2 {
        assert_eq!(fixture.free(reserved), Err(Misuse::DoubleFree), "it was never handed out");
        target = fixture.allocate(1000);
        set_word(reserved, target);
        reserved += step;
    }
    assert_eq!(fixture.free(target), Ok(()));
    fixture.collect();
    assert!(!fixture.is_taken(target));
    set_word(first + step, 0);
    set_word(first + 2 * step, 0);
    fixture.audit();
}

#[test]
fn passes_come_by_the_bytes_that_wait() {
    let settings = Settings { mode: Mode::Guard, headroom: 1, min_headroom: 1 << 20, ..Settings::new() };
    let fixture = HeapFixture::with(&settings, 1);
    let collections = || fixture.heap.collector.lock().statistics.collections;
    for _ in 0..10_000 {
        fixture.allocate(1000);
    }
    assert_eq!(collections(), 0, "what is allocated does not count");
    let mut used = 0;
    for _ in 0..20_000 {
        let block = fixture.allocate(1000);
        assert_eq!(fixture.free(block), Ok(()));
        used = used.max(block);
    }
    assert!((10..=30).contains(&collections()), "{}", collections());
    assert!(used < fixture.heap.reservation.base() + (16 << 20), "what has waited is used again");
    fixture.audit();
}

#[test]
fn large_blocks_that_wait_have_passes_too_and_no_memory() {
    let settings = Settings { mode: Mode::Guard, headroom: 1, min_headroom: 1 << 20, ..Settings::new() };
    let fixture = HeapFixture::with(&settings, 1);
    for _ in 0..1000 {
        let block = fixture.allocate_clear(1 << 20, false);
        assert_eq!(fixture.free(block), Ok(()));
    }
    assert!(fixture.heap.reservation.units() * UNIT < 64 << 20);
    assert!(fixture.heap.collector.lock().statistics.collections > 0);
    fixture.audit();
}

#[test]
fn late_writes_are_found_when_the_block_becomes_available() {
    for bytes in SIZES {
        let fixture = guarded(1);
        let (block, other) = (fixture.allocate_clear(bytes, false), fixture.allocate_clear(bytes, false));
        let last = fixture.usable(block) - 8;
        for freed in [block, other] {
            assert_eq!(fixture.free(freed), Ok(()));
        }
        set_word(block + last, 1);
        assert_eq!(fixture.free(block), Err(Misuse::DoubleFree), "it clears nothing");
        fixture.collect();
        assert_eq!(fixture.heap.reservation.freed_table.late(), 1, "{bytes}");
        for _ in 0..100 {
            let zeroed = fixture.heap.allocate_zeroed(fixture.cache(0), bytes) as usize;
            assert!(bytes_at(zeroed, bytes).iter().all(|&byte| byte == 0), "{bytes}");
        }
        fixture.audit();
    }
}

#[test]
fn blocks_of_a_thread_that_has_ended_wait_on() {
    let mut fixture = guarded(1);
    let (block, gone) = (fixture.allocate(100), fixture.allocate(100));
    let roots = [block];
    fixture.add_roots(&roots);
    assert_eq!((fixture.free(block), fixture.free(gone)), (Ok(()), Ok(())));
    let waiting = fixture.usable(block) + fixture.usable(gone);
    fixture.close();
    assert_eq!(fixture.heap.waiting.load(Ordering::Relaxed), waiting);
    fixture.caches.push(fixture.heap.open_cache(1).expect("a cache"));
    fixture.collect();
    assert!(fixture.is_taken(block) && !fixture.is_taken(gone));
    assert_eq!(fixture.free(block), Err(Misuse::DoubleFree));
    fixture.audit();
}

#[test]
fn a_child_holds_what_its_parent_has_freed() {
    let fixture = guarded(2);
    let block = fixture.allocate(100);
    let roots = [block];
    fixture.add_roots(&roots);
    assert_eq!(fixture.free(block), Ok(()));
    fixture.heap.before_fork();
    // SAFETY: the only thread; its cache is the first.
    unsafe { fixture.heap.after_fork_in_child(fixture.caches[0]) };
    fixture.collect();
    assert!(fixture.is_taken(block));
    assert_eq!(fixture.free(block), Err(Misuse::DoubleFree));
    fixture.check();
}

fn bounded(waiting: usize, at_bound: AtBound) -> HeapFixture {
    let guard = GuardSettings { waiting: Some(waiting), at_bound, ..GuardSettings::new() };
    HeapFixture::with(&Settings { mode: Mode::Guard, min_headroom: 1 << 30, guard, ..Settings::new() }, 1)
}

/// Frees blocks of a thousand bytes and keeps a pointer to each.
fn free_and_keep(fixture: &HeapFixture, count: usize) -> Vec<usize> {
    let mut roots = std::vec![0; count];
    fixture.add_roots(&roots);
    for root in &mut roots {
        *root = fixture.allocate(1000);
        assert_eq!(fixture.free(*root), Ok(()));
    }
    roots
}

#[test]
fn at_the_bound_collections_come_more_often() {
    let fixture = bounded(1 << 20, AtBound::Collect);
    let roots = free_and_keep(&fixture, 3000);
    let collections = fixture.heap.collector.lock().statistics.collections;
    assert!((10..60).contains(&collections), "{collections}");
    fixture.collect();
    assert!(roots.iter().all(|&root| fixture.is_taken(root)), "all are kept");
    fixture.audit();
}

#[test]
fn at_the_bound_a_warning_is_given_once() {
    let fixture = bounded(1 << 20, AtBound::Warn);
    let roots = free_and_keep(&fixture, 3000);
    assert!(fixture.heap.collector.lock().statistics.collections < 8);
    assert_eq!(fixture.heap.collector.lock().outgrown, Outgrown::Reported);
    fixture.collect();
    assert!(roots.iter().all(|&root| fixture.is_taken(root)), "all are kept");
    fixture.audit();
}

#[test]
fn at_the_bound_the_oldest_are_released() {
    let fixture = bounded(1 << 20, AtBound::Release);
    let count = |roots: &[usize]| roots.iter().filter(|&&root| fixture.is_taken(root)).count();
    let first = free_and_keep(&fixture, 1000);
    fixture.collect();
    assert_eq!(count(&first), 1000, "the bound is not reached");
    let second = free_and_keep(&fixture, 200);
    fixture.collect();
    let left = count(&first);
    assert!((500..1000).contains(&left) && count(&second) == 200, "{left}");
    // Where the oldest were, which does not make them old.
    let third = free_and_keep(&fixture, 300);
    fixture.collect();
    assert!(third.iter().any(|root| first.contains(root)));
    let of_first = first.iter().filter(|root| !third.contains(root) && fixture.is_taken(**root)).count();
    assert!(of_first < left && count(&second) == 200 && count(&third) == 300, "{of_first} of {left}");
    assert!(fixture.heap.kept.load(Ordering::Relaxed) <= 1 << 20);
    assert!(fixture.heap.released.load(Ordering::Relaxed) >= 2);
    assert_eq!(fixture.heap.collector.lock().outgrown, Outgrown::Reported);
    fixture.audit();
}

#[test]
fn a_bound_that_is_used_up_does_not_make_each_free_a_pass() {
    for at_bound in [AtBound::Collect, AtBound::Release] {
        let fixture = bounded(1 << 20, at_bound);
        let _roots = free_and_keep(&fixture, 10_000);
        let collections = fixture.heap.collector.lock().statistics.collections;
        assert!((10..60).contains(&collections), "{at_bound:?}: {collections}");
        fixture.audit();
    }
}

#[test]
fn a_large_block_without_pages_counts_an_eighth_against_the_bound() {
    let fixture = bounded(1 << 20, AtBound::Release);
    let roots: [usize; 7] = core::array::from_fn(|_| fixture.allocate(1 << 20));
    fixture.add_roots(&roots);
    for block in roots {
        assert_eq!(fixture.free(block), Ok(()));
    }
    fixture.collect();
    assert!(roots.iter().all(|&block| fixture.is_taken(block)));
    fixture.audit();
}

#[test]
fn a_large_block_that_faults_is_accessible_when_it_is_used_again() {
    let guard = GuardSettings { fault: true, ..GuardSettings::new() };
    let fixture = HeapFixture::with(
        &Settings { mode: Mode::Guard, min_headroom: 1 << 40, guard, ..Settings::new() },
        1,
    );
    let (block, kept) = (fixture.allocate_clear(300_000, false), fixture.allocate_clear(300_000, false));
    let roots = [kept];
    fixture.add_roots(&roots);
    assert_eq!((fixture.free(block), fixture.free(kept)), (Ok(()), Ok(())));
    let inaccessible = || fixture.heap.reservation.freed_table.inaccessible.load(Ordering::Relaxed);
    assert_eq!(inaccessible(), 2);
    let reads = |address: usize| heaptoll_roots::is_readable(address);
    assert!(!reads(block) && !reads(kept));
    fixture.collect();
    assert_eq!(inaccessible(), 1);
    assert!(reads(block) && !reads(kept));
    assert_eq!(fixture.free(kept), Err(Misuse::DoubleFree));
    let again: Vec<_> = (0..3).map(|_| fixture.allocate_clear(300_000, false)).collect();
    assert!(again.contains(&block) && !again.contains(&kept));
    assert_eq!(fixture.heap.reservation.freed_table.late(), 0);
    fixture.audit();
}

#[test]
fn the_census_counts_what_waits_apart_from_what_is_live() {
    for bytes in SIZES {
        let fixture = guarded(1);
        let (block, live) = (fixture.allocate(bytes), fixture.allocate(bytes));
        assert_eq!(fixture.free(block), Ok(()));
        let (waits, has) = (fixture.usable(block) as u64, fixture.usable(live) as u64);
        assert_eq!(
            (fixture.census().quarantined_bytes, fixture.census().live_bytes),
            (waits, has),
            "{bytes}"
        );
        fixture.collect();
        assert_eq!((fixture.census().quarantined_bytes, fixture.census().live_bytes), (0, has), "{bytes}");
        fixture.audit();
    }
}

#[test]
fn memory_that_cannot_be_served_has_a_pass_first() {
    let settings = Settings { mode: Mode::Guard, heap: Some(4 << 20), rule: Rule::Fixed, ..Settings::new() };
    let fixture = HeapFixture::with(&settings, 1);
    for bytes in [1000, 100_000] {
        for _ in 0..(40 << 20) / bytes {
            let block = fixture.heap.allocate(fixture.cache(0), bytes, false);
            assert!(!block.is_null(), "{bytes}");
            assert_eq!(fixture.free(block as usize), Ok(()));
        }
    }
    fixture.audit();
}
