//! The words of a ring. One event is a *group* of one to a few 64-bit words: prefixes, the event, its data.
//!
//! Bit 63 is the *lap*: it is 1 in the words of the first lap through the ring, 0 in those of the second, and so on.
//! It shows a reader that a word has been written, without an index for which both sides would contend. Bits 60 to 62
//! are the tag, the other 60 the payload. Addresses are stored divided by 8 (44 bits reach all of user space).
//!
//! | tag | payload |
//! |---|---|
//! | `ALLOC` | address / 8 in bits 0-43, size in bits 44-59: a plain `malloc` of less than 64 KiB |
//! | `FREE` | address / 8, bits 44-59: [`FREE_DELETE`] |
//! | `ALLOC_LONG` | address / 8, bits 44-47 kind, 48-53 log2 of the alignment (0: none requested); then `DATA` size. Address 0: the call failed, or, of kind [`KIND_EXIT`], `exit` begins |
//! | `RESIZE_BEGIN` | address / 8 of the block, before the manager is called |
//! | `RESIZE_END` | address / 8 of the block after it (0: null, nothing or freed); then `DATA` size |
//! | `DATA` | 60 bits that belong to the preceding word |
//! | `NEW` | where an event is expected, the same tag as `DATA`: an `operator new`, as `ALLOC` |
//! | `PREFIX` | bits 0-53 a value, 54-59 which ([`prefix`]): it belongs to the event of its group |
//! | `NOTE` | bits 0-53 a value, 54-59 which ([`note`]): an event of its own, without a sequence number |
//!
//! The first word of a group is written last, so a reader that sees it sees them all. A group lies in one block.

/// The lap bit.
pub const LAP: u64 = 1 << 63;
/// The first bit of the tag.
pub const TAG_SHIFT: u32 = 60;
/// See the table.
pub const ALLOC: u64 = 0;
/// See the table.
pub const FREE: u64 = 1;
/// See the table.
pub const ALLOC_LONG: u64 = 2;
/// See the table.
pub const RESIZE_BEGIN: u64 = 3;
/// See the table.
pub const RESIZE_END: u64 = 4;
/// See the table: after the word of an event.
pub const DATA: u64 = 5;
/// See the table: where an event is expected.
pub const NEW: u64 = 5;
/// The kind of an `operator new`.
pub const KIND_NEW: u8 = 3;
/// The kind of no call: `exit` begins.
pub const KIND_EXIT: u8 = 15;
/// See the table.
pub const PREFIX: u64 = 6;
/// See the table.
pub const NOTE: u64 = 7;

/// Bits of an address divided by 8.
pub const ADDRESS_BITS: u32 = 44;
/// The bits of an address divided by 8.
pub const ADDRESS_MASK: u64 = (1 << ADDRESS_BITS) - 1;
/// Of a `FREE`: it was `operator delete`.
pub const FREE_DELETE: u64 = 1 << ADDRESS_BITS;
/// Sizes from here on do not fit an `ALLOC`.
pub const SHORT_SIZES: usize = 1 << 16;
/// The first bit of the name of a prefix or note.
pub const WHICH_SHIFT: u32 = 54;
/// The value of a prefix or note.
pub const VALUE_MASK: u64 = (1 << WHICH_SHIFT) - 1;
/// The payload of a `DATA`.
pub const DATA_MASK: u64 = (1 << TAG_SHIFT) - 1;

/// Sizes below this have an entry in the table of predicted usable sizes.
pub const PREDICTED: usize = 2048;
/// Words of the longest group except a site's definition: number, time, site, latency, address, usable size, event,
/// data.
pub const LONGEST: usize = 8;

/// Which prefix.
pub mod prefix {
    /// The event's number in the process. Always the first of its group.
    pub const SEQ: u64 = 1;
    /// The usable size, bytes. Absent: the one in the table of predicted sizes.
    pub const USABLE: u64 = 2;
    /// The call stack's number.
    pub const SITE: u64 = 3;
    /// How long the call took, ns.
    pub const LATENCY: u64 = 4;
    /// When the event was recorded, ns since the file was made.
    pub const TIME: u64 = 6;
    /// The bits of an address that do not fit its event: bits 0-2 in bits 0-2, bits 47-63 from bit 3.
    pub const ADDRESS: u64 = 5;
}

/// Which note.
pub mod note {
    /// Padding, which is skipped: fills a block whose rest is too short for the next group.
    pub const PAD: u64 = 1;
    /// In a ring that threads share: this thread wrote the words that follow. Bits 0-21 the kernel's number, bits 22-53
    /// the index.
    pub const THREAD: u64 = 3;
    /// How long the preceding free took, ns.
    pub const LATENCY: u64 = 4;
    /// A call stack: bits 0-31 its number, bits 32-53 the number of frames, which follow as `DATA`.
    pub const SITE: u64 = 5;
    /// A mapping that the program has made: bits 0-31 its call stack's number, bits 32-53 the number of words, which follow
    /// as `DATA`: its address and its bytes, and where `mremap` has changed it, before them those that it had.
    pub const MAPPED: u64 = 6;
}

/// Bits of a kernel thread number in a [`note::THREAD`].
pub const TID_BITS: u32 = 22;

/// A word without its lap bit.
#[inline(always)]
pub const fn tagged(tag: u64, payload: u64) -> u64 {
    tag << TAG_SHIFT | payload
}

/// A prefix without its lap bit.
#[inline(always)]
pub const fn prefix_word(which: u64, value: u64) -> u64 {
    PREFIX << TAG_SHIFT | which << WHICH_SHIFT | (value & VALUE_MASK)
}

/// A note without its lap bit.
#[inline(always)]
pub const fn note_word(which: u64, value: u64) -> u64 {
    NOTE << TAG_SHIFT | which << WHICH_SHIFT | (value & VALUE_MASK)
}

/// The tag of a word.
#[inline(always)]
pub const fn tag(word: u64) -> u64 {
    word >> TAG_SHIFT & 7
}

/// Which prefix or note a word is.
#[inline(always)]
pub const fn which(word: u64) -> u64 {
    word >> WHICH_SHIFT & 63
}

/// Whether an address fits its event.
#[inline(always)]
pub const fn plain(address: usize) -> bool {
    address as u64 & !(ADDRESS_MASK << 3) == 0
}

/// The value of an address's [`prefix::ADDRESS`]; 0: none is needed.
#[inline(always)]
pub const fn address_rest(address: usize) -> u64 {
    (address as u64 >> (ADDRESS_BITS + 3)) << 3 | (address as u64 & 7)
}

/// An address from its event and its [`prefix::ADDRESS`].
#[inline(always)]
pub const fn address(eighth: u64, rest: u64) -> u64 {
    (eighth & ADDRESS_MASK) << 3 | (rest >> 3) << (ADDRESS_BITS + 3) | rest & 7
}

/// The kind of an [`ALLOC`] or a [`NEW`].
#[inline(always)]
pub const fn alloc_kind(word: u64) -> u8 {
    if tag(word) == NEW { KIND_NEW } else { 0 }
}
