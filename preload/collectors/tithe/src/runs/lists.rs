//! The lists of free runs: by their length, exact up to 32 units and then by powers of two, and those of kept runs.

use crate::span::Span;

/// Lengths with a list of their own.
pub const EXACT: u32 = 32;
pub const BINS: usize = 64;
/// Lengths whose runs are kept, in units: from 1 to so many.
pub const KEPT_BINS: usize = EXACT as usize;

/// How many runs of each length are kept, and may be.
#[derive(Debug)]
pub struct Kept {
    /// Kept runs.
    pub(super) count: [u32; KEPT_BINS],
    /// Blocks that were allocated since the last collection.
    pub(super) requested: [u32; KEPT_BINS],
    /// Blocks that were allocated between the last two collections.
    pub(super) wanted: [u32; KEPT_BINS],
}

impl Kept {
    pub const fn new() -> Kept {
        Kept { count: [0; KEPT_BINS], requested: [0; KEPT_BINS], wanted: [0; KEPT_BINS] }
    }
}

/// The list of kept runs of a length.
pub const fn kept_bin_of(units: u32) -> usize {
    BINS + units as usize - 1
}

/// The list of free runs of a length.
pub const fn bin_of(units: u32) -> usize {
    if units <= EXACT { units as usize - 1 } else { (EXACT + (units - 1).ilog2() - EXACT.ilog2()) as usize }
}

/// The list that a free run is in.
pub fn bin_of_run(run: &Span) -> usize {
    if run.kept { kept_bin_of(run.units) } else { bin_of(run.units) }
}
