//! Between a collection and the end of its sweep.

use std::vec::Vec;

use super::*;

/// A bench after a collection that kept every second of some blocks; nothing is swept yet.
fn collected(bytes: usize, count: usize) -> (Bench, Vec<usize>, Vec<usize>) {
    let bench = Bench::new(Mode::Hybrid, 2);
    let mut kept = std::vec![0; count];
    bench.add_roots(&kept);
    let mut gone = Vec::new();
    for slot in &mut kept {
        *slot = bench.allocate_clear(bytes, false);
        gone.push(bench.allocate_clear(bytes, false));
    }
    if is_small(bench.kind(kept[0])) {
        bench.heap.flush(bench.cache(0), bench.kind(kept[0]), u32::MAX);
    }
    bench.collect_lazily();
    (bench, kept, gone)
}

#[test]
fn sweeping_everything_twice_changes_nothing() {
    for bytes in [16, 500, 5000, 100_000] {
        let (bench, kept, gone) = collected(bytes, 50);
        bench.check();
        bench.heap.sweep_all();
        bench.check();
        let state = |bench: &Bench| {
            let units = bench.heap.units.lock().free_bytes();
            (units, kept.iter().chain(&gone).map(|&block| bench.is_taken(block)).collect::<Vec<_>>())
        };
        let before = state(&bench);
        bench.heap.swept.store(false, Ordering::Relaxed);
        bench.heap.sweep_all();
        assert_eq!(state(&bench), before);
        assert!(kept.iter().all(|&block| bench.is_taken(block)));
        assert!(!gone.iter().any(|&block| bench.is_taken(block)));
        bench.audit();
    }
}

#[test]
fn what_waits_to_be_swept_may_be_freed() {
    for bytes in [16, 500, 5000, LAST, 100_000] {
        let (mut bench, kept, gone) = collected(bytes, 50);
        for &block in &kept[..25] {
            assert_eq!(bench.free(block), Ok(()));
        }
        bench.check();
        bench.close();
        bench.check();
        for &block in &kept[..25] {
            assert!(!bench.is_taken(block), "{bytes}: given back before it was swept");
        }
        assert!(kept[25..].iter().all(|&block| bench.is_taken(block)));
        assert!(!gone.iter().any(|&block| bench.is_taken(block)));
        bench.audit();
    }
}

#[test]
fn blocks_come_from_what_waits_to_be_swept_before_the_heap_grows() {
    for bytes in [16, 500, 5000, LAST] {
        let (bench, kept, gone) = collected(bytes, 300);
        let units = bench.heap.room.units();
        let free = bench.heap.units.lock().free_bytes();
        let mut again = Vec::new();
        for _ in 0..gone.len() / 2 {
            again.push(bench.allocate(bytes));
        }
        assert!(again.iter().all(|block| gone.contains(block) && !kept.contains(block)), "{bytes}");
        assert_eq!((bench.heap.room.units(), bench.heap.units.lock().free_bytes()), (units, free), "{bytes}");
        bench.check();
        assert!(kept.iter().chain(&again).all(|&block| bench.is_taken(block)));
        bench.audit();
    }
}

#[test]
fn a_collection_sweeps_what_the_one_before_left() {
    let (bench, kept, gone) = collected(500, 300);
    bench.collect_lazily();
    bench.collect_lazily();
    bench.check();
    assert!(kept.iter().all(|&block| bench.is_taken(block)));
    assert!(!gone.iter().any(|&block| bench.is_taken(block)));
    bench.audit();
}

#[test]
fn another_class_gets_the_units_of_what_was_swept() {
    let bench = Bench::new(Mode::Collect, 1);
    for _ in 0..(8 << 20) / 512 {
        bench.allocate(512);
    }
    bench.collect();
    let units = bench.heap.room.units();
    for _ in 0..(6 << 20) / 9216 {
        bench.allocate(9216);
    }
    for _ in 0..4 {
        bench.allocate(200_000);
    }
    assert_eq!(bench.heap.room.units(), units);
    bench.audit();
}

#[test]
fn a_freed_block_is_poisoned_when_that_is_asked_for() {
    for poison in [false, true] {
        let settings = Settings { mode: Mode::Hybrid, poison, ..Settings::new() };
        let bench = Bench::with(&settings, 1);
        for bytes in [64, 1000, LAST, 100_000] {
            let block = bench.allocate(bytes);
            set_word(block + bytes / 16 * 8, 0x0123_4567);
            assert_eq!(bench.free(block), Ok(()));
            let after = word(block + bytes / 16 * 8);
            assert_eq!(
                after,
                if poison { usize::from_ne_bytes([POISON; 8]) } else { 0x0123_4567 },
                "{bytes}"
            );
        }
        assert_eq!(
            bench.heap.free_units.load(Ordering::Relaxed) == 0,
            poison,
            "no fast way around the poison"
        );
    }
}

#[test]
fn a_zeroed_block_is_zero_whatever_was_there() {
    for mode in [Mode::Hybrid, Mode::Collect] {
        let bench = Bench::new(mode, 1);
        for bytes in [16, 200, 1000, 5000, 30_000, 100_000, 6 << 20, 1 << 20, 6 << 20] {
            for _ in 0..20 {
                let block = bench.heap.allocate_zeroed(bench.cache(0), bytes) as usize;
                assert!(bytes_at(block, bytes).iter().all(|&byte| byte == 0), "{bytes}");
                // SAFETY: a live block, given up.
                unsafe { (block as *mut u8).write_bytes(0xaa, bench.usable(block)) };
                assert_eq!(bench.free(block), Ok(()));
            }
            bench.collect();
        }
        bench.audit();
    }
}

#[test]
fn in_collect_mode_blocks_come_clear() {
    let bench = Bench::new(Mode::Collect, 1);
    for bytes in [16, 112, 1000, 5000] {
        for _ in 0..2000 {
            let block = bench.allocate(bytes);
            assert!(
                bytes_at(block, bytes).iter().all(|&byte| byte == 0),
                "{bytes}: old contents keep garbage alive"
            );
            // SAFETY: a live block.
            unsafe { (block as *mut u8).write_bytes(0x77, bytes) };
        }
        bench.collect_lazily();
    }
    bench.audit();
}

/// A large block was shrunk where it was; its sweep dropped the pages of its bytes only, and called all of its last
/// unit clean.
#[test]
fn what_a_longer_block_left_behind_a_shorter_one_is_dropped_with_it() {
    let bench = Bench::new(Mode::Collect, 1);
    let block = bench.allocate(80_000);
    // SAFETY: a live block.
    unsafe { (block as *mut u8).write_bytes(0xaa, bench.usable(block)) };
    let at = NonNull::new(block as *mut u8).expect("an address");
    // SAFETY: as above.
    assert_eq!(unsafe { bench.heap.reallocate(bench.cache(0), at, 66_000) }, Ok(at.as_ptr()));
    bench.collect_lazily();
    let again = bench.heap.allocate_zeroed(bench.cache(0), 80_000) as usize;
    assert_eq!(again, block, "the same units");
    assert!(bytes_at(again, 80_000).iter().all(|&byte| byte == 0));
    bench.audit();
}
