//! The words of the sections.

/// The largest size of an object, bytes. Larger requests are no part of the sequence: they are expected to fail.
pub const LARGEST: u64 = (1 << SIZE_BITS) - 1;
/// The most sites of a file.
pub const MOST_SITES: u64 = 1 << SITE_BITS;
/// The most slots of a file.
pub const MOST_SLOTS: u32 = FREE;
/// In a word of `schedule`: the slot's object is freed.
pub const FREE: u32 = 1 << 31;

/// In `frees`: the program never frees the object.
pub const NEVER: u32 = u32::MAX;

const SIZE_BITS: u32 = 40;
const SITE_BITS: u32 = 22;
const RESIZED: u64 = 1 << 62;

/// An allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationWord {
    /// Requested bytes, at most [`LARGEST`].
    pub size: u64,
    /// Index of its site, below [`MOST_SITES`].
    pub site: u32,
    /// Whether it is a `realloc` of an object, whose size is the next word.
    pub resized: bool,
}

impl AllocationWord {
    /// As it is stored.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        let resized = if self.resized { RESIZED } else { 0 };
        self.size | ((self.site as u64) << SIZE_BITS) | resized
    }

    /// The site of what is stored, if it is an allocation of `size` bytes. A `realloc` of an object has one that no file has:
    /// [`MOST_SITES`] or more.
    #[inline(always)]
    pub const fn site_of(word: u64, size: u64) -> Option<usize> {
        if word & LARGEST == size { Some((word >> SIZE_BITS) as usize) } else { None }
    }

    /// From what is stored.
    #[inline(always)]
    pub const fn of(word: u64) -> AllocationWord {
        AllocationWord {
            size: word & LARGEST,
            site: ((word >> SIZE_BITS) & (MOST_SITES - 1)) as u32,
            resized: word & RESIZED != 0,
        }
    }
}

/// Where an allocation is called from: the last byte of the call, which is the return address less 1, as an address in
/// the object file that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteWord {
    /// Address in the object file, below 2^48.
    pub address: u64,
    /// Index of the object file; `None` for code of no file, which is not compared.
    pub object: Option<u16>,
}

const ADDRESS_BITS: u32 = 48;

impl SiteWord {
    /// As it is stored: the object's index plus 1 above the address.
    pub const fn word(self) -> u64 {
        let object = match self.object {
            Some(object) => object as u64 + 1,
            None => 0,
        };
        (self.address & ((1 << ADDRESS_BITS) - 1)) | (object << ADDRESS_BITS)
    }

    /// From what is stored.
    pub const fn of(word: u64) -> SiteWord {
        let object = (word >> ADDRESS_BITS) as u16;
        SiteWord {
            address: word & ((1 << ADDRESS_BITS) - 1),
            object: if object == 0 { None } else { Some(object - 1) },
        }
    }
}

/// The name of an object file: the last component of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameWord {
    /// Its first byte in `text`.
    pub start: u32,
    /// Bytes of it.
    pub length: u32,
}

impl NameWord {
    /// As it is stored.
    pub const fn word(self) -> u64 {
        self.start as u64 | ((self.length as u64) << 32)
    }

    /// From what is stored.
    pub const fn of(word: u64) -> NameWord {
        NameWord { start: word as u32, length: (word >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_as_it_was_written() {
        for (size, site, resized) in [(0, 0, false), (LARGEST, 0, true), (24, (MOST_SITES - 1) as u32, false)]
        {
            let word = AllocationWord { size, site, resized };
            assert_eq!(AllocationWord::of(word.word()), word);
            let found = AllocationWord::site_of(word.word(), size);
            assert_eq!(found.filter(|site| (*site as u64) < MOST_SITES), (!resized).then_some(site as usize));
            assert_eq!(AllocationWord::site_of(word.word(), size ^ 1), None);
        }
        for (address, object) in [(0, None), ((1 << 48) - 1, Some(0)), (0x1234, Some(u16::MAX - 1))] {
            let word = SiteWord { address, object };
            assert_eq!(SiteWord::of(word.word()), word);
        }
        let name = NameWord { start: u32::MAX, length: 7 };
        assert_eq!(NameWord::of(name.word()), name);
    }
}
