//! A line of the ledger: its term, its amount, and how the amount is known. Whatever counts bytes uses these, without
//! the snapshot that the lines make up.

use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes by where they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

    /// This amount less `part`, none where that is more.
    pub(crate) fn without(&self, part: Amount) -> Amount {
        Amount {
            resident: self.resident.saturating_sub(part.resident),
            swapped: self.swapped.saturating_sub(part.swapped),
            absent: self.absent.saturating_sub(part.absent),
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
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
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
    /// The same in a process that was forked: what its parent had there, as its blocks or free. The record has none of
    /// these.
    Inherited,
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
    /// Code and constant data, and private mappings of files that are no code.
    Code,
    /// Writable data of the program and its libraries.
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
    #[default]
    OtherAnonymous,
}

/// All terms, in order.
pub const TERMS: [Term; 21] = [
    Term::Live,
    Term::Internal,
    Term::External,
    Term::Caches,
    Term::Fresh,
    Term::Inherited,
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerLine {
    /// What.
    pub term: Term,
    /// How much.
    #[serde(flatten)]
    pub amount: Amount,
    /// How it is known.
    pub how: How,
}
