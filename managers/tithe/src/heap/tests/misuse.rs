//! Wrong addresses: refused, and nothing has changed.

use super::*;

/// What free says, and realloc with it.
fn refused(bench: &Bench, address: usize) -> Misuse {
    let block = NonNull::new(address as *mut u8).expect("an address");
    // SAFETY: what is tested: a wrong address is refused.
    let moved = unsafe { bench.heap.reallocate(bench.cache(0), block, 3_000_000) };
    let freed = bench.free(address);
    bench.audit();
    assert_eq!(moved.err(), freed.err());
    freed.expect_err("a wrong address")
}

#[test]
fn addresses_of_others_are_foreign() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let own = 5_usize;
    assert_eq!(bench.free(&raw const own as usize), Err(Misuse::Foreign), "before there is a heap");
    bench.allocate(100);
    assert_eq!(refused(&bench, &raw const own as usize), Misuse::Foreign);
    let end = bench.heap.room.address(bench.heap.room.units() as u32);
    assert_eq!(refused(&bench, end), Misuse::Foreign);
    assert_eq!(refused(&bench, bench.heap.room.base() - 16), Misuse::Foreign);
    assert_eq!(bench.usable(end), 0);
}

#[test]
fn addresses_inside_blocks_are_told_from_their_starts() {
    for bytes in [16, 48, 1000, 5000, LAST, 100_000, 10 << 20] {
        let bench = Bench::new(Mode::Hybrid, 1);
        let block = bench.allocate(bytes);
        for offset in [1, 8, bytes / 2, bytes - 1] {
            assert_eq!(refused(&bench, block + offset), Misuse::Damaged, "{bytes} at {offset}");
        }
        assert!(bench.is_taken(block));
        assert_eq!(bench.free(block), Ok(()));
    }
}

#[test]
fn the_rest_of_a_span_is_no_block() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let class =
        CLASS.iter().position(|class| !(class.blocks as usize * class.size as usize).is_multiple_of(UNIT));
    let class = &CLASS[class.expect("a class that leaves a rest")];
    let block = bench.allocate(class.size as usize - 1);
    let first = bench.heap.room.first(bench.heap.room.unit_of(block).expect("a unit"));
    let rest = bench.heap.room.address(first) + class.blocks as usize * class.size as usize;
    assert_eq!(refused(&bench, rest), Misuse::Damaged);
}

#[test]
fn a_second_free_is_refused_wherever_the_block_is() {
    for bytes in [16, 48, 1000, 5000, LAST] {
        let bench = Bench::new(Mode::Hybrid, 2);
        let block = bench.allocate(bytes);
        let keeps_the_span = bench.allocate(bytes);
        assert_eq!(bench.free(block), Ok(()));
        // In the cache.
        assert_eq!(refused(&bench, block), Misuse::DoubleFree, "{bytes}");
        // In its span.
        bench.heap.flush(bench.cache(0), bench.kind(block), u32::MAX);
        assert_eq!(refused(&bench, block), Misuse::DoubleFree, "{bytes}");
        assert!(!bench.is_taken(block) && bench.is_taken(keeps_the_span));
    }
    let bench = Bench::new(Mode::Hybrid, 1);
    for bytes in [SMALL_MAX, 100_000, 10 << 20] {
        let block = bench.allocate(bytes);
        assert_eq!(bench.free(block), Ok(()));
        assert_eq!(refused(&bench, block), Misuse::DoubleFree, "{bytes}");
    }
}

#[test]
fn a_block_that_is_handed_out_again_may_be_freed_again() {
    let bench = Bench::new(Mode::Hybrid, 1);
    for bytes in [16, 1000, 5000, LAST, 100_000] {
        let block = bench.allocate(bytes);
        assert_eq!(bench.free(block), Ok(()));
        assert_eq!(bench.allocate(bytes), block, "newest first");
        assert_eq!(bench.free(block), Ok(()));
    }
    bench.audit();
}

#[test]
fn a_program_may_write_anything_but_the_key() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let blocks: [usize; 8] = core::array::from_fn(|_| bench.allocate(64));
    for (at, &block) in blocks.iter().enumerate() {
        (0..8).for_each(|word| set_word(block + 8 * word, usize::MAX << at));
    }
    for block in blocks {
        assert_eq!(bench.free(block), Ok(()));
    }
    bench.audit();
}

/// A large block lay where small ones had been freed; realloc made it small, with the key of one of those, and free
/// refused it.
#[test]
fn a_large_block_brings_no_old_key_into_a_small_one() {
    let mut bench = Bench::new(Mode::Explicit, 1);
    let blocks: std::vec::Vec<_> = (0..4000).map(|_| bench.allocate(48)).collect();
    blocks.iter().for_each(|&block| assert_eq!(bench.free(block), Ok(())));
    bench.close();
    bench.caches.push(bench.heap.open_cache(1).expect("a cache"));
    let large = bench.allocate(100_000);
    assert!(blocks.contains(&large), "where a small block was");
    let at = NonNull::new(large as *mut u8).expect("an address");
    // SAFETY: a live block.
    let small = unsafe { bench.heap.reallocate(bench.cache(0), at, 100) }.expect("a live block");
    assert_eq!(bench.free(small as usize), Ok(()));
    bench.audit();
}

#[test]
fn blocks_that_hold_the_numbers_of_hash_functions_are_no_double_frees() {
    let bench = Bench::new(Mode::Hybrid, 1);
    let numbers: [u64; 6] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xff51_afd7_ed55_8ccd,
        0xcbf2_9ce4_8422_2325,
        u64::MAX,
    ];
    for number in numbers {
        let block = bench.allocate(16);
        set_word(block + 8, number as usize);
        assert_eq!(bench.free(block), Ok(()), "{number:#x}");
    }
    bench.audit();
}
