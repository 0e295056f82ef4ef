//! The recorded sequence of allocations, with which each one is compared.

use heaptoll_oracle_file::AllocationWord;

use crate::oracle::difference::{Difference, What};
use crate::oracle::reader::{NoWord, Reader, Source};
use crate::oracle::sites::{Loaded, Sites};

/// The sequence, as far as the program has come.
pub struct Sequence<'a, S, L> {
    words: Reader<S, u64>,
    sites: Sites<'a, L>,
    /// Allocations so far.
    count: u64,
}

/// The object that a `realloc` ends, bytes.
pub type Resized = Option<u64>;

impl<'a, S: Source, L: Loaded> Sequence<'a, S, L> {
    /// From the first allocation on.
    pub fn new(words: Reader<S, u64>, sites: Sites<'a, L>) -> Sequence<'a, S, L> {
        Sequence { words, sites, count: 0 }
    }

    /// Allocations so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sites of the sequence.
    pub fn sites(&self) -> &Sites<'a, L> {
        &self.sites
    }

    /// Whether the next allocation is one of `size` bytes that `caller` calls, and no `realloc`; then it is taken. Where
    /// not, [`Sequence::next`] finds out why: it may be, too.
    #[inline(always)]
    pub fn advance(&mut self, size: u64, caller: usize) -> bool {
        let Some(word) = self.words.peek() else { return false };
        let is_next =
            AllocationWord::site_of(word, size).is_some_and(|site| self.sites.is_known(site, caller));
        if is_next {
            self.words.skip();
            self.count += 1;
        }
        is_next
    }

    /// Compares the next allocation, of `size` bytes, which `caller` calls. For a `realloc`, `resizes` is true, and the
    /// result the recorded size of the object that it ends.
    ///
    /// # Errors
    /// The difference.
    #[inline(always)]
    pub fn next(&mut self, size: u64, caller: usize, resizes: bool) -> Result<Resized, Difference> {
        let word = match self.words.read() {
            Ok(word) => AllocationWord::of(word),
            Err(why) => return Err(self.difference(no_word(why))),
        };
        if word.size != size {
            return Err(self.difference(What::Size { recorded: word.size, now: size }));
        }
        if !self.sites.is(word.site, caller) {
            return Err(self.difference(What::Site(word.site)));
        }
        if word.resized != resizes {
            return Err(self.difference(What::Resize));
        }
        let resized = if resizes { Some(self.size()?) } else { None };
        self.count += 1;
        Ok(resized)
    }

    #[inline(never)]
    fn size(&mut self) -> Result<u64, Difference> {
        match self.words.read() {
            Ok(word) => Ok(word),
            Err(_) => Err(self.difference(What::File)),
        }
    }

    #[cold]
    fn difference(&self, what: What) -> Difference {
        Difference { allocation: self.count, what }
    }
}

fn no_word(why: NoWord) -> What {
    match why {
        NoWord::End => What::End,
        NoWord::Unreadable => What::File,
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::vec::Vec;

    use heaptoll_oracle_file::{NameWord, Section, SiteWord};

    use super::*;
    use crate::oracle::reader::testing::Bytes;
    use crate::oracle::sites::testing::TwoObjects;

    /// Allocations of 24 bytes at site 0 and of 40 at site 1, the latter by a `realloc` of 8 bytes.
    fn with(test: impl FnOnce(Sequence<'_, Bytes, TwoObjects>)) {
        let words = [
            AllocationWord { size: 24, site: 0, resized: false }.word(),
            AllocationWord { size: 40, site: 1, resized: true }.word(),
            8,
        ];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let sites = [1, 2].map(|address| SiteWord { address, object: Some(0) }.word());
        let objects = [NameWord { start: 0, length: 0 }.word()];
        let addresses = [const { Cell::new(0) }; 2];
        let sites =
            Sites { sites: &sites, objects: &objects, text: b"", addresses: &addresses, loaded: TwoObjects };
        test(Sequence::new(Reader::new(Bytes(bytes), Section { start: 0, count: 3 }), sites));
    }

    #[test]
    fn the_recorded_sequence_is_followed_to_its_end() {
        with(|mut sequence| {
            assert_eq!(sequence.next(24, 1001, false), Ok(None));
            assert!(!sequence.advance(40, 1002), "a realloc");
            assert_eq!(sequence.next(40, 1002, true), Ok(Some(8)));
            assert!(!sequence.advance(1, 1001), "the end");
            let end = Difference { allocation: 2, what: What::End };
            assert_eq!(sequence.next(1, 1001, false), Err(end));
        });
    }

    #[test]
    fn a_known_site_is_taken_without_finding_its_object() {
        let words = [AllocationWord { size: 24, site: 0, resized: false }.word(); 4];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let sites = [SiteWord { address: 1, object: Some(0) }.word()];
        let objects = [NameWord { start: 0, length: 0 }.word()];
        let addresses = [const { Cell::new(0) }; 1];
        let sites =
            Sites { sites: &sites, objects: &objects, text: b"", addresses: &addresses, loaded: TwoObjects };
        let mut sequence = Sequence::new(Reader::new(Bytes(bytes), Section { start: 0, count: 4 }), sites);
        assert!(!sequence.advance(24, 1001), "nothing has been read, and the site is not known");
        assert_eq!(sequence.next(24, 1001, false), Ok(None));
        assert!(!sequence.advance(25, 1001) && !sequence.advance(24, 1002) && !sequence.advance(24, 0));
        assert_eq!(sequence.count(), 1);
        assert!(sequence.advance(24, 1001));
        assert_eq!(sequence.count(), 2);
    }

    #[test]
    fn the_first_difference_is_named() {
        let first = |size, caller, resizes| {
            let mut found = None;
            with(|mut sequence| found = sequence.next(size, caller, resizes).err());
            found.map(|difference| difference.what)
        };
        assert_eq!(first(25, 1001, false), Some(What::Size { recorded: 24, now: 25 }));
        assert_eq!(first(24, 1002, false), Some(What::Site(0)));
        assert_eq!(first(24, 1001, true), Some(What::Resize));
    }
}
