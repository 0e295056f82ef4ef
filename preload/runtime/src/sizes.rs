//! Sizes and their arithmetic.

use heaptoll_assertions::assert_internal;

/// A machine word, bytes: headers, tags and links are made of it.
pub const WORD: usize = size_of::<usize>();

/// What every block is aligned to, bytes: `max_align_t` of the x86-64 and AArch64 ABIs.
pub const ALIGNMENT: usize = 16;

/// `bytes` rounded up to a multiple of `unit`, a power of two; wraps to 0 only within `unit` of the largest number,
/// which [`crate::Shell`] never passes on.
#[inline(always)]
pub const fn round_up(bytes: usize, unit: usize) -> usize {
    assert_internal!(unit.is_power_of_two(), "sizes are rounded up to a power of two");
    bytes.wrapping_add(unit - 1) & !(unit - 1)
}

/// The first multiple of `alignment` from `address` on with no bytes before it, or at least `smallest`: what lies between
/// can be a block of its own. `smallest` is at most `alignment` and [`ALIGNMENT`] together.
#[inline(always)]
pub const fn aligned_after_block(address: usize, alignment: usize, smallest: usize) -> usize {
    let aligned = round_up(address, alignment);
    if aligned != address && aligned - address < smallest { aligned + alignment } else { aligned }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_up_to_the_next_multiple() {
        assert_eq!([0, 1, 15, 16, 17].map(|n| round_up(n, 16)), [0, 16, 16, 16, 32]);
        assert_eq!(round_up(4097, 4096), 8192);
    }

    #[test]
    fn an_aligned_address_leaves_nothing_or_a_block_before_it() {
        let after = |address: usize| aligned_after_block(address, 64, 32);
        assert_eq!([64, 80, 96, 112, 128].map(after), [64, 128, 128, 192, 128]);
        assert_eq!([32, 48].map(|address| aligned_after_block(address, 32, 32)), [32, 96]);
    }
}
