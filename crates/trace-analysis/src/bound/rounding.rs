//! What a block takes at least: its size rounded up as the ABI requires. Demand and packings round alike.

use heaptoll_trace::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of the computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Options {
    /// Blocks of at most 8 bytes take 8; all others are rounded up to multiples of 16, as the ABI of x86-64 and AArch64
    /// requires of `malloc`.
    pub small_blocks_of_8: bool,
}

/// Bytes that a block takes, and what its address is a multiple of.
pub(super) fn rounded(event: &Event, options: Options) -> (u64, u64) {
    // No program uses alignments beyond a terabyte.
    let alignment = 1_u64 << event.align_log2.min(40);
    if options.small_blocks_of_8 && event.size <= 8 {
        return (8, alignment.max(8));
    }
    (event.size.max(1).next_multiple_of(16), alignment.max(16))
}
