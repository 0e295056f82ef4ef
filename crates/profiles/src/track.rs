//! What happened over time, for viewers of timelines: figures that change, and what took a while.

use crate::measure::Unit;

/// A figure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Its name: `live bytes`.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// ns from the beginning of the trace, rising, and the value from then on.
    pub points: Vec<(u64, u64)>,
}

/// Something that took a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// What it was: `collection`.
    pub name: String,
    /// ns from the beginning of the trace.
    pub start_ns: u64,
    /// ns.
    pub length_ns: u64,
    /// Names and values of its facts.
    pub facts: Vec<(&'static str, u64)>,
}

/// Slices of one kind, which do not overlap.
#[derive(Debug, Clone, PartialEq)]
pub struct SliceTrack {
    /// Its name: `collections`.
    pub name: String,
    /// In order.
    pub slices: Vec<Slice>,
}

/// All tracks of a process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tracks {
    /// Figures.
    pub counters: Vec<Counter>,
    /// What took a while.
    pub slices: Vec<SliceTrack>,
}
