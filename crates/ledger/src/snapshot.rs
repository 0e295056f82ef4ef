//! A snapshot of a process: the lines of the ledger, which sum up to its resident set.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use crate::census::{Census, Source};
use crate::share::LineBuilder;

/// Bytes by where they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amount {
    /// In memory.
    pub resident: u64,
    /// On a swap device.
    pub swapped: u64,
    /// Mapped and without a page: never touched, released, or read only.
    pub absent: u64,
}

impl Amount {
    /// All of it, bytes of address space.
    pub fn total(&self) -> u64 {
        self.resident + self.swapped + self.absent
    }

    /// This amount less `part`, which is contained in it.
    pub(crate) fn without(&self, part: Amount) -> Amount {
        Amount {
            resident: self.resident - part.resident,
            swapped: self.swapped - part.swapped,
            absent: self.absent - part.absent,
        }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, more: Amount) {
        self.resident += more.resident;
        self.swapped += more.swapped;
        self.absent += more.absent;
    }
}

impl Add for Amount {
    type Output = Amount;

    fn add(mut self, more: Amount) -> Amount {
        self += more;
        self
    }
}

/// The term that a line of the ledger counts. In the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// Bytes the program requested in blocks that it holds.
    Live,
    /// Usable bytes of those blocks that it did not request.
    Internal,
    /// Bytes of no live block on pages that hold bytes of one.
    External,
    /// Pages of the heap that hold no byte of a live block, and have held one.
    Caches,
    /// Pages of the heap's mappings in which no block has been: never carved, the manager's own tables, or the
    /// program's own memory that the kernel merged into one mapping with the heap. Distinguished from [`Term::Caches`]
    /// only where the record knows all addresses that blocks have had.
    Fresh,
    /// Freed by the program, held back by the manager.
    Quarantine,
    /// Mapped, never carved into blocks: the step in which the heap grows.
    Unused,
    /// Never carved, and avoided since words of the program could be taken for addresses in it.
    Blacklisted,
    /// The manager's own: headers, tables, bitmaps.
    Metadata,
    /// Freed by the program and not reclaimed, not divided further.
    Dead,
    /// The dead bytes that a collection now reclaims: the headroom between two collections.
    Headroom,
    /// The dead bytes that a collection now does not reclaim, since some word leads to it.
    Held,
    /// Live for the manager, unknown to the record: allocated before it began, or past the layer.
    Unrecorded,
    /// Code and constant data of files.
    Code,
    /// Writable data of the program and its libraries, and private mappings of files.
    StaticData,
    /// Stacks of threads.
    Stacks,
    /// Files and memory shared with other processes.
    Shared,
    /// The recorder's rings and tables in the process.
    Recorder,
    /// The kernel's pages (`[vdso]`).
    Kernel,
    /// Anonymous memory in which no block has been seen: the program's own mappings, stacks of ended threads, tables of
    /// managers that do not report where they are.
    OtherAnonymous,
}

/// All terms, in order.
pub const TERMS: [Term; 20] = [
    Term::Live,
    Term::Internal,
    Term::External,
    Term::Caches,
    Term::Fresh,
    Term::Quarantine,
    Term::Unused,
    Term::Blacklisted,
    Term::Metadata,
    Term::Dead,
    Term::Headroom,
    Term::Held,
    Term::Unrecorded,
    Term::Code,
    Term::StaticData,
    Term::Stacks,
    Term::Shared,
    Term::Recorder,
    Term::Kernel,
    Term::OtherAnonymous,
];

/// How a line is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Counted, byte by byte, from the record and the pages of the process.
    Counted,
    /// The amount is the manager's figure, or a count less that figure; how much of it is resident is the share of the
    /// memory in which it must lie.
    #[serde(rename = "told")]
    Reported,
    /// The page map could not be read: what is resident is estimated from each mapping's total.
    Estimated,
}

/// One line of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerLine {
    /// What.
    pub term: Term,
    /// How much.
    #[serde(flatten)]
    pub amount: Amount,
    /// How it is known.
    pub how: How,
}

/// Contradictions between the record and the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Defects {
    /// Blocks of which some bytes lie in no mapping.
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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// ns from the beginning of the record.
    pub time_ns: u64,
    /// Bytes allocated until then.
    pub clock_bytes: u64,
    /// Resident set, bytes: the sum over the mappings as the kernel gives it (`Rss` of `/proc/PID/smaps`). The resident
    /// bytes of all lines and `difference_bytes` make exactly this.
    pub rss_bytes: u64,
    /// The kernel's counter (`VmRSS`), bytes: another figure for the same, which may lag by some pages a core.
    pub vm_rss_bytes: u64,
    /// The mappings' totals less those of the page map, bytes: pages that came or went
    /// between the two. 0 when all threads are stopped.
    pub difference_bytes: i64,
    /// Terms that have a byte, in the order of [`TERMS`]; each once.
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

    /// The sum of all lines. Its resident part and `difference_bytes` make `rss_bytes`.
    pub fn sum(&self) -> Amount {
        self.lines.iter().fold(Amount::default(), |sum, line| sum + line.amount)
    }

    /// Whether the sum closes. It does by construction; a reader of a file may check.
    pub fn closes(&self) -> bool {
        i128::from(self.sum().resident) + i128::from(self.difference_bytes) == i128::from(self.rss_bytes)
    }
}
