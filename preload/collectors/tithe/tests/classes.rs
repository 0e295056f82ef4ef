//! Size classes, for every request and not only those that a test's author thinks of.

use heaptoll_tithe::class::{
    BLOCKS_MAX, CACHE_LIMITS, CLASS, CLASSES, FREE, LARGE, LARGE_ATOMIC, SMALL_MAX, SPAN_CLASSES, UNIT,
    aligned_class_of, class_of, is_atomic, is_small,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn larger_requests_have_no_smaller_class(a in 1..=SMALL_MAX, b in 1..=SMALL_MAX) {
        prop_assert_eq!(class_of(a.min(b)).min(class_of(a.max(b))), class_of(a.min(b)));
    }

    #[test]
    fn an_aligned_request_gets_the_smallest_class_that_fits(shift in 4..15_u32, bytes in 0..=2 * SMALL_MAX) {
        let alignment = 1 << shift;
        let fits = |class: usize| {
            let size = CLASS[class].size as usize;
            size.is_multiple_of(alignment) && size >= bytes.max(1).next_multiple_of(alignment)
        };
        prop_assert_eq!(aligned_class_of(alignment, bytes), (1..=CLASSES).find(|&class| fits(class)));
    }

    #[test]
    fn every_address_of_a_span_is_found_in_its_block(class in 1..=CLASSES, at in any::<usize>()) {
        let row = &CLASS[class];
        let offset = at % (row.units as usize * UNIT);
        let block = row.index(offset);
        prop_assert!(block * row.size as usize <= offset && offset < (block + 1) * row.size as usize);
    }
}

#[test]
fn span_classes_match_their_predicates() {
    for span_class in 0..=u8::MAX {
        let class = (1..SPAN_CLASSES).contains(&span_class.into());
        assert_eq!(is_small(span_class) && (span_class as usize) < SPAN_CLASSES, class, "{span_class}");
        if class {
            let (plain, atomic) = (span_class as usize <= CLASSES, span_class as usize > CLASSES);
            assert_eq!((is_atomic(span_class), plain), (atomic, !atomic));
            assert_eq!(CLASS[span_class as usize].size, CLASS[(span_class as usize - 1) % CLASSES + 1].size);
        }
    }
    assert!(!is_small(FREE) && !is_atomic(FREE));
    assert!(!is_small(LARGE) && !is_atomic(LARGE) && !is_small(LARGE_ATOMIC) && is_atomic(LARGE_ATOMIC));
}

#[test]
fn spans_waste_at_most_a_sixteenth() {
    for class in &CLASS[1..=CLASSES] {
        let (units, blocks, size) = (class.units as usize, class.blocks as usize, class.size as usize);
        let rest = units * UNIT - blocks * size;
        assert!(rest < size && rest * 16 <= units * UNIT, "{class:?}");
        assert!((8..=BLOCKS_MAX).contains(&blocks) && size.is_multiple_of(16), "{class:?}");
    }
}

#[test]
fn a_batch_fits_into_a_cache_and_a_cache_holds_little() {
    for (class, limits) in CLASS.iter().zip(&CACHE_LIMITS).skip(1) {
        assert!((1..=limits.capacity).contains(&limits.batch), "{class:?} {limits:?}");
        assert!(limits.capacity as usize * class.size as usize <= 128 << 10, "{class:?} {limits:?}");
    }
}
