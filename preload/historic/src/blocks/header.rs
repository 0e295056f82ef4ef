//! The word in front of a block: what kingsley, pow2, buddy and bump know of a block that the program holds.
//!
//! All four take one word for the header, and blocks begin at 8 mod 16, so that what the program is given is at
//! 0 mod 16 and alignment costs no second word. Their regions are therefore laid out half a step off the pages:
//!
//! ```text
//!   region's start (a page)                                              end (a page)
//!   ├─ 8 ─┤                                                              │
//!   │ own │ header │ given out ...   │ header │ given out ...      │ own ─┤
//!         8 mod 16 │ 0 mod 16                                      last word: the header
//!                                                                  of what comes next
//! ```
//!
//! A header is a mark of 16 bits and a number of 48: a class, an order or a size. The mark is the magic number of
//! 4.2BSD's malloc, one for each state, so that double frees and foreign addresses show where the header shows them.
//!
//! An aligned address inside a block ([`Block::make_live`]) has a word in front of it too, which leads back to the
//! block.

mod block;
mod fingerprint;

pub use block::{Block, Mark};
pub use fingerprint::Fingerprint;
