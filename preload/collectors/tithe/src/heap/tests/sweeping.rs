//! Between a collection and the end of its sweep.

use std::vec::Vec;

use super::*;

/// A heap after a collection that kept every second of some blocks; nothing is swept yet.
fn collected(bytes: usize, count: usize) -> (HeapFixture, Vec<usize>, Vec<usize>) {
    let fixture = HeapFixture::new(Mode::Hybrid, 2);
    let mut kept = std::vec![0; count];
    fixture.add_roots(&kept);
    let mut gone = Vec::new();
    for slot in &mut kept {
        *slot = fixture.allocate_clear(bytes, false);
        gone.push(fixture.allocate_clear(bytes, false));
    }
    if is_small(fixture.span_class(kept[0])) {
        fixture.heap.flush(fixture.cache(0), fixture.span_class(kept[0]), u32::MAX);
    }
    fixture.collect_lazily();
    (fixture, kept, gone)
}

#[test]
fn sweeping_everything_twice_changes_nothing() {
    for bytes in [16, 500, 5000, 100_000] {
        let (fixture, kept, gone) = collected(bytes, 50);
        fixture.check();
        fixture.heap.sweep_all();
        fixture.check();
        let state = |fixture: &HeapFixture| {
            let units = fixture.heap.units.lock().free_bytes();
            (units, kept.iter().chain(&gone).map(|&block| fixture.is_taken(block)).collect::<Vec<_>>())
        };
        let before = state(&fixture);
        fixture.heap.swept.store(false, Ordering::Relaxed);
        fixture.heap.sweep_all();
        assert_eq!(state(&fixture), before);
        assert!(kept.iter().all(|&block| fixture.is_taken(block)));
        assert!(!gone.iter().any(|&block| fixture.is_taken(block)));
        fixture.audit();
    }
}

#[test]
fn what_waits_to_be_swept_may_be_freed() {
    for bytes in [16, 500, 5000, LAST, 100_000] {
        let (mut fixture, kept, gone) = collected(bytes, 50);
        for &block in &kept[..25] {
            assert_eq!(fixture.free(block), Ok(()));
        }
        fixture.check();
        fixture.close();
        fixture.check();
        for &block in &kept[..25] {
            assert!(!fixture.is_taken(block), "{bytes}: given back before it was swept");
        }
        assert!(kept[25..].iter().all(|&block| fixture.is_taken(block)));
        assert!(!gone.iter().any(|&block| fixture.is_taken(block)));
        fixture.audit();
    }
}

#[test]
fn blocks_come_from_what_waits_to_be_swept_before_the_heap_grows() {
    for bytes in [16, 500, 5000, LAST] {
        let (fixture, kept, gone) = collected(bytes, 300);
        let units = fixture.heap.reservation.units();
        let free = fixture.heap.units.lock().free_bytes();
        let mut again = Vec::new();
        for _ in 0..gone.len() / 2 {
            again.push(fixture.allocate(bytes));
        }
        assert!(again.iter().all(|block| gone.contains(block) && !kept.contains(block)), "{bytes}");
        assert_eq!(
            (fixture.heap.reservation.units(), fixture.heap.units.lock().free_bytes()),
            (units, free),
            "{bytes}"
        );
        fixture.check();
        assert!(kept.iter().chain(&again).all(|&block| fixture.is_taken(block)));
        fixture.audit();
    }
}

#[test]
fn a_collection_sweeps_what_the_one_before_left() {
    let (fixture, kept, gone) = collected(500, 300);
    fixture.collect_lazily();
    fixture.collect_lazily();
    fixture.check();
    assert!(kept.iter().all(|&block| fixture.is_taken(block)));
    assert!(!gone.iter().any(|&block| fixture.is_taken(block)));
    fixture.audit();
}

#[test]
fn another_class_gets_the_units_of_what_was_swept() {
    let fixture = HeapFixture::new(Mode::Collect, 1);
    for _ in 0..(8 << 20) / 512 {
        fixture.allocate(512);
    }
    fixture.collect();
    let units = fixture.heap.reservation.units();
    for _ in 0..(6 << 20) / 9216 {
        fixture.allocate(9216);
    }
    for _ in 0..4 {
        fixture.allocate(200_000);
    }
    assert_eq!(fixture.heap.reservation.units(), units);
    fixture.audit();
}

#[test]
fn a_freed_block_is_poisoned_when_that_is_requested() {
    for poison in [false, true] {
        let settings = Settings { mode: Mode::Hybrid, poison, ..Settings::new() };
        let fixture = HeapFixture::with(&settings, 1);
        for bytes in [64, 1000, LAST, 100_000] {
            let block = fixture.allocate(bytes);
            set_word(block + bytes / 16 * 8, 0x0123_4567);
            assert_eq!(fixture.free(block), Ok(()));
            let after = word(block + bytes / 16 * 8);
            assert_eq!(
                after,
                if poison { usize::from_ne_bytes([POISON; 8]) } else { 0x0123_4567 },
                "{bytes}"
            );
        }
        assert_eq!(
            fixture.heap.fast_free_units.load(Ordering::Relaxed) == 0,
            poison,
            "no fast way around the poison"
        );
    }
}

