//! The figures that a recorded process reports about its manager when the tool requests them, for the ledger. This
//! module defines the bytes of facts in the shared file for both sides: the recording layer, which writes them, and the
//! tool, which reads them.
//!
//! The bytes are little-endian words of 8 bytes, the first of which is the version.

use heaptoll_assertions::assert_expensive;

/// What the tool may request in addition to what is always reported: bits of the first byte of its request.
pub mod request {
    /// A full collection, and a census after it.
    pub const COLLECT: u8 = 1;
    /// The bytes that each sort of root alone keeps live: slow.
    pub const HELD: u8 = 2;
}

/// Bytes of a manager's name that are reported.
pub const NAME_BYTES: usize = 32;
/// Bytes of all facts.
pub const BYTES: usize = 8 * (2 + TOTALS * 2 + HELD + 1 + MALLINFO) + NAME_BYTES;

const VERSION: u64 = 1;
const TOTALS: usize = 9;
const HELD: usize = 4;
const MALLINFO: usize = 5;

/// The result of a manager's `heaptoll_census` (include/heaptoll.h), in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Whether all other threads were stopped.
    pub exact: bool,
    pub mapped_bytes: u64,
    pub mapped_high_bytes: u64,
    pub live_bytes: u64,
    pub free_bytes: u64,
    pub metadata_bytes: u64,
    pub quarantined_bytes: u64,
    pub unused_bytes: u64,
    /// `u64::MAX`: unknown.
    pub requested_bytes: u64,
}

/// The bytes that each sort of root alone keeps live, from `tithe_held` (include/tithe.h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    pub stacks: u64,
    pub statics: u64,
    pub mappings: u64,
    pub registers: u64,
}

/// The result of glibc's `mallinfo2`, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mallinfo {
    /// Of the arenas: address space, including free chunks and thread caches.
    pub arena: u64,
    /// In blocks that are mappings of their own.
    pub hblkhd: u64,
    /// Of the arenas: in use, including headers and thread caches.
    pub uordblks: u64,
    /// Of the arenas: in free chunks.
    pub fordblks: u64,
    /// At the top of the main arena, part of `fordblks`.
    pub keepcost: u64,
}

/// The facts. What the manager does not report is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// The manager's own name, NUL-terminated when shorter; empty when it has no control symbol.
    pub name: [u8; NAME_BYTES],
    /// The heap before any collection.
    pub census: Option<Totals>,
    /// The heap after a full collection, if one was requested and the manager supports it.
    pub collected: Option<Totals>,
    pub held: Option<Held>,
    /// Address space that a collector avoids because some words equal addresses in it, in bytes.
    pub blacklisted_bytes: Option<u64>,
    /// glibc's, when the manager is glibc.
    pub mallinfo: Option<Mallinfo>,
}

/// Bits of the second word: which facts are present.
mod present {
    pub const CENSUS: u64 = 1;
    pub const COLLECTED: u64 = 2;
    pub const HELD: u64 = 4;
    pub const BLACKLISTED: u64 = 8;
    pub const MALLINFO: u64 = 16;
}

const _: () = {
    // The space that an entry of the recording's process table has for them.
    assert!(BYTES <= 1024);
    assert!((BYTES - NAME_BYTES).is_multiple_of(8));
    assert!(BYTES == 8 * 30 + 32);
    let bits =
        present::CENSUS | present::COLLECTED | present::HELD | present::BLACKLISTED | present::MALLINFO;
    assert!(bits.count_ones() == 5);
    assert!(request::COLLECT & request::HELD == 0);
};

impl Totals {
    fn words(self) -> [u64; TOTALS] {
        [
            u64::from(self.exact),
            self.mapped_bytes,
            self.mapped_high_bytes,
            self.live_bytes,
            self.free_bytes,
            self.metadata_bytes,
            self.quarantined_bytes,
            self.unused_bytes,
            self.requested_bytes,
        ]
    }

    fn from_words(words: [u64; TOTALS]) -> Totals {
        let [exact, mapped, high, live, free, metadata, quarantined, unused, requested] = words;
        Totals {
            exact: exact != 0,
            mapped_bytes: mapped,
            mapped_high_bytes: high,
            live_bytes: live,
            free_bytes: free,
            metadata_bytes: metadata,
            quarantined_bytes: quarantined,
            unused_bytes: unused,
            requested_bytes: requested,
        }
    }
}

impl Facts {
    /// The manager's name as text; empty when there is none, or it is not UTF-8.
    pub fn name(&self) -> &str {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        core::str::from_utf8(&self.name[..end]).unwrap_or("")
    }

