//! A column of numbers, each in as few bytes as it needs, without a branch on either side.
//!
//! The count of trailing zero bits in the first byte, plus one, is the number of bytes; the bits above that marker,
//! from the lowest byte up, are the number. So a value below 2^7 takes one byte, below 2^14 two, ... below 2^56 eight;
//! a first byte of 0 is followed by all eight bytes of it. The length is known from one byte, so no loop is needed
//! (unlike LEB128).

/// A column that is written. Space is allocated once, for as many entries as a chunk may hold; pages that are never
/// written to cost no memory.
#[derive(Debug)]
pub(crate) struct ColumnWriter {
    bytes: Vec<u8>,
    at: usize,
}

/// Bytes of the longest number.
pub(crate) const LONGEST: usize = 9;
/// Bytes after the end that may be read or written.
pub(crate) const SLACK: usize = 16;

impl ColumnWriter {
    /// A column for up to `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> ColumnWriter {
        ColumnWriter { bytes: vec![0; bytes + SLACK], at: 0 }
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    #[inline(always)]
    pub(crate) fn number(&mut self, value: u64) {
        let bits = 64 - (value | 1).leading_zeros();
        // Bits / 7, rounded up, for 1 to 63 bits.
        let length = (bits * 9 + 64) >> 6;
        if length > 8 {
            return self.long(value);
        }
        let word = ((value << 1) | 1) << (length - 1);
        self.bytes[self.at..self.at + 8].copy_from_slice(&word.to_le_bytes());
        self.at += length as usize;
    }

    #[cold]
    fn long(&mut self, value: u64) {
        self.byte(0);
        self.bytes[self.at..self.at + 8].copy_from_slice(&value.to_le_bytes());
        self.at += 8;
    }

    pub(crate) fn written(&self) -> &[u8] {
        &self.bytes[..self.at]
    }

    pub(crate) fn clear(&mut self) {
        self.at = 0;
    }
}

/// A column that is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnReader<'a> {
    /// The column, followed by at least [`SLACK`] zeroes.
    pub(crate) bytes: &'a [u8],
    /// The next byte.
    pub(crate) at: usize,
}

impl ColumnReader<'_> {
    #[inline(always)]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        // Not one of the zeroes after the end.
        self.bytes.get(self.at + SLACK)?;
        let byte = self.bytes[self.at];
        self.at += 1;
        Some(byte)
    }

    #[inline(always)]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let word = u64::from_le_bytes(*self.bytes.get(self.at..)?.first_chunk::<8>()?);
        if word as u8 == 0 {
            return self.long();
        }
        let length = word.trailing_zeros() + 1;
        self.at += length as usize;
        Some((word >> length) & ((1 << (7 * length)) - 1))
    }

    #[cold]
    fn long(&mut self) -> Option<u64> {
        // The zeroes after the end are no number.
        let inside = &self.bytes[..self.bytes.len().checked_sub(SLACK)?];
        let word = u64::from_le_bytes(*inside.get(self.at + 1..)?.first_chunk::<8>()?);
        self.at += LONGEST;
        Some(word)
    }
}

/// Signed numbers of small size as small numbers: 0, -1, 1, -2, 2...
#[inline(always)]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline(always)]
pub(crate) fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn padded(bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len() + SLACK, 0);
        bytes
    }

    #[test]
    fn lengths_are_those_of_the_specification() {
        for bits in 0..64_u32 {
            let value = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let mut column = ColumnWriter::new(LONGEST);
            column.number(value);
            let expected = if bits > 56 { 9 } else { bits.div_ceil(7).max(1) as usize };
            assert_eq!(column.written().len(), expected, "{bits} bits");
        }
        let mut column = ColumnWriter::new(LONGEST);
        column.number(5);
        column.number(300);
        assert_eq!(column.written(), [0b1011, 0b1011_0010, 0b0000_0100]);
    }

    proptest! {
        #[test]
        fn numbers_come_back(values in prop::collection::vec((any::<u64>(), 0..64_u32), 0..200)) {
            let values: Vec<u64> = values.into_iter().map(|(value, shift)| value >> shift).collect();
            let mut column = ColumnWriter::new(values.len() * LONGEST);
            values.iter().for_each(|&value| column.number(value));
            let bytes = padded(column.written());
            let mut reader = ColumnReader { bytes: &bytes, at: 0 };
            for value in values {
                prop_assert_eq!(reader.number(), Some(value));
            }
            prop_assert_eq!(reader.at + SLACK, bytes.len());
        }

        #[test]
        fn zigzag_has_an_inverse(value: i64) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }

        #[test]
        fn any_bytes_end_somewhere(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut reader = ColumnReader { bytes: &bytes, at: 0 };
            while reader.number().is_some() {}
            prop_assert!(reader.at <= bytes.len());
        }
    }
}
