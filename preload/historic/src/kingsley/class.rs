//! Size classes: the powers of two from 16 bytes on, headers included.

use heaptoll_runtime::WORD;

/// The smallest block, bytes: a header, and a link while it is free.
pub const SMALLEST: usize = 2 * WORD;

/// How many classes a request can be of, the largest of them 2^64: more than there is.
pub const CLASSES: usize = usize::BITS as usize - SMALLEST.ilog2() as usize + 1;

/// Classes from this one on are larger than any address space, 2^48 bytes, and are not even requested.
pub const UNATTAINABLE: usize = 48 - SMALLEST.ilog2() as usize;

/// The class of a request, which is at most `isize::MAX` bytes.
#[inline(always)]
pub const fn class_for(bytes: usize) -> usize {
    // The logarithm of `bytes + WORD`, rounded up: one less than the sum has its highest bit one below it.
    ((bytes + WORD - 1) | (SMALLEST / 2)).ilog2() as usize + 1 - SMALLEST.ilog2() as usize
}

/// The size of its blocks, bytes.
#[inline(always)]
pub const fn size_of_class(class: usize) -> usize {
    SMALLEST << class
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_least_power_of_two_that_holds_request_and_header() {
        for bytes in (0..70_000).chain([(1 << 40) - 8, (1 << 40) - 7]) {
            let size = size_of_class(class_for(bytes));
            assert_eq!(size, (bytes + WORD).next_power_of_two().max(SMALLEST), "{bytes} bytes");
        }
        assert_eq!(size_of_class(UNATTAINABLE), 1 << 48);
        assert_eq!(class_for(isize::MAX as usize), CLASSES - 1);
    }
}