    /// Encodes them.
    pub fn to_bytes(&self) -> [u8; BYTES] {
        let presence = [
            (present::CENSUS, self.census.is_some()),
            (present::COLLECTED, self.collected.is_some()),
            (present::HELD, self.held.is_some()),
            (present::BLACKLISTED, self.blacklisted_bytes.is_some()),
            (present::MALLINFO, self.mallinfo.is_some()),
        ]
        .into_iter()
        .fold(0, |presence, (bit, is)| if is { presence | bit } else { presence });
        let held = self.held.unwrap_or_default();
        let mallinfo = self.mallinfo.unwrap_or_default();
        let words = [VERSION, presence]
            .into_iter()
            .chain(self.census.unwrap_or_default().words())
            .chain(self.collected.unwrap_or_default().words())
            .chain([held.stacks, held.statics, held.mappings, held.registers])
            .chain([self.blacklisted_bytes.unwrap_or_default()])
            .chain([
                mallinfo.arena,
                mallinfo.hblkhd,
                mallinfo.uordblks,
                mallinfo.fordblks,
                mallinfo.keepcost,
            ]);
        let mut bytes = [0; BYTES];
        let (numbers, name) = bytes.split_at_mut(BYTES - NAME_BYTES);
        for (destination, word) in numbers.chunks_exact_mut(8).zip(words) {
            destination.copy_from_slice(&word.to_le_bytes());
        }
        name.copy_from_slice(&self.name);
        assert_expensive!(Facts::from_bytes(&bytes) == Some(*self), "facts are decoded as they were encoded");
        bytes
    }

    /// Decodes the first [`BYTES`] bytes; `None` when they are not facts of this version.
    pub fn from_bytes(bytes: &[u8]) -> Option<Facts> {
        let bytes = bytes.get(..BYTES)?;
        let (numbers, name) = bytes.split_at(BYTES - NAME_BYTES);
        let mut words = numbers.chunks_exact(8).map(|word| {
            let mut number = [0; 8];
            number.copy_from_slice(word);
            u64::from_le_bytes(number)
        });
        let mut next = || words.next().unwrap_or_default();
        let (version, presence) = (next(), next());
        if version != VERSION {
            return None;
        }
        let census = Totals::from_words(core::array::from_fn(|_| next()));
        let collected = Totals::from_words(core::array::from_fn(|_| next()));
        let held = Held { stacks: next(), statics: next(), mappings: next(), registers: next() };
        let blacklisted = next();
        let mallinfo =
            Mallinfo { arena: next(), hblkhd: next(), uordblks: next(), fordblks: next(), keepcost: next() };
        let mut facts = Facts::default();
        facts.name.copy_from_slice(name);
        facts.census = (presence & present::CENSUS != 0).then_some(census);
        facts.collected = (presence & present::COLLECTED != 0).then_some(collected);
        facts.held = (presence & present::HELD != 0).then_some(held);
        facts.blacklisted_bytes = (presence & present::BLACKLISTED != 0).then_some(blacklisted);
        facts.mallinfo = (presence & present::MALLINFO != 0).then_some(mallinfo);
        Some(facts)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    fn totals() -> impl Strategy<Value = Totals> {
        any::<([u64; TOTALS - 1], bool)>().prop_map(|(words, exact)| {
            let mut all = [u64::from(exact); TOTALS];
            all[1..].copy_from_slice(&words);
            Totals::from_words(all)
        })
    }

    prop_compose! {
        fn facts()(
            name in any::<[u8; NAME_BYTES]>(),
            census in prop::option::of(totals()),
            collected in prop::option::of(totals()),
            held in prop::option::of(any::<[u64; 4]>()),
            blacklisted_bytes in prop::option::of(any::<u64>()),
            mallinfo in prop::option::of(any::<[u64; 5]>()),
        ) -> Facts {
            let held = held.map(|[stacks, statics, mappings, registers]| Held {
                stacks, statics, mappings, registers
            });
            let mallinfo = mallinfo.map(|[arena, hblkhd, uordblks, fordblks, keepcost]| Mallinfo {
                arena, hblkhd, uordblks, fordblks, keepcost
            });
            Facts { name, census, collected, held, blacklisted_bytes, mallinfo }
        }
    }

    proptest! {
        #[test]
        fn they_come_back_as_they_were(facts in facts(), more in prop::collection::vec(any::<u8>(), 0..20)) {
            let bytes = [&facts.to_bytes()[..], &more].concat();
            prop_assert_eq!(Facts::from_bytes(&bytes), Some(facts));
        }

        #[test]
        fn any_bytes_are_facts_or_none(bytes in prop::collection::vec(any::<u8>(), 0..BYTES * 2)) {
            if let Some(facts) = Facts::from_bytes(&bytes) {
                prop_assert_eq!(bytes[0], 1);
                let _ = facts.name();
            }
        }
    }

    #[test]
    fn they_fit_the_space_in_the_shared_file_and_zeroes_are_not_facts() {
        const { assert!(BYTES <= 1024) };
        assert_eq!(Facts::from_bytes(&[0; BYTES]), None);
        assert_eq!(Facts::from_bytes(&Facts::default().to_bytes()[..BYTES - 1]), None);
    }

    #[test]
    fn a_name_ends_at_its_zero() {
        let mut facts = Facts::default();
        assert_eq!(facts.name(), "");
        facts.name[..5].copy_from_slice(b"tithe");
        assert_eq!(facts.name(), "tithe");
        facts.name = [b'x'; NAME_BYTES];
        assert_eq!(facts.name().len(), NAME_BYTES);
    }
}
