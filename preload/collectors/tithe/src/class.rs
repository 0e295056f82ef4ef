//! Size classes: the block sizes, and the units of a span of each.
//!
//! Steps of 16 bytes up to 128, then eight classes a doubling up to 32 KiB. Above 128 bytes a block is at most 12.5 %
//! larger than the request; below, the alignment of 16 bytes decides.

use heaptoll_assertions::assert_internal;

/// A unit of the heap, bytes: spans and large blocks consist of whole units.
pub const UNIT: usize = 1 << UNIT_SHIFT;
pub const UNIT_SHIFT: u32 = 14;
/// The largest block that has a class, bytes.
pub const SMALL_MAX: usize = 32 << 10;
/// Up to this size a span is one unit and a table maps requests to their class, bytes.
pub const FAST_MAX: usize = 1024;
/// Number of size classes.
pub const CLASSES: usize = 72;
/// Most blocks in a span.
pub const BLOCKS_MAX: usize = UNIT / 16;

/// What a unit holds: a size class and whether its blocks are pointer-free (those have spans of their own), or a large
/// block, or nothing. Also the number of a thread cache's list.
pub type SpanClass = u8;
/// Free, or outside the heap.
pub const FREE: SpanClass = 0;
/// Span classes above this one and below [`LARGE`] are pointer-free.
pub const LAST_PLAIN: SpanClass = CLASSES as SpanClass;
/// Span classes that have a size class are below this number.
pub const SPAN_CLASSES: usize = 2 * CLASSES + 1;
/// A large block.
pub const LARGE: SpanClass = 200;
/// A large pointer-free block.
pub const LARGE_ATOMIC: SpanClass = 201;

/// Whether blocks of this span class hold no pointers.
#[inline(always)]
pub const fn is_atomic(span_class: SpanClass) -> bool {
    span_class == LARGE_ATOMIC || (span_class > LAST_PLAIN && span_class < LARGE)
}

/// Whether blocks of this span class have a size class.
#[inline(always)]
pub const fn is_small(span_class: SpanClass) -> bool {
    span_class != FREE && span_class < LARGE
}

/// The geometry of a size class. 16 bytes, so that a table row is found by a shift.
#[derive(Debug, Clone, Copy)]
pub struct SizeClass {
    /// ceil(2^40 / size): an offset below 2^18 divided by the size is `offset * reciprocal >> 40`, exactly, as
    /// `offset * (reciprocal * size - 2^40) < 2^18 * 2^15 < 2^40`.
    pub reciprocal: u64,
    /// Bytes of a block.
    pub size: u32,
    /// Blocks in a span.
    pub blocks: u16,
    /// Units of a span.
    pub units: u8,
    _reserved: u8,
}

impl SizeClass {
    /// The index of the block that contains an offset, bytes from the span's start. May be beyond the last one.
    #[inline(always)]
    pub const fn index(&self, offset: usize) -> usize {
        ((offset as u64 * self.reciprocal) >> 40) as usize
    }
}

impl SizeClass {
    /// As [`SizeClass::index`], for the address of a block's first byte.
    pub const fn is_block(&self, offset: usize) -> bool {
        let index = self.index(offset);
        index * self.size as usize == offset && index < self.blocks as usize
    }
}

/// How many blocks move between a thread's cache and the spans, and how many the cache keeps.
#[derive(Debug, Clone, Copy)]
pub struct CacheLimits {
    /// Blocks that a thread reserves at once, at most.
    pub batch: u16,
    /// Blocks that a cache's list keeps, at most.
    pub capacity: u16,
}

/// Bytes of blocks that a thread reserves at once: a page, so that no more is cleared at once.
const BATCH_BYTES: usize = 4 << 10;
const BATCH_BLOCKS: usize = 64;
/// Bytes of free blocks that a thread keeps of a class.
const CACHED_BYTES: usize = 32 << 10;
const CACHED_BLOCKS: (usize, usize) = (4, 512);

const fn size_of_class(class: usize) -> usize {
    if class <= 8 {
        return class * 16;
    }
    let doubling = (class - 9) / 8;
    let step = (class - 9) % 8 + 1;
    (128 << doubling) + (16 << doubling) * step
}

/// The smallest number of units such that at most a sixteenth of a span is left over and eight blocks fit.
const fn units_of(size: usize) -> usize {
    let mut units = 1;
    loop {
        let blocks = units * UNIT / size;
        let rest = units * UNIT - blocks * size;
        if blocks >= 8 && rest * 16 <= units * UNIT {
            return units;
        }
        units += 1;
    }
}

/// By span class; row 0 is a size class without blocks.
pub static CLASS: [SizeClass; SPAN_CLASSES] = {
    let mut table = [SizeClass { reciprocal: 0, size: 0, blocks: 0, units: 0, _reserved: 0 }; SPAN_CLASSES];
    let mut class = 1;
    while class <= CLASSES {
        let size = size_of_class(class);
        let units = units_of(size);
        let row = SizeClass {
            reciprocal: (1u64 << 40).div_ceil(size as u64),
            size: size as u32,
            blocks: (units * UNIT / size) as u16,
            units: units as u8,
            _reserved: 0,
        };
        table[class] = row;
        table[class + CLASSES] = row;
        class += 1;
    }
    table
};

const fn clamp(value: usize, least: usize, most: usize) -> u16 {
    (if value < least {
        least
    } else if value > most {
        most
    } else {
        value
    }) as u16
}

