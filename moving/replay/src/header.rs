//! The word in front of every object: its size, how many of its words may hold references, and the low bits of its
//! number, by which a check recognises it.
//!
//! A word is enough for objects of up to 2 MB. Larger ones, which no collector copies often, have a second.

/// Bytes of a word, and the alignment of all objects.
pub const WORD: usize = 8;
/// The least that MMTk can forward and sweep: two words.
const LEAST_WORDS: u64 = 2;
const BITS: u32 = 18;
/// In place of the size: both sizes are in the second word.
const LARGE: u64 = (1 << BITS) - 1;
/// Bits of an object's number that are kept.
const NUMBER_MASK: u64 = (1 << (64 - 2 * BITS)) - 1;

/// What an object's header states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Words of the program's own.
    pub words: u32,
    /// Of those, from the first, how many may hold references.
    pub scanned: u32,
    /// The object's number.
    pub number: u64,
}

impl Header {
    /// Words that it takes itself.
    pub fn own_words(&self) -> u64 {
        1 + u64::from(u64::from(self.words) >= LARGE)
    }

    /// Bytes of the whole object.
    pub fn total_bytes(&self) -> usize {
        (self.own_words() + u64::from(self.words)).max(LEAST_WORDS) as usize * WORD
    }

    /// Writes it.
    ///
    /// # Safety
    /// `at` is the begin of [`Header::total_bytes`] bytes of the caller's, a multiple of 8.
    pub unsafe fn write(&self, at: *mut u64) {
        let number = (self.number & NUMBER_MASK) << (2 * BITS);
        let (words, scanned) = (u64::from(self.words), u64::from(self.scanned));
        // SAFETY: the first word, and for large objects the second, are within the caller's bytes.
        unsafe {
            if words >= LARGE {
                at.write(number | LARGE);
                at.add(1).write(scanned << 32 | words);
            } else {
                at.write(number | scanned << BITS | words);
            }
        }
    }

    /// Reads one; of the number, the bits that are kept.
    ///
    /// # Safety
    /// `at` is where [`Header::write`] wrote, or the copy of that, and the object is not forwarded.
    #[inline(always)]
    pub unsafe fn read(at: *const u64) -> Header {
        // SAFETY: the precondition of `read`: `write` has written here.
        let first = unsafe { at.read() };
        let (number, words) = (first >> (2 * BITS), first & LARGE);
        if words == LARGE {
            // SAFETY: `write` has written the second word of an object of this size.
            let second = unsafe { at.add(1).read() };
            return Header { words: second as u32, scanned: (second >> 32) as u32, number };
        }
        Header { words: words as u32, scanned: (first >> BITS & LARGE) as u32, number }
    }

    /// Whether it is that of the object of this number, as far as the bits kept state.
    pub fn is_of(&self, number: u64) -> bool {
        self.number == number & NUMBER_MASK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roundtrip(words: u32, scanned: u32, number: u64) -> (Header, Header) {
        let header = Header { words, scanned, number };
        let mut memory = [0_u64; 4];
        // SAFETY: four words are enough for the header, which is all that is written.
        let read = unsafe {
            header.write(memory.as_mut_ptr());
            Header::read(memory.as_ptr())
        };
        (header, read)
    }

    #[test]
    fn a_header_states_what_was_written() {
        for (words, scanned) in
            [(0, 0), (1, 1), (4, 2), (262_142, 262_142), (262_143, 7), (u32::MAX, u32::MAX)]
        {
            let (wrote, read) = roundtrip(words, scanned, 0x123_4567);
            assert_eq!(wrote, read);
        }
    }

    #[test]
    fn only_the_low_bits_of_the_number_are_kept() {
        let (_, read) = roundtrip(4, 2, (9 << 28) + 5);
        assert!(read.is_of(5));
        assert!(read.is_of((9 << 28) + 5));
        assert!(!read.is_of(6));
    }

    #[test]
    fn an_object_has_a_header_of_a_word_and_large_ones_of_two() {
        let bytes = |words| Header { words, scanned: 0, number: 0 }.total_bytes();
        assert_eq!(bytes(0), 16);
        assert_eq!(bytes(1), 16);
        assert_eq!(bytes(4), 40);
        assert_eq!(bytes(262_142), 8 * 262_143);
        assert_eq!(bytes(262_143), 8 * 262_145);
    }
}
