//! The words of a ring. One event is one to a few 64-bit words.
//!
//! Bit 63 is the *lap*: it is 1 in the words of the first lap through the ring, 0 in those of the second, and so on,
//! and tells a reader that a word has been written, without an index that both sides would fight over. Bits 60 to 62
//! are the tag, the other 60 the payload. Addresses are told divided by 8 (44 bits reach all of user space).
//!
//! | tag | payload |
//! |---|---|
//! | `ALLOC` | address / 8 in bits 0-43, size in bits 44-59: a plain `malloc` of less than 64 KiB, at a multiple of 8 |
//! | `FREE` | address / 8, bits 44-59: [`FREE_DELETE`] |
//! | `ALLOC_LONG` | address / 8, bits 44-47 kind, 48-53 log2 of the alignment (0: none asked for); then `DATA` size |
//! | `RESIZE_BEGIN` | address / 8 of the block, before the manager is called |
//! | `RESIZE_END` | address / 8 of the block after it (0: null, nothing or freed); then `DATA` size |
//! | `DATA` | 60 bits that belong to the word before |
//! | `PREFIX` | bits 0-53 a value, 54-59 which: it belongs to the next event of this ring |
//! | `NOTE` | bits 0-53 a value, 54-59 which: an event of its own |

/// The lap bit.
pub const LAP: u64 = 1 << 63;
/// Where the tag begins.
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
/// See the table.
pub const DATA: u64 = 5;
/// See the table.
pub const PREFIX: u64 = 6;
/// See the table.
pub const NOTE: u64 = 7;