/// By span class, as [`CLASS`].
pub static CACHE_LIMITS: [CacheLimits; SPAN_CLASSES] = {
    let mut table = [CacheLimits { batch: 0, capacity: 0 }; SPAN_CLASSES];
    let mut span_class = 1;
    while span_class < SPAN_CLASSES {
        let size = CLASS[span_class].size as usize;
        table[span_class] = CacheLimits {
            batch: clamp(BATCH_BYTES / size, 1, BATCH_BLOCKS),
            capacity: clamp(CACHED_BYTES / size, CACHED_BLOCKS.0, CACHED_BLOCKS.1),
        };
        span_class += 1;
    }
    table
};

/// The class of a request of up to [`FAST_MAX`] bytes, by its size in steps of 16, rounded up.
pub static FAST: [u8; FAST_MAX / 16 + 1] = {
    let mut table = [1; FAST_MAX / 16 + 1];
    let mut step = 1;
    while step < table.len() {
        table[step] = class_of(step * 16) as u8;
        step += 1;
    }
    table
};

/// The class of a request of 1 to [`SMALL_MAX`] bytes.
pub const fn class_of(bytes: usize) -> usize {
    assert_internal!(
        bytes > 0 && bytes <= SMALL_MAX,
        "a request that has a class is of 1 to SMALL_MAX bytes"
    );
    if bytes <= 128 {
        return bytes.div_ceil(16);
    }
    // `bytes` lies above 2^k and up to 2^(k+1).
    let k = (bytes - 1).ilog2() as usize;
    let step = (bytes - (1 << k)).div_ceil(1 << (k - 3));
    8 + (k - 7) * 8 + step
}

/// The smallest class for `bytes` whose blocks all lie at multiples of `alignment`, a power of two of at most
/// [`UNIT`]; `None` when there is no such class.
pub fn aligned_class_of(alignment: usize, bytes: usize) -> Option<usize> {
    let bytes = bytes.max(1).checked_next_multiple_of(alignment)?;
    if bytes > SMALL_MAX {
        return None;
    }
    assert_internal!(alignment.is_power_of_two() && alignment <= UNIT, "an alignment is a power of two");
    (class_of(bytes)..=CLASSES).find(|&class| (CLASS[class].size as usize).is_multiple_of(alignment))
}

const _: () = {
    assert!(size_of::<SizeClass>() == 16);
    assert!(size_of_class(CLASSES) == SMALL_MAX && class_of(SMALL_MAX) == CLASSES);
    let mut class = 1;
    while class <= CLASSES {
        assert!(CLASS[class].blocks as usize <= BLOCKS_MAX);
        assert!(CLASS[class].units as usize * UNIT <= 1 << 18);
        assert!(
            (CLASS[class].size as usize <= FAST_MAX) == (CLASS[class].units == 1)
                || class > FAST[64] as usize
        );
        // Blocks are aligned, no class is empty, and each is larger than the one before.
        assert!(CLASS[class].size.is_multiple_of(16) && CLASS[class].blocks >= 8);
        assert!(CLASS[class].size > CLASS[class - 1].size);
        assert!(class_of(CLASS[class].size as usize) == class);
        // A batch is of one block at least, and a list has room for it.
        let limits = CACHE_LIMITS[class];
        assert!(limits.batch > 0 && limits.batch <= limits.capacity);
        class += 1;
    }
    // The numbers of span classes are distinct.
    assert!((LAST_PLAIN as usize) < SPAN_CLASSES && SPAN_CLASSES <= LARGE as usize && LARGE < LARGE_ATOMIC);
    assert!(is_small(LAST_PLAIN) && !is_small(FREE) && !is_small(LARGE) && !is_small(LARGE_ATOMIC));
    assert!(
        !is_atomic(LAST_PLAIN) && is_atomic(LAST_PLAIN + 1) && !is_atomic(LARGE) && is_atomic(LARGE_ATOMIC)
    );
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_gets_the_smallest_class_that_holds_it() {
        for bytes in 1..=SMALL_MAX {
            let class = class_of(bytes);
            assert!(CLASS[class].size as usize >= bytes, "{bytes}");
            assert!(class == 1 || (CLASS[class - 1].size as usize) < bytes, "{bytes}");
            if bytes <= FAST_MAX {
                assert_eq!(FAST[bytes.div_ceil(16)] as usize, class, "{bytes}");
            }
        }
        assert_eq!(FAST[0], 1, "a request of nothing gets a block");
    }

    #[test]
    fn blocks_waste_at_most_an_eighth_beyond_alignment() {
        for bytes in 129..=SMALL_MAX {
            let waste = CLASS[class_of(bytes)].size as usize - bytes;
            assert!(waste * 8 <= CLASS[class_of(bytes)].size as usize, "{bytes}");
        }
    }

    #[test]
    fn fast_classes_have_spans_of_one_unit() {
        for class in &CLASS[1..=FAST[64] as usize] {
            assert_eq!(class.units, 1, "{class:?}");
        }
    }

    #[test]
    fn the_reciprocal_divides_exactly() {
        for class in &CLASS[1..=CLASSES] {
            for offset in 0..class.units as usize * UNIT {
                assert_eq!(class.index(offset), offset / class.size as usize, "{offset} {class:?}");
            }
        }
    }

    #[test]
    fn aligned_classes_divide_by_the_alignment() {
        for alignment in [32, 64, 128, 1024, 4096, 16384] {
            for bytes in [0, 1, 33, 100, 1000, 5000, 32768] {
                let class = aligned_class_of(alignment, bytes).expect("a class");
                assert!(
                    CLASS[class].size as usize >= bytes
                        && (CLASS[class].size as usize).is_multiple_of(alignment)
                );
            }
        }
        assert_eq!(aligned_class_of(16384, 32769), None);
        assert_eq!(aligned_class_of(16384, usize::MAX), None);
    }
}
