//! Reads a section of the file from its beginning to its end.
//!
//! Every allocation reads a word: the way to it is one comparison and one load.
//!
//! The layer has no file open while the program runs, and maps none: its descriptors, its page faults and its memory
//! would be those of the program.

use core::marker::PhantomData;

use heaptoll_oracle_file::Section;

/// A word of a section, little-endian in the file.
pub trait Word: Copy + 'static {
    /// The word that has these bytes.
    fn of(self) -> Self;
}

impl Word for u32 {
    #[inline(always)]
    fn of(self) -> u32 {
        u32::from_le(self)
    }
}

impl Word for u64 {
    #[inline(always)]
    fn of(self) -> u64 {
        u64::from_le(self)
    }
}

/// What sections are read from.
pub trait Source {
    /// Reads bytes from a position of the file on; whether all could be read.
    fn read(&mut self, at: u64, into: &mut [u8]) -> bool;
}

/// Bytes read at once.
const BUFFER: usize = 1 << 16;

/// A section of words.
///
/// Invariants: `next <= filled`, and `filled` words are at most `BUFFER` bytes; `left` words follow those in the buffer.
pub struct Reader<S, W> {
    source: S,
    /// Position in the file of what follows the buffer.
    at: u64,
    /// Words that follow the buffer.
    left: u64,
    /// The next word of the buffer.
    next: usize,
    /// Words in the buffer.
    filled: usize,
    buffer: Buffer,
    words: PhantomData<W>,
}

/// Bytes where a word of either size may be.
#[repr(C, align(8))]
struct Buffer([u8; BUFFER]);

/// Why there is no word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoWord {
    /// The section has ended.
    End,
    /// The source failed.
    Unreadable,
}

impl<S: Source, W: Word> Reader<S, W> {
    /// From the section's first word on.
    pub fn new(source: S, section: Section) -> Reader<S, W> {
        Reader {
            source,
            at: section.start,
            left: section.count,
            next: 0,
            filled: 0,
            buffer: Buffer([0; BUFFER]),
            words: PhantomData,
        }
    }

    /// The next word, as far as it is in the buffer; it stays the next one.
    #[inline(always)]
    pub fn peek(&self) -> Option<W> {
        // SAFETY: `next` is below `filled`.
        (self.next < self.filled).then(|| unsafe { self.word() })
    }

    /// The word that was peeked at is not the next one any more.
    #[inline(always)]
    pub fn skip(&mut self) {
        debug_assert!(self.next < self.filled);
        self.next += 1;
    }

    /// The next word.
    ///
    /// # Errors
    /// [`NoWord`].
    #[inline(always)]
    pub fn read(&mut self) -> Result<W, NoWord> {
        if self.next == self.filled {
            self.fill()?;
        }
        // SAFETY: `next` is below `filled`: the buffer was not empty, or was filled with at least one word.
        let word = unsafe { self.word() };
        self.next += 1;
        Ok(word)
    }

    /// # Safety
    /// `next` is below `filled`.
    #[inline(always)]
    unsafe fn word(&self) -> W {
        // SAFETY: by this function's contract the word is one of the `filled` in the buffer, which is aligned for them; all
        // bytes are a word's.
        unsafe { self.buffer.0.as_ptr().cast::<W>().add(self.next).read() }.of()
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self) -> Result<(), NoWord> {
        let words = self.left.min((BUFFER / size_of::<W>()) as u64);
        let bytes = words as usize * size_of::<W>();
        if words == 0 {
            return Err(NoWord::End);
        }
        if !self.source.read(self.at, &mut self.buffer.0[..bytes]) {
            return Err(NoWord::Unreadable);
        }
        self.at += bytes as u64;
        self.left -= words;
        self.next = 0;
        self.filled = words as usize;
        heaptoll_assertions::assert_internal!(
            self.filled * size_of::<W>() <= BUFFER,
            "the words are in the buffer"
        );
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
        let mut reader: Reader<_, u64> = Reader::new(Bytes(bytes), Section { start: 5, count });
        for expected in 0..count {
            if let Some(word) = reader.peek().filter(|_| expected % 3 == 0) {
                assert_eq!((word, reader.peek()), (expected, Some(expected)));
                reader.skip();
            } else {
                assert_eq!(reader.read(), Ok(expected));
            }
        }
        assert_eq!(reader.peek(), None);
        assert_eq!(reader.read(), Err(NoWord::End));
        assert_eq!(reader.read(), Err(NoWord::End));
    }

    #[test]
    fn a_file_that_was_cut_is_noticed() {
        let mut reader: Reader<_, u32> = Reader::new(Bytes([0; 7].to_vec()), Section { start: 0, count: 2 });
        assert_eq!(reader.read(), Err(NoWord::Unreadable));
    }
}
