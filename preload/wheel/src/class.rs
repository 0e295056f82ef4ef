//! Size classes of cells: sixteen bytes apart to 256, then four to a doubling.

/// Bytes of which the size of every cell, and its distance from a page, is a multiple.
pub const GRANULE: usize = 16;
/// Bytes of the largest cell of a class; larger objects have pages of their own.
pub const LARGEST: usize = 8192;
/// Bytes of the smallest cell: the collector's own word, and an object of two.
const SMALLEST: usize = 32;
const FINE: usize = 256;
const FINE_CLASSES: usize = (FINE - SMALLEST) / GRANULE + 1;
/// How many there are.
pub const CLASSES: usize = FINE_CLASSES + 4 * (LARGEST / FINE).ilog2() as usize;

/// The class of a request of so many bytes, at most [`LARGEST`].
#[inline(always)]
pub const fn class_for(bytes: usize) -> usize {
    if bytes <= FINE {
        return bytes.saturating_sub(SMALLEST).div_ceil(GRANULE);
    }
    // Four steps from each power of two to the next.
    let octave = (bytes - 1).ilog2() as usize;
    let step = (bytes - 1 - (1 << octave)) >> (octave - 2);
    FINE_CLASSES + 4 * (octave - FINE.ilog2() as usize) + step
}

/// Bytes of its cells.
#[inline(always)]
pub const fn size_of_class(class: usize) -> usize {
    if class < FINE_CLASSES {
        return SMALLEST + class * GRANULE;
    }
    let above = class - FINE_CLASSES;
    let power = FINE << (above / 4);
    power + (above % 4 + 1) * power / 4
}

/// Pages of which its cells are cut together.
pub const fn pages_of_block(class: usize) -> usize {
    if size_of_class(class) <= 512 { 1 } else { 8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_least_that_holds_the_request() {
        for bytes in 1..=LARGEST {
            let class = class_for(bytes);
            assert!(size_of_class(class) >= bytes, "{bytes}");
            assert!(class == 0 || size_of_class(class - 1) < bytes, "{bytes}");
        }
        assert_eq!((class_for(LARGEST), size_of_class(CLASSES - 1)), (CLASSES - 1, LARGEST));
    }

    #[test]
    fn cells_are_whole_granules_and_waste_at_most_an_eighth_of_their_block() {
        for class in 0..CLASSES {
            let (size, block) = (size_of_class(class), pages_of_block(class) * 4096);
            assert_eq!(size % GRANULE, 0);
            assert!(block % size <= block / 8, "{size}");
        }
    }
}
