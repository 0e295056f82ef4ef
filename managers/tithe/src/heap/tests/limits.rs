//! A heap with a limit: `TITHE_HEAP`.

use std::vec::Vec;

use super::*;

fn limited(mode: Mode, bytes: usize) -> Settings {
    Settings { mode, heap: Some(bytes), rule: crate::policy::Rule::Fixed, poison: true, ..Settings::new() }
}

impl Bench {
    fn used(&self) -> usize {
        self.heap.units.lock().used_bytes(&self.heap.room)
    }

    fn counter(&self, counter: impl Fn(&heaptoll_statspage::Slot) -> &core::sync::atomic::AtomicU64) -> u64 {
        counter(self.heap.teller.slot()).load(Ordering::Relaxed)
    }
}

#[test]
fn a_full_heap_collects_and_goes_on() {
    for bytes in [16, 48, 3000, LAST, 100_000] {
        for mode in [Mode::Collect, Mode::Hybrid] {
            let bench = Bench::with(&limited(mode, 2 << 20), 1);
            for _ in 0..(16 << 20) / bytes {
                bench.allocate(bytes);
                assert!(bench.used() <= 2 << 20, "{bytes}");
            }
            let collections = bench.counter(|slot| &slot.collections);
            assert!(
                (6..40).contains(&collections),
                "{bytes}: collected {collections} times, when it was full"
            );
            assert_eq!(bench.counter(|slot| &slot.refused_calls), 0);
            let high = bench.counter(|slot| &slot.used_high_bytes) as usize;
            assert!(high <= 2 << 20 && high > (2 << 20) - 8 * UNIT, "{bytes}: {high}");
            bench.audit();
        }
    }
}

#[test]
fn what_is_live_beyond_the_limit_is_refused_and_counted() {
    for (bytes, mode) in
        [(48, Mode::Collect), (1000, Mode::Hybrid), (LAST, Mode::Collect), (100_000, Mode::Explicit)]
    {
        let bench = Bench::with(&limited(mode, 1 << 20), 1);
        let mut roots = std::vec![0_usize; 1 << 16];
        bench.add_roots(&roots);
        let mut count = 0;
        let full = |bench: &Bench| bench.heap.allocate(bench.cache(0), bytes, false);
        loop {
            let block = full(&bench);
            if block.is_null() {
                break;
            }
            roots[count] = block as usize;
            count += 1;
        }
        let held = count * bench.usable(roots[0]);
        assert!(held > (1 << 20) - 100_000 - 8 * UNIT && held <= 1 << 20, "{bytes}: {held}");
        assert_eq!(bench.counter(|slot| &slot.refused_calls), 1);
        assert!(full(&bench).is_null());
        assert_eq!(bench.counter(|slot| &slot.refused_calls), 2);
        assert!(roots[..count].iter().all(|&block| bench.is_taken(block)));
        if mode == Mode::Explicit {
            assert_eq!(bench.free(roots[count / 2]), Ok(()));
        } else {
            // One root less is one block more.
            roots[count / 2] = 0;
        }
        assert!(!full(&bench).is_null(), "{bytes}");
        bench.audit();
    }
}

#[test]
fn a_request_larger_than_the_limit_is_refused_and_one_larger_than_anything_is_not_counted() {
    let bench = Bench::with(&limited(Mode::Collect, 1 << 20), 1);
    assert!(bench.heap.allocate(bench.cache(0), 1 << 20, false).is_null(), "with the byte behind the end");
    assert!(bench.heap.allocate(bench.cache(0), 1 << 40, false).is_null());
    assert_eq!(bench.counter(|slot| &slot.refused_calls), 2);
    assert!(bench.heap.allocate(bench.cache(0), usize::MAX, false).is_null());
    assert!(bench.heap.allocate_aligned(bench.cache(0), 1 << 62, 10).is_null());
    assert_eq!(bench.counter(|slot| &slot.refused_calls), 2);
    assert!(!bench.heap.allocate(bench.cache(0), (1 << 20) - 1, false).is_null());
    bench.audit();
}

/// A span of blocks of 15 KB has nine units: one block of them needs one.
#[test]
fn a_block_that_a_span_has_no_room_for_gets_units_of_its_own() {
    for mode in [Mode::Collect, Mode::Explicit] {
        let bench = Bench::with(&limited(mode, 2 * UNIT), 1);
        let block = bench.allocate(15_000);
        assert_eq!((bench.kind(block), bench.used()), (LARGE, UNIT));
        let roots = [block, 0];
        bench.add_roots(&roots);
        assert!(bench.heap.allocate(bench.cache(0), 20_000, false).is_null());
        assert_eq!(bench.counter(|slot| &slot.refused_calls), 1);
        let at = NonNull::new(block as *mut u8).expect("an address");
        // SAFETY: a live block.
        let moved = unsafe { bench.heap.reallocate(bench.cache(0), at, 100) };
        assert!(moved.is_ok_and(|new| !new.is_null()));
        bench.audit();
    }
}

