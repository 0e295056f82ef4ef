//! Exhausted memory, and requests that cannot be met.

use std::vec::Vec;

use super::*;

#[test]
fn where_the_system_gives_nothing_there_is_no_block() {
    let mut fixture = HeapFixture::new(Mode::Hybrid, 1);
    fixture.heap.units.lock().memory.heap.fail_every(1);
    for bytes in [1, 1000, LAST, SMALL_MAX, 10 << 20] {
        assert!(fixture.heap.allocate(fixture.cache(0), bytes, false).is_null());
        assert!(fixture.heap.allocate_zeroed(fixture.cache(0), bytes).is_null());
        assert!(fixture.heap.allocate_aligned(fixture.cache(0), 4096, bytes).is_null());
    }
    fixture.audit();
    fixture.heap.units.lock().memory.heap.fail_every(0);
    fixture.allocate(100);
    fixture.close();
    fixture.check();
}

#[test]
fn out_of_memory_collects_first() {
    for bytes in [48, 3000, LAST, 100_000] {
        let fixture = HeapFixture::new(Mode::Collect, 1);
        let first = fixture.allocate(bytes);
        fixture.heap.units.lock().memory.heap.fail_every(1);
        // No root reaches the blocks: each collection makes space for more.
        for _ in 0..(8 << 20) / bytes {
            fixture.allocate(bytes);
        }
        assert!(fixture.heap.collector.lock().statistics.collections > 0);
        assert!(fixture.is_taken(first) || bytes > 48, "{bytes}: an address that was used again or not");
        fixture.audit();
    }
}

#[test]
fn out_of_memory_ends_with_null_when_all_is_live() {
    let fixture = HeapFixture::new(Mode::Collect, 1);
    let mut roots = std::vec![0_usize; 1 << 16];
    fixture.add_roots(&roots);
    fixture.allocate(100);
    fixture.heap.units.lock().memory.heap.fail_every(1);
    let mut count = 0;
    loop {
        let block = fixture.heap.allocate(fixture.cache(0), 1000, false);
        if block.is_null() {
            break;
        }
        roots[count] = block as usize;
        count += 1;
    }
    assert!(count > 500, "a first step of 1 MiB has some hundred blocks: {count}");
    assert!(roots[..count].iter().all(|&block| fixture.is_taken(block)));
    fixture.audit();
    // One root less allows one block more.
    roots[count / 2] = 0;
    assert!(!fixture.heap.allocate(fixture.cache(0), 1000, false).is_null());
    fixture.audit();
}

#[test]
fn in_explicit_mode_memory_that_is_swept_is_all_there_is() {
    let fixture = HeapFixture::new(Mode::Explicit, 1);
    fixture.allocate(100);
    fixture.heap.units.lock().memory.heap.fail_every(1);
    let mut blocks = Vec::new();
    loop {
        let block = fixture.heap.allocate(fixture.cache(0), 5000, false);
        if block.is_null() {
            break;
        }
        blocks.push(block as usize);
    }
    assert_eq!(fixture.heap.collect(Reason::Called), Err(crate::progress::NotCollected::Mode));
    // A block of another class needs whole free units.
    assert!(fixture.heap.allocate(fixture.cache(0), 9000, false).is_null());
    for &block in &blocks {
        assert_eq!(fixture.free(block), Ok(()));
    }
    let span_class = fixture.span_class(blocks[0]);
    fixture.heap.flush(fixture.cache(0), span_class, u32::MAX);
    fixture.allocate(9000);
    fixture.audit();
}

#[test]
fn sizes_and_alignments_beyond_measure_are_refused() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    fixture.allocate(1);
    for bytes in [LARGEST, LARGEST - PAGE, LARGEST / 2, usize::MAX, 1 << 48] {
        assert!(fixture.heap.allocate(fixture.cache(0), bytes, false).is_null(), "{bytes:#x}");
        assert!(fixture.heap.allocate_zeroed(fixture.cache(0), bytes).is_null(), "{bytes:#x}");
        assert!(fixture.heap.allocate_aligned(fixture.cache(0), 64, bytes).is_null(), "{bytes:#x}");
    }
    fixture.audit();
}

#[test]
fn alignments_beyond_the_tables_are_refused() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    fixture.allocate(1);
    for shift in [45, 46, 47, 50, 62] {
        assert!(fixture.heap.allocate_aligned(fixture.cache(0), 1 << shift, 100).is_null(), "2^{shift}");
    }
    fixture.audit();
}

#[test]
fn alignments_above_two_mebibytes_hold() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    for shift in 21..28 {
        let block = fixture.heap.allocate_aligned(fixture.cache(0), 1 << shift, 100);
        assert!(!block.is_null() && (block as usize).is_multiple_of(1 << shift), "2^{shift}: {block:?}");
    }
    fixture.audit();
}

#[test]
fn without_memory_for_the_mark_stack_there_is_no_collection_and_nothing_is_lost() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let roots = std::vec![fixture.allocate(64)];
    fixture.add_roots(&roots);
    let lost = fixture.allocate(64);
    fixture.heap.collector.lock().stack.fail_every(1);
    assert_eq!(fixture.heap.collect(Reason::Called), Err(crate::progress::NotCollected::Abandoned));
    assert!(fixture.is_taken(roots[0]) && fixture.is_taken(lost));
    assert_eq!(fixture.heap.collector.lock().statistics.abandoned, 1);
    fixture.audit();
    fixture.heap.collector.lock().stack.fail_every(0);
    fixture.collect();
    assert!(fixture.is_taken(roots[0]) && !fixture.is_taken(lost));
    fixture.audit();
}
