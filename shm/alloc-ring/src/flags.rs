//! What the tool wants recorded, as producers read it.

/// What the tool wants recorded; constant for the whole recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// Call stacks.
    pub sites: bool,
    /// How long each call took.
    pub latency: bool,
    /// The time of each event, not only of each tick.
    pub event_time: bool,
    /// In-process facts will be requested.
    pub ledger: bool,
}

impl Flags {
    /// Encodes them as a word of the header.
    pub const fn bits(self) -> u32 {
        self.sites as u32
            | (self.latency as u32) << 1
            | (self.event_time as u32) << 2
            | (self.ledger as u32) << 3
    }

    /// Decodes them from a word of the header.
    pub const fn from_bits(bits: u32) -> Flags {
        Flags {
            sites: bits & 1 != 0,
            latency: bits & 2 != 0,
            event_time: bits & 4 != 0,
            ledger: bits & 8 != 0,
        }
    }
}
