//! Reads a section of the file from its beginning to its end.
//!
//! The layer has no file open while the program runs, and maps none: its descriptors, its page faults and its memory
//! would be those of the program.

use heaptoll_oracle_file::Section;

/// What sections are read from.
pub trait Source {
    /// Reads bytes from a position of the file on; whether all could be read.
    fn read(&mut self, at: u64, into: &mut [u8]) -> bool;
}

/// Bytes read at once.
const BUFFER: usize = 1 << 16;

/// A section of words of `WORD` bytes.
///
/// Invariants: `next <= filled <= BUFFER`, both multiples of `WORD`; `left` words follow those in the buffer.
pub struct Reader<S, const WORD: usize> {
    source: S,
    /// Position in the file of what follows the buffer.
    at: u64,
    /// Words that follow the buffer.
    left: u64,
    /// The next byte of the buffer.
    next: usize,
    /// Bytes in the buffer.
    filled: usize,
    buffer: [u8; BUFFER],
}

/// Why there is no word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoWord {
    /// The section has ended.
    End,
    /// The source failed.
    Unreadable,
}

impl<S: Source, const WORD: usize> Reader<S, WORD> {
    /// From the section's first word on.
    pub fn new(source: S, section: Section) -> Reader<S, WORD> {
        Reader { source, at: section.start, left: section.count, next: 0, filled: 0, buffer: [0; BUFFER] }
    }

    /// The next word.
    ///
    /// # Errors
    /// [`NoWord`].
    #[inline(always)]
    pub fn next(&mut self) -> Result<[u8; WORD], NoWord> {
        if self.next == self.filled {
            self.fill()?;
        }
        let mut word = [0; WORD];
        word.copy_from_slice(&self.buffer[self.next..self.next + WORD]);
        self.next += WORD;
        Ok(word)
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self) -> Result<(), NoWord> {
        let words = self.left.min((BUFFER / WORD) as u64);
        let bytes = words as usize * WORD;
        if words == 0 {
            return Err(NoWord::End);
        }
        if !self.source.read(self.at, &mut self.buffer[..bytes]) {
            return Err(NoWord::Unreadable);
        }
        self.at += bytes as u64;
        self.left -= words;
        self.next = 0;
        self.filled = bytes;
        Ok(())
    }
}

#[cfg(test)]
pub mod testing {
    use super::Source;
    use std::vec::Vec;

    /// A file in memory.
    #[derive(Debug, Clone, Default)]
    pub struct Bytes(pub Vec<u8>);

    impl Source for Bytes {
        fn read(&mut self, at: u64, into: &mut [u8]) -> bool {
            let found = self.0.get(at as usize..at as usize + into.len());
            found.map(|found| into.copy_from_slice(found)).is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Bytes;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn all_words_come_in_order_and_then_the_end() {
        let count = (BUFFER / 8 + 3) as u64;
        let bytes: Vec<u8> = [7; 5].into_iter().chain((0..count).flat_map(u64::to_le_bytes)).collect();
        let mut reader: Reader<_, 8> = Reader::new(Bytes(bytes), Section { start: 5, count });
        for expected in 0..count {
            assert_eq!(reader.next(), Ok(expected.to_le_bytes()));
        }
        assert_eq!(reader.next(), Err(NoWord::End));
        assert_eq!(reader.next(), Err(NoWord::End));
    }

    #[test]
    fn a_file_that_was_cut_is_noticed() {
        let mut reader: Reader<_, 4> = Reader::new(Bytes([0; 7].to_vec()), Section { start: 0, count: 2 });
        assert_eq!(reader.next(), Err(NoWord::Unreadable));
    }
}
