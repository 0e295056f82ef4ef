//! Out of memory, and requests that cannot be met.

use std::vec::Vec;

use super::*;

#[test]
fn where_the_system_gives_nothing_there_is_no_block() {
    let mut bench = Bench::new(Mode::Hybrid, 1);
    bench.heap.units.lock().memory.heap.fail_every(1);
    for bytes in [1, 1000, LAST, SMALL_MAX, 10 << 20] {
        assert!(bench.heap.allocate(bench.cache(0), bytes, false).is_null());
        assert!(bench.heap.allocate_zeroed(bench.cache(0), bytes).is_null());
        assert!(bench.heap.allocate_aligned(bench.cache(0), 4096, bytes).is_null());
    }
    bench.audit();
    bench.heap.units.lock().memory.heap.fail_every(0);
    bench.allocate(100);
    bench.close();
    bench.check();
}

#[test]
fn out_of_memory_collects_first() {
    for bytes in [48, 3000, LAST, 100_000] {
        let bench = Bench::new(Mode::Collect, 1);
        let first = bench.allocate(bytes);
        bench.heap.units.lock().memory.heap.fail_every(1);
        // Nothing leads to the blocks: there is always one more.
        for _ in 0..(8 << 20) / bytes {
            bench.allocate(bytes);
        }
        assert!(bench.heap.collection.lock().statistics.collections > 0);
        assert!(bench.is_taken(first) || bytes > 48, "{bytes}: an address that was used again or not");
        bench.audit();
    }
}

#[test]
fn out_of_memory_ends_with_null_when_all_is_live() {
    let bench = Bench::new(Mode::Collect, 1);
    let mut roots = std::vec![0_usize; 1 << 16];
    bench.add_roots(&roots);
    bench.allocate(100);
    bench.heap.units.lock().memory.heap.fail_every(1);
    let mut count = 0;
    loop {
        let block = bench.heap.allocate(bench.cache(0), 1000, false);
        if block.is_null() {
            break;
        }
        roots[count] = block as usize;
        count += 1;
    }
    assert!(count > 500, "a first step of 1 MiB has some hundred blocks: {count}");
    assert!(roots[..count].iter().all(|&block| bench.is_taken(block)));
    bench.audit();
    // One root less is one block more.
    roots[count / 2] = 0;
    assert!(!bench.heap.allocate(bench.cache(0), 1000, false).is_null());
    bench.audit();
}

#[test]
fn in_explicit_mode_memory_that_is_swept_is_all_there_is() {
    let bench = Bench::new(Mode::Explicit, 1);
    bench.allocate(100);
    bench.heap.units.lock().memory.heap.fail_every(1);
    let mut blocks = Vec::new();
    loop {
        let block = bench.heap.allocate(bench.cache(0), 5000, false);
        if block.is_null() {
            break;
        }
        blocks.push(block as usize);
    }
    assert_eq!(bench.heap.collect(Reason::Called), Err(crate::collection::NotCollected::Mode));
    // Of another class: what is given back becomes units first.
    assert!(bench.heap.allocate(bench.cache(0), 9000, false).is_null());
    for &block in &blocks {
        assert_eq!(bench.free(block), Ok(()));
    }
    let kind = bench.kind(blocks[0]);
    bench.heap.flush(bench.cache(0), kind, u32::MAX);
    bench.allocate(9000);
    bench.audit();
}

#[test]
fn sizes_and_alignments_beyond_measure_are_refused() {
    let bench = Bench::new(Mode::Hybrid, 1);
    bench.allocate(1);
    for bytes in [LARGEST, LARGEST - PAGE, LARGEST / 2, usize::MAX, 1 << 48] {
        assert!(bench.heap.allocate(bench.cache(0), bytes, false).is_null(), "{bytes:#x}");
        assert!(bench.heap.allocate_zeroed(bench.cache(0), bytes).is_null(), "{bytes:#x}");
        assert!(bench.heap.allocate_aligned(bench.cache(0), 64, bytes).is_null(), "{bytes:#x}");
    }
    bench.audit();
}

#[test]
fn alignments_beyond_the_tables_are_refused() {
    let bench = Bench::new(Mode::Hybrid, 1);
    bench.allocate(1);
    for shift in [45, 46, 47, 50, 62] {
        assert!(bench.heap.allocate_aligned(bench.cache(0), 1 << shift, 100).is_null(), "2^{shift}");
    }
    bench.audit();
}

#[test]
fn alignments_above_two_mebibytes_hold() {
    let bench = Bench::new(Mode::Hybrid, 1);
    for shift in 21..28 {
        let block = bench.heap.allocate_aligned(bench.cache(0), 1 << shift, 100);
        assert!(!block.is_null() && (block as usize).is_multiple_of(1 << shift), "2^{shift}: {block:?}");
    }
    bench.audit();
}

#[test]
fn without_memory_for_the_mark_stack_there_is_no_collection_and_nothing_is_lost() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let roots = std::vec![bench.allocate(64)];
    bench.add_roots(&roots);
    let lost = bench.allocate(64);
    bench.heap.collection.lock().stack.fail_every(1);
    assert_eq!(bench.heap.collect(Reason::Called), Err(crate::collection::NotCollected::Abandoned));
    assert!(bench.is_taken(roots[0]) && bench.is_taken(lost));
    assert_eq!(bench.heap.collection.lock().statistics.abandoned, 1);
    bench.audit();
    bench.heap.collection.lock().stack.fail_every(0);
    bench.collect();
    assert!(bench.is_taken(roots[0]) && !bench.is_taken(lost));
    bench.audit();
}
