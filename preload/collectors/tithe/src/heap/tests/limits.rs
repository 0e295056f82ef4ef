//! A heap with a limit: `TITHE_HEAP`.

use std::vec::Vec;

use super::*;

fn limited(mode: Mode, bytes: usize) -> Settings {
    Settings { mode, heap: Some(bytes), rule: crate::rule::Rule::Fixed, poison: true, ..Settings::new() }
}

impl HeapFixture {
    fn used(&self) -> usize {
        self.heap.units.lock().used_bytes(&self.heap.reservation)
    }

    fn counter(&self, counter: impl Fn(&heaptoll_stats_page::Slot) -> &core::sync::atomic::AtomicU64) -> u64 {
        counter(self.heap.reporter.slot()).load(Ordering::Relaxed)
    }
}

#[test]
fn a_full_heap_collects_and_goes_on() {
    for bytes in [16, 48, 3000, LAST, 100_000] {
        for mode in [Mode::Collect, Mode::Hybrid] {
            let fixture = HeapFixture::with(&limited(mode, 2 << 20), 1);
            for _ in 0..(16 << 20) / bytes {
                fixture.allocate(bytes);
                assert!(fixture.used() <= 2 << 20, "{bytes}");
            }
            let collections = fixture.counter(|slot| &slot.collections);
            assert!(
                (6..40).contains(&collections),
                "{bytes}: collected {collections} times, when it was full"
            );
            assert_eq!(fixture.counter(|slot| &slot.refused_calls), 0);
            let high = fixture.counter(|slot| &slot.used_high_bytes) as usize;
            assert!(high <= 2 << 20 && high > (2 << 20) - 8 * UNIT, "{bytes}: {high}");
            fixture.audit();
        }
    }
}

#[test]
fn what_is_live_beyond_the_limit_is_refused_and_counted() {
    for (bytes, mode) in
        [(48, Mode::Collect), (1000, Mode::Hybrid), (LAST, Mode::Collect), (100_000, Mode::Explicit)]
    {
        let fixture = HeapFixture::with(&limited(mode, 1 << 20), 1);
        let mut roots = std::vec![0_usize; 1 << 16];
        fixture.add_roots(&roots);
        let mut count = 0;
        let full = |fixture: &HeapFixture| fixture.heap.allocate(fixture.cache(0), bytes, false);
        loop {
            let block = full(&fixture);
            if block.is_null() {
                break;
            }
            roots[count] = block as usize;
            count += 1;
        }
        let held = count * fixture.usable(roots[0]);
        assert!(held > (1 << 20) - 100_000 - 8 * UNIT && held <= 1 << 20, "{bytes}: {held}");
        assert_eq!(fixture.counter(|slot| &slot.refused_calls), 1);
        assert!(full(&fixture).is_null());
        assert_eq!(fixture.counter(|slot| &slot.refused_calls), 2);
        assert!(roots[..count].iter().all(|&block| fixture.is_taken(block)));
        if mode == Mode::Explicit {
            assert_eq!(fixture.free(roots[count / 2]), Ok(()));
        } else {
            // One root less allows one block more.
            roots[count / 2] = 0;
        }
        assert!(!full(&fixture).is_null(), "{bytes}");
        fixture.audit();
    }
}

#[test]
fn a_request_larger_than_the_limit_is_refused_and_one_larger_than_anything_is_not_counted() {
    let fixture = HeapFixture::with(&limited(Mode::Collect, 1 << 20), 1);
    assert!(fixture.heap.allocate(fixture.cache(0), 1 << 20, false).is_null(), "with the byte after the end");
    assert!(fixture.heap.allocate(fixture.cache(0), 1 << 40, false).is_null());
    assert_eq!(fixture.counter(|slot| &slot.refused_calls), 2);
    assert!(fixture.heap.allocate(fixture.cache(0), usize::MAX, false).is_null());
    assert!(fixture.heap.allocate_aligned(fixture.cache(0), 1 << 62, 10).is_null());
    assert_eq!(fixture.counter(|slot| &slot.refused_calls), 2);
    assert!(!fixture.heap.allocate(fixture.cache(0), (1 << 20) - 1, false).is_null());
    fixture.audit();
}

/// A span of blocks of 15 KB has nine units: one block of them needs one.
#[test]
fn a_block_for_which_no_span_fits_gets_units_of_its_own() {
    for mode in [Mode::Collect, Mode::Explicit] {
        let fixture = HeapFixture::with(&limited(mode, 2 * UNIT), 1);
        let block = fixture.allocate(15_000);
        assert_eq!((fixture.span_class(block), fixture.used()), (LARGE, UNIT));
        let roots = [block, 0];
        fixture.add_roots(&roots);
        assert!(fixture.heap.allocate(fixture.cache(0), 20_000, false).is_null());
        assert_eq!(fixture.counter(|slot| &slot.refused_calls), 1);
        let at = NonNull::new(block as *mut u8).expect("an address");
        // SAFETY: `block` was allocated above and is live.
        let moved = unsafe { fixture.heap.reallocate(fixture.cache(0), at, 100) };
        assert!(moved.is_ok_and(|new| !new.is_null()));
        fixture.audit();
    }
}

