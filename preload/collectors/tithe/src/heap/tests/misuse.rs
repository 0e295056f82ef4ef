//! Wrong addresses are rejected, and nothing changes.

use super::*;

/// The error of free, which realloc shares.
fn refused(fixture: &HeapFixture, address: usize) -> Misuse {
    let block = NonNull::new(address as *mut u8).expect("an address");
    // SAFETY: realloc rejects a wrong address without using it, which is the subject of the test.
    let moved = unsafe { fixture.heap.reallocate(fixture.cache(0), block, 3_000_000) };
    let freed = fixture.free(address);
    fixture.audit();
    assert_eq!(moved.err(), freed.err());
    freed.expect_err("a wrong address")
}

#[test]
fn addresses_of_others_are_foreign() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let own = 5_usize;
    assert_eq!(fixture.free(&raw const own as usize), Err(Misuse::Foreign), "before there is a heap");
    fixture.allocate(100);
    assert_eq!(refused(&fixture, &raw const own as usize), Misuse::Foreign);
    let end = fixture.heap.reservation.address(fixture.heap.reservation.units() as u32);
    assert_eq!(refused(&fixture, end), Misuse::Foreign);
    assert_eq!(refused(&fixture, fixture.heap.reservation.base() - 16), Misuse::Foreign);
    assert_eq!(fixture.usable(end), 0);
}

#[test]
fn addresses_inside_blocks_are_distinguished_from_their_starts() {
    for bytes in [16, 48, 1000, 5000, LAST, 100_000, 10 << 20] {
        let fixture = HeapFixture::new(Mode::Hybrid, 1);
        let block = fixture.allocate(bytes);
        for offset in [1, 8, bytes / 2, bytes - 1] {
            assert_eq!(refused(&fixture, block + offset), Misuse::Damaged, "{bytes} at {offset}");
        }
        assert!(fixture.is_taken(block));
        assert_eq!(fixture.free(block), Ok(()));
    }
}

#[test]
fn the_rest_of_a_span_is_no_block() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let class =
        CLASS.iter().position(|class| !(class.blocks as usize * class.size as usize).is_multiple_of(UNIT));
    let class = &CLASS[class.expect("a class that leaves a rest")];
    let block = fixture.allocate(class.size as usize - 1);
    let first = fixture.heap.reservation.first(fixture.heap.reservation.unit_of(block).expect("a unit"));
    let rest = fixture.heap.reservation.address(first) + class.blocks as usize * class.size as usize;
    assert_eq!(refused(&fixture, rest), Misuse::Damaged);
}

#[test]
fn a_second_free_is_refused_wherever_the_block_is() {
    for bytes in [16, 48, 1000, 5000, LAST] {
        let fixture = HeapFixture::new(Mode::Hybrid, 2);
        let block = fixture.allocate(bytes);
        let keeps_the_span = fixture.allocate(bytes);
        assert_eq!(fixture.free(block), Ok(()));
        // In the cache.
        assert_eq!(refused(&fixture, block), Misuse::DoubleFree, "{bytes}");
        // In its span.
        fixture.heap.flush(fixture.cache(0), fixture.span_class(block), u32::MAX);
        assert_eq!(refused(&fixture, block), Misuse::DoubleFree, "{bytes}");
        assert!(!fixture.is_taken(block) && fixture.is_taken(keeps_the_span));
    }
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    for bytes in [SMALL_MAX, 100_000, 10 << 20] {
        let block = fixture.allocate(bytes);
        assert_eq!(fixture.free(block), Ok(()));
        assert_eq!(refused(&fixture, block), Misuse::DoubleFree, "{bytes}");
    }
}

#[test]
fn a_block_that_is_handed_out_again_may_be_freed_again() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    for bytes in [16, 1000, 5000, LAST, 100_000] {
        let block = fixture.allocate(bytes);
        assert_eq!(fixture.free(block), Ok(()));
        assert_eq!(fixture.allocate(bytes), block, "newest first");
        assert_eq!(fixture.free(block), Ok(()));
    }
    fixture.audit();
}

#[test]
fn a_program_may_write_anything_but_the_key() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let blocks: [usize; 8] = core::array::from_fn(|_| fixture.allocate(64));
    for (at, &block) in blocks.iter().enumerate() {
        (0..8).for_each(|word| set_word(block + 8 * word, usize::MAX << at));
    }
    for block in blocks {
        assert_eq!(fixture.free(block), Ok(()));
    }
    fixture.audit();
}

/// A large block lay where small ones had been freed; realloc made it small, with the key of one of those, and free
/// rejected it.
#[test]
fn a_large_block_brings_no_old_key_into_a_small_one() {
    let mut fixture = HeapFixture::new(Mode::Explicit, 1);
    let blocks: std::vec::Vec<_> = (0..4000).map(|_| fixture.allocate(48)).collect();
    blocks.iter().for_each(|&block| assert_eq!(fixture.free(block), Ok(())));
    fixture.close();
    fixture.caches.push(fixture.heap.open_cache(1).expect("a cache"));
    let large = fixture.allocate(100_000);
    assert!(blocks.contains(&large), "where a small block was");
    let at = NonNull::new(large as *mut u8).expect("an address");
    // SAFETY: `large` was allocated above and is live.
    let small = unsafe { fixture.heap.reallocate(fixture.cache(0), at, 100) }.expect("a live block");
    assert_eq!(fixture.free(small as usize), Ok(()));
    fixture.audit();
}

#[test]
fn blocks_that_hold_the_numbers_of_hash_functions_are_no_double_frees() {
    let fixture = HeapFixture::new(Mode::Hybrid, 1);
    let numbers: [u64; 6] = [
        0x9e37_79b9_7f4a_7c15,
        0xbf58_476d_1ce4_e5b9,
        0x94d0_49bb_1331_11eb,
        0xff51_afd7_ed55_8ccd,
        0xcbf2_9ce4_8422_2325,
        u64::MAX,
    ];
    for number in numbers {
        let block = fixture.allocate(16);
        set_word(block + 8, number as usize);
        assert_eq!(fixture.free(block), Ok(()), "{number:#x}");
    }
    fixture.audit();
}