#[test]
fn a_zeroed_block_is_zero_whatever_was_there() {
    for mode in [Mode::Hybrid, Mode::Collect] {
        let fixture = HeapFixture::new(mode, 1);
        for bytes in [16, 200, 1000, 5000, 30_000, 100_000, 6 << 20, 1 << 20, 6 << 20] {
            for _ in 0..20 {
                let block = fixture.heap.allocate_zeroed(fixture.cache(0), bytes) as usize;
                assert!(bytes_at(block, bytes).iter().all(|&byte| byte == 0), "{bytes}");
                // SAFETY: `block` was allocated above and is live.
                unsafe { (block as *mut u8).write_bytes(0xaa, fixture.usable(block)) };
                assert_eq!(fixture.free(block), Ok(()));
            }
            fixture.collect();
        }
        fixture.audit();
    }
}

#[test]
fn in_collect_mode_blocks_come_clear() {
    let fixture = HeapFixture::new(Mode::Collect, 1);
    for bytes in [16, 112, 1000, 5000] {
        for _ in 0..2000 {
            let block = fixture.allocate(bytes);
            assert!(
                bytes_at(block, bytes).iter().all(|&byte| byte == 0),
                "{bytes}: old contents keep garbage alive"
            );
            // SAFETY: `block` was allocated above and is live.
            unsafe { (block as *mut u8).write_bytes(0x77, bytes) };
        }
        fixture.collect_lazily();
    }
    fixture.audit();
}

/// A large block was shrunk where it was; its sweep dropped the pages of its bytes only, and the whole last unit
/// counted as clean.
#[test]
fn pages_beyond_a_shrunk_block_are_dropped_with_it() {
    let fixture = HeapFixture::new(Mode::Collect, 1);
    let block = fixture.allocate(80_000);
    // SAFETY: `block` was allocated above and is live.
    unsafe { (block as *mut u8).write_bytes(0xaa, fixture.usable(block)) };
    let at = NonNull::new(block as *mut u8).expect("an address");
    // SAFETY: `block` was allocated above and is live.
    assert_eq!(unsafe { fixture.heap.reallocate(fixture.cache(0), at, 66_000) }, Ok(at.as_ptr()));
    fixture.collect_lazily();
    let again = fixture.heap.allocate_zeroed(fixture.cache(0), 80_000) as usize;
    assert_eq!(again, block, "the same units");
    assert!(bytes_at(again, 80_000).iter().all(|&byte| byte == 0));
    fixture.audit();
}

/// A heap in mode `collect` whose dead blocks keep their contents until they are dropped or cleared.
fn unpoisoned() -> HeapFixture {
    let settings = Settings { mode: Mode::Collect, min_headroom: 1 << 40, ..Settings::new() };
    HeapFixture::with(&settings, 1)
}

/// Programs allocate blocks of one length over and over and touch a part of each: a page fault for each page cost
/// Ghostscript as much time as all else it did.
#[test]
fn a_dead_large_block_is_reused_with_its_pages_cleared() {
    let fixture = unpoisoned();
    let block = fixture.allocate(11 * UNIT - PAGE);
    set_word(block + 5 * PAGE, 7);
    fixture.collect_lazily();
    let again = fixture.allocate(11 * UNIT - PAGE);
    assert_eq!(again, block);
    assert_eq!(word(again + 5 * PAGE), 0);
    assert_eq!(
        crate::resident::resident_bytes(again..again + 11 * UNIT),
        2 * PAGE,
        "its key and what was touched"
    );
    fixture.audit();
}

/// What a program no longer needs goes back to the system with the next collection but one.
#[test]
fn a_dead_large_block_that_is_not_reused_loses_its_pages() {
    let fixture = unpoisoned();
    let block = fixture.allocate(11 * UNIT - PAGE);
    set_word(block + 5 * PAGE, 7);
    fixture.collect_lazily();
    fixture.heap.sweep_all();
    assert_eq!(word(block + 5 * PAGE), 7, "one was needed: it is kept");
    fixture.collect_lazily();
    fixture.heap.sweep_all();
    assert_eq!(word(block + 5 * PAGE), 0);
    fixture.audit();
}

/// All free pages went back to the system after every second collection of espresso's heap of four megabytes, and the next
/// blocks faulted them in again.
#[test]
fn free_pages_stay_resident_within_a_spare_unless_large_blocks_are_touched_in_part() {
    let is_purged = |bytes: usize, large: usize, address_percent: usize| {
        let fixture = unpoisoned();
        (0..bytes / 1000).for_each(|_| set_word(fixture.allocate(1000), 7));
        fixture.collect_lazily();
        let mut collector = fixture.heap.collector.lock();
        collector.last_budget = 1 << 20;
        collector.address_percent = address_percent;
        fixture.heap.large_since_gc.store(large, Ordering::Relaxed);
        assert!(!fixture.heap.postpone(&mut collector), "more is resident than may be allocated");
        fixture.heap.purge_due.load(Ordering::Relaxed)
    };
    let spare = crate::runs::RESIDENT_MIN;
    assert!(!is_purged(spare, 0, 100), "the next small blocks take it");
    assert!(!is_purged(spare, 1 << 20, 100), "the next large blocks do");
    assert!(is_purged(spare, 1 << 20, 150), "what they do not touch stays resident for nothing");
    assert!(!is_purged(spare, 0, 150), "there are none now");
    assert!(is_purged(spare + (2 << 20), 0, 100), "more is released");
}
