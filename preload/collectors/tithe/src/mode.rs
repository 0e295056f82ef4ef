//! How the heap is run, and the headroom that each way has by default.

/// How the heap is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// free reclaims at once, collections reclaim what the program leaked.
    Hybrid,
    /// free does nothing, collections reclaim everything.
    Collect,
    /// free reclaims, nothing is ever collected.
    Explicit,
    /// free holds the block back until a pass finds no word that leads to it.
    Guard,
}

impl Mode {
    /// Its name in `TITHE_MODE`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Hybrid => "hybrid",
            Mode::Collect => "collect",
            Mode::Explicit => "explicit",
            Mode::Guard => "guard",
        }
    }

    /// What may be allocated before the next collection by default: percent of what the last one read, and bytes on top.
    pub const fn headroom(self) -> (usize, usize) {
        match self {
            Mode::Collect => (COLLECT_HEADROOM, COLLECT_MIN_HEADROOM),
            Mode::Hybrid | Mode::Explicit => (HYBRID_HEADROOM, HYBRID_MIN_HEADROOM),
            Mode::Guard => (GUARD_HEADROOM, GUARD_MIN_HEADROOM),
        }
    }
}

/// Mode `collect`: percent of what a collection reads that may be allocated before the next one.
pub const COLLECT_HEADROOM: usize = 48;
/// Mode `collect`: bytes that may be allocated on top of that.
pub const COLLECT_MIN_HEADROOM: usize = 256 << 10;
/// Mode `collect`: most bytes on top that the cost of a collection may demand, for each processor. A small program may take so much more memory;
/// a heap beyond the processor's second cache is a little slower, but each collection less saves more than that costs.
pub const COLLECT_COST_HEADROOM: usize = 2 << 20;

/// Mode `hybrid`: as [`COLLECT_HEADROOM`], of bytes allocated less those freed. The program frees by itself, so a
/// collection only finds what it leaked, and may come more rarely.
pub const HYBRID_HEADROOM: usize = 100;
/// Mode `hybrid`: as [`COLLECT_MIN_HEADROOM`].
pub const HYBRID_MIN_HEADROOM: usize = 16 << 20;

/// Mode `guard`: percent of the heap that freed blocks may take until a pass looks for words that lead to them.
pub const GUARD_HEADROOM: usize = 25;
/// Mode `guard`: bytes of freed blocks on top of that.
pub const GUARD_MIN_HEADROOM: usize = 1 << 20;