#[test]
fn a_block_of_a_larger_size_serves_where_no_unit_is_left() {
    let bench = Bench::with(&limited(Mode::Explicit, 2 * UNIT), 1);
    let (small, wide) = (bench.allocate(16), bench.allocate(1000));
    assert_eq!(bench.used(), 2 * UNIT);
    let block = bench.allocate(300);
    assert_eq!(bench.usable(block), bench.usable(wide));
    let aligned = bench.heap.allocate_aligned(bench.cache(0), 512, 300);
    assert!((aligned as usize).is_multiple_of(512) && !aligned.is_null());
    assert!(bench.heap.allocate(bench.cache(0), 2000, false).is_null());
    for block in [small, wide, block, aligned as usize] {
        assert_eq!(bench.free(block), Ok(()));
    }
    bench.audit();
}

/// Blocks that a thread keeps for itself count: before a call is refused they are given back.
#[test]
fn what_the_cache_holds_of_other_sizes_is_given_back_before_a_call_is_refused() {
    let bench = Bench::with(&limited(Mode::Explicit, 16 * UNIT), 1);
    for bytes in [16, 48, 100, 200, 300, 400, 500, 600] {
        let block = bench.allocate(bytes);
        assert_eq!(bench.free(block), Ok(()));
    }
    assert!(bench.used() > 7 * UNIT);
    assert_eq!(bench.usable(bench.allocate(16 * UNIT - PAGE)), 16 * UNIT - PAGE);
    bench.audit();
}

/// A collection for want of memory was swept for the kind that wanted it only: what other kinds had was refused.
#[test]
fn units_of_dead_blocks_of_another_kind_serve_a_small_request() {
    let bench = Bench::with(&limited(Mode::Collect, 1 << 20), 1);
    // Nothing leads to these. The last of them is refused by nobody: the heap is full of the dead.
    while bench.used() < 1 << 20 {
        bench.allocate(48);
    }
    assert!(!bench.heap.allocate(bench.cache(0), 1000, false).is_null());
    assert_eq!(bench.counter(|slot| &slot.refused_calls), 0);
    bench.audit();
}

#[test]
fn the_same_holds_where_the_system_sets_the_limit() {
    let bench = Bench::new(Mode::Collect, 1);
    bench.allocate(48);
    bench.heap.units.lock().memory.heap.fail_every(1);
    while bench.heap.units.lock().free_bytes() > 0 {
        bench.allocate(48);
    }
    assert!(!bench.heap.allocate(bench.cache(0), 1000, false).is_null());
    bench.audit();
}

/// Room to grow would count, and a heap with a limit has none to waste.
#[test]
fn a_block_that_grows_gets_no_room_behind_it_within_a_limit() {
    let bench = Bench::with(&limited(Mode::Hybrid, 1 << 20), 1);
    let block = NonNull::new(bench.allocate(300_000) as *mut u8).expect("an address");
    bench.allocate(16);
    // SAFETY: a live block.
    let grown = unsafe { bench.heap.reallocate(bench.cache(0), block, 600_000) };
    assert!(grown.is_ok_and(|block| !block.is_null()));
    assert_eq!(bench.used(), 600_001_usize.div_ceil(UNIT) * UNIT + UNIT);
    bench.audit();
}

#[test]
fn units_in_use_are_told_as_they_come_and_go() {
    let bench = Bench::new(Mode::Explicit, 1);
    let told = |bench: &Bench| bench.counter(|slot| &slot.used_bytes) as usize;
    let mut blocks = Vec::new();
    for bytes in [16, 5000, 100_000, 1 << 20] {
        blocks.push(bench.allocate(bytes));
        assert_eq!(told(&bench), bench.used());
    }
    let high = bench.used();
    for block in blocks {
        assert_eq!(bench.free(block), Ok(()));
        assert_eq!(told(&bench), bench.used());
    }
    bench.heap.give_back(bench.cache(0));
    assert_eq!((told(&bench), bench.used()), (0, 0));
    assert_eq!(bench.counter(|slot| &slot.used_high_bytes), high as u64);
}
