//! A snapshot of a process: the lines of the ledger, which sum up to its resident set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::census::{Census, Source};
use crate::line::{Amount, LedgerLine, Term};
use crate::live_holders::LiveHolders;
use crate::mapped::Mapper;
use crate::picture::Picture;
use crate::pins::Pins;
use crate::share::LineBuilder;

/// Contradictions between the record and the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Defects {
    /// Blocks with bytes in no mapping.
    pub unmapped_blocks: u64,
    /// Those bytes.
    pub unmapped_bytes: u64,
    /// Address of the first such block.
    pub unmapped_address: u64,
    /// Blocks that begin before another one's end.
    pub overlapping_blocks: u64,
    /// Bytes that two blocks contain, counted once in the lines.
    pub overlapping_bytes: u64,
}

/// The ledger at one instant.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Snapshot {
    /// ns from the beginning of the record.
    pub time_ns: u64,
    /// Bytes allocated until then.
    pub clock_bytes: u64,
    /// Events of the trace until then; 0 in files from before this was recorded.
    pub events: u64,
    /// ns after it until the program made a call, or another was taken; 0 in files from before this was recorded.
    pub idle_ns: u64,
    /// Resident set, bytes: the sum over the mappings as the kernel gives it (`Rss` of `/proc/PID/smaps`). The resident
    /// bytes of all lines and `difference_bytes` make exactly this.
    pub rss_bytes: u64,
    /// The kernel's counter (`VmRSS`), bytes: another figure for the same, which may lag by some pages a core.
    pub vm_rss_bytes: u64,
    /// The most that this counter has been until then (`VmHWM`), bytes; 0 in files from before this was recorded.
    pub vm_hwm_bytes: u64,
    /// The mappings' totals less those of the page map, bytes: pages that came or went
    /// between the two. 0 when all threads are stopped.
    pub difference_bytes: i64,
    /// Terms that have a byte, in the order of [`TERMS`](crate::TERMS); each once.
    pub lines: Vec<LedgerLine>,
    /// Live blocks.
    pub live_blocks: u64,
    /// Sum of the bytes requested, those in no mapping included.
    pub live_bytes: u64,
    /// Address space of the heap, bytes.
    pub heap_bytes: u64,
    /// Ranges of it: mappings, or parts of mappings.
    #[serde(rename = "heap_places")]
    pub heap_ranges: u64,
    /// Windows of 64 MiB in which the memory of glibc's arenas lies, without the main arena's; 0 of other managers, and
    /// in files from before this was recorded.
    pub arena_windows: u64,
    /// Resident bytes in them that no live block has.
    pub arena_free_bytes: u64,
    /// Resident bytes of the heap on huge pages.
    pub huge_bytes: u64,
    /// Resident bytes of the heap without a live block on their (small) page, on huge pages: resident because their
    /// neighbours are.
    pub huge_free_bytes: u64,
    /// Address space without access (reserved, guard pages) and that of the recorder's file, bytes; in no line.
    pub reserved_bytes: u64,
    /// Why the page map could not be read, if it could not.
    pub no_pagemap: Option<String>,
    /// Contradictions between record and process.
    pub defects: Defects,
    /// Who holds the live bytes; none in files from before this was recorded.
    pub holders: Option<LiveHolders>,
    /// Threads of the process, of 4096 at most; 0 in files from before this was recorded.
    pub threads: u64,
    /// Who mapped what is not heap, by calls of `mmap` and `shmat` for 256 KiB and more: the call sites with most of it.
    pub mappers: Vec<Mapper>,
    /// Who holds the free bytes of partly live pages; none where the pages could not be read, and in files from before
    /// this was recorded.
    pub pins: Option<Pins>,
    /// The pages of the heap as a picture, where external fragmentation is larger than in all other snapshots.
    pub picture: Option<Picture>,
    /// The manager's census, taken in the process during the same pause.
    pub census: Option<Census>,
    /// ns that this sample took.
    pub took_ns: u64,
}

impl Snapshot {
    /// A term's amount; zero where it has no line.
    pub fn amount(&self, term: Term) -> Amount {
        self.lines
            .iter()
            .filter(|line| line.term == term)
            .fold(Amount::default(), |sum, line| sum + line.amount)
    }

    /// Divides the dead after a collection that was forced at this snapshot, once it was taken: what is no longer in
    /// use after it is headroom, the rest is held. Nothing changes when there was no collection.
    pub fn collected(&mut self, after: &Census) {
        let Some(census) = self.census.as_mut().filter(|census| census.source == Source::Control) else {
            return;
        };
        let Some(live) = after.live_after_collection_bytes else { return };
        census.live_after_collection_bytes = Some(live);
        census.held = after.held.or(census.held);
        let census = *census;
        let mut lines = LineBuilder::of(&self.lines);
        lines.divide_dead(&census);
        self.lines = lines.finish();
    }

    /// The call sites that it names, some of them several times.
    pub fn sites(&self) -> impl Iterator<Item = u32> {
        let holders = self.holders.iter().flat_map(|live| live.sites.iter().map(|holder| holder.site));
        let pins = self.pins.iter().flat_map(|pins| pins.sites.iter().map(|pin| pin.site));
        let mappers = self.mappers.iter().map(|mapper| mapper.site);
        holders.chain(mappers).chain(pins).chain(self.picture.iter().flat_map(Picture::sites))
    }

    /// The sum of all lines. Its resident part and `difference_bytes` make `rss_bytes`.
    pub fn sum(&self) -> Amount {
        self.lines.iter().fold(Amount::default(), |sum, line| sum + line.amount)
    }

    /// What shares are of: the resident set, or the lines where these are more, since the program ran while its pages were
    /// read.
    pub fn whole(&self) -> u64 {
        self.rss_bytes.max(self.sum().resident)
    }

    /// Whether the sum closes. It does by construction; a reader of a file may check.
    pub fn closes(&self) -> bool {
        i128::from(self.sum().resident) + i128::from(self.difference_bytes) == i128::from(self.rss_bytes)
    }
}