#[test]
fn a_block_of_a_larger_size_serves_where_no_unit_is_left() {
    let fixture = HeapFixture::with(&limited(Mode::Explicit, 2 * UNIT), 1);
    let (small, wide) = (fixture.allocate(16), fixture.allocate(1000));
    assert_eq!(fixture.used(), 2 * UNIT);
    let block = fixture.allocate(300);
    assert_eq!(fixture.usable(block), fixture.usable(wide));
    let aligned = fixture.heap.allocate_aligned(fixture.cache(0), 512, 300);
    assert!((aligned as usize).is_multiple_of(512) && !aligned.is_null());
    assert!(fixture.heap.allocate(fixture.cache(0), 2000, false).is_null());
    for block in [small, wide, block, aligned as usize] {
        assert_eq!(fixture.free(block), Ok(()));
    }
    fixture.audit();
}

/// Blocks in a thread's cache count towards the limit: they are returned to their spans before a call fails.
#[test]
fn what_the_cache_holds_of_other_sizes_is_given_back_before_a_call_is_refused() {
    let fixture = HeapFixture::with(&limited(Mode::Explicit, 16 * UNIT), 1);
    for bytes in [16, 48, 100, 200, 300, 400, 500, 600] {
        let block = fixture.allocate(bytes);
        assert_eq!(fixture.free(block), Ok(()));
    }
    assert!(fixture.used() > 7 * UNIT);
    assert_eq!(fixture.usable(fixture.allocate(16 * UNIT - PAGE)), 16 * UNIT - PAGE);
    fixture.audit();
}

/// A collection on memory pressure was once swept for the requested span class only, so units of dead blocks of others
/// were not available.
#[test]
fn units_of_dead_blocks_of_another_kind_serve_a_small_request() {
    let fixture = HeapFixture::with(&limited(Mode::Collect, 1 << 20), 1);
    // No root reaches these: the heap fills with dead blocks.
    while fixture.used() < 1 << 20 {
        fixture.allocate(48);
    }
    assert!(!fixture.heap.allocate(fixture.cache(0), 1000, false).is_null());
    assert_eq!(fixture.counter(|slot| &slot.refused_calls), 0);
    fixture.audit();
}

#[test]
fn the_same_holds_where_the_system_sets_the_limit() {
    let fixture = HeapFixture::new(Mode::Collect, 1);
    fixture.allocate(48);
    fixture.heap.units.lock().memory.heap.fail_every(1);
    while fixture.heap.units.lock().free_bytes() > 0 {
        fixture.allocate(48);
    }
    assert!(!fixture.heap.allocate(fixture.cache(0), 1000, false).is_null());
    fixture.audit();
}

/// Spare units would count towards the limit.
#[test]
fn a_block_that_grows_within_a_limit_gets_no_spare_units() {
    let fixture = HeapFixture::with(&limited(Mode::Hybrid, 1 << 20), 1);
    let block = NonNull::new(fixture.allocate(300_000) as *mut u8).expect("an address");
    fixture.allocate(16);
    // SAFETY: `block` was allocated above and is live.
    let grown = unsafe { fixture.heap.reallocate(fixture.cache(0), block, 600_000) };
    assert!(grown.is_ok_and(|block| !block.is_null()));
    assert_eq!(fixture.used(), 600_001_usize.div_ceil(UNIT) * UNIT + UNIT);
    fixture.audit();
}

#[test]
fn units_in_use_are_reported_as_they_come_and_go() {
    let fixture = HeapFixture::new(Mode::Explicit, 1);
    let reported = |fixture: &HeapFixture| fixture.counter(|slot| &slot.used_bytes) as usize;
    let mut blocks = Vec::new();
    for bytes in [16, 5000, 100_000, 1 << 20] {
        blocks.push(fixture.allocate(bytes));
        assert_eq!(reported(&fixture), fixture.used());
    }
    let high = fixture.used();
    for block in blocks {
        assert_eq!(fixture.free(block), Ok(()));
        assert_eq!(reported(&fixture), fixture.used());
    }
    fixture.heap.flush_all(fixture.cache(0));
    assert_eq!((reported(&fixture), fixture.used()), (0, 0));
    assert_eq!(fixture.counter(|slot| &slot.used_high_bytes), high as u64);
}
