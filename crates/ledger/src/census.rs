//! The manager's figures of its heap, taken inside the process during the pause.

use heaptoll_alloc_ring::facts::{Facts, request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `struct heaptoll_census` of include/heaptoll.h, and what else a manager reports. All in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Census {
    /// Where the figures come from.
    pub source: Source,
    /// Whether all other threads were stopped.
    pub exact: bool,
    /// Address space held for the heap: live, free, metadata, quarantined and unused bytes together.
    pub mapped_bytes: u64,
    /// In blocks that the program holds; of a collector, that no collection has reclaimed.
    pub live_bytes: u64,
    /// In blocks ready to be handed out, caches included.
    pub free_bytes: u64,
    /// Headers, tables, bitmaps.
    pub metadata_bytes: u64,
    /// Freed by the program, not reusable yet.
    pub quarantined_bytes: u64,
    /// Mapped, never carved into blocks.
    pub unused_bytes: u64,
    /// Of unused: avoided because words of the program could be taken for addresses in it (`tithe_stats`), where
    /// reported.
    pub blacklisted_bytes: Option<u64>,
    /// `live_bytes` after a full collection that was requested during this pause, where one was.
    pub live_after_collection_bytes: Option<u64>,
    /// What each sort of root alone keeps, live and dead (`tithe_held`), where reported.
    pub held: Option<HeldByRoots>,
}

impl Census {
    /// The first byte of the request to the layer: what to report in addition to the usual. `collect` runs a full
    /// collection and has all threads stopped several times, which changes the run.
    pub fn request_flags(collect: bool) -> u8 {
        if collect { request::COLLECT | request::HELD } else { 0 }
    }

    /// From the layer's answer (`heaptoll_alloc_ring::facts`). `None`: the manager reports nothing.
    pub fn from_bytes(bytes: &[u8]) -> Option<Census> {
        Facts::from_bytes(bytes).and_then(|facts| Census::of(&facts))
    }

    /// From what the process reported.
    pub fn of(facts: &Facts) -> Option<Census> {
        if let Some(census) = facts.census {
            return Some(Census {
                source: Source::Control,
                exact: census.exact,
                mapped_bytes: census.mapped_bytes,
                live_bytes: census.live_bytes,
                free_bytes: census.free_bytes,
                metadata_bytes: census.metadata_bytes,
                quarantined_bytes: census.quarantined_bytes,
                unused_bytes: census.unused_bytes,
                blacklisted_bytes: facts.blacklisted_bytes,
                live_after_collection_bytes: facts.collected.map(|after| after.live_bytes),
                held: facts.held.map(|held| HeldByRoots {
                    stacks: held.stacks,
                    statics: held.statics,
                    mappings: held.mappings,
                    registers: held.registers,
                }),
            });
        }
        let info = facts.mallinfo?;
        Some(Census {
            source: Source::Mallinfo,
            mapped_bytes: info.arena.saturating_add(info.hblkhd),
            live_bytes: info.uordblks.saturating_add(info.hblkhd),
            free_bytes: info.fordblks,
            unused_bytes: info.keepcost,
            ..Census::default()
        })
    }
}

/// The source of a census.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A manager that has the control symbol.
    #[default]
    Control,
    /// glibc's mallinfo2: mapped is `arena + hblkhd`, live `uordblks + hblkhd` (headers and thread caches included),
    /// free `fordblks`, unused `keepcost` (which is part of free).
    Mallinfo,
}

/// Bytes that would be reclaimed if the words of one sort of root were gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HeldByRoots {
    /// Stacks of the threads.
    pub stacks: u64,
    /// Data of the program and its libraries.
    pub statics: u64,
    /// Other memory.
    pub mappings: u64,
    /// Registers of stopped threads.
    pub registers: u64,
}

#[cfg(test)]
mod tests {
    use heaptoll_alloc_ring::facts::{Mallinfo, Totals};

    use super::*;

    #[test]
    fn what_the_layer_reports_is_a_census() {
        let mut facts = Facts::default();
        assert_eq!(Census::from_bytes(&facts.to_bytes()), None);
        assert_eq!(Census::from_bytes(b"?"), None);
        facts.mallinfo = Some(Mallinfo { arena: 10, hblkhd: 5, uordblks: 7, fordblks: 3, keepcost: 1 });
        let census = Census::from_bytes(&facts.to_bytes()).expect("reported");
        assert_eq!((census.source, census.mapped_bytes, census.live_bytes), (Source::Mallinfo, 15, 12));
        facts.census = Some(Totals { live_bytes: 100, mapped_bytes: 300, ..Totals::default() });
        facts.collected = Some(Totals { live_bytes: 60, ..Totals::default() });
        facts.blacklisted_bytes = Some(9);
        let census = Census::from_bytes(&facts.to_bytes()).expect("reported");
        assert_eq!((census.source, census.mapped_bytes, census.live_bytes), (Source::Control, 300, 100));
        assert_eq!((census.live_after_collection_bytes, census.blacklisted_bytes), (Some(60), Some(9)));
        assert_eq!(Census::request_flags(true), 3);
        assert_eq!(Census::request_flags(false), 0);
    }
}
