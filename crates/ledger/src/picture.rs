//! A picture of the heap's resident pages in order of address: what of each is live, which call site holds the rest, and
//! what was freed around the blocks that hold it.
//!
//! Its size is bounded: neighbouring pages share a cell where there are many.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The resident pages of the heap, in order of address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Picture {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Resident pages of the heap.
    pub pages: u64,
    /// Pages of a cell; the last cell has what is left.
    pub cell_pages: u64,
    /// Cells in order of address.
    pub cells: Vec<Cell>,
    /// What was freed around the blocks of the call sites that hold most.
    pub around: Vec<Around>,
    /// What was freed on it is known of one page in this many; 0 where it is not known.
    pub followed_one_in: u64,
}

/// Neighbouring resident pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Cell {
    /// Address of its first page.
    pub start: u64,
    /// Address after its last page; what of the range is not resident is not in it.
    pub end: u64,
    /// Its pages without a live block.
    pub empty_pages: u64,
    /// Bytes of live blocks and of their headers.
    pub live_bytes: u64,
    /// Free bytes on pages with live blocks.
    pub held_bytes: u64,
    /// Mean of the bytes that were allocated since its blocks were, by live bytes, KiB.
    pub age_kib: u64,
    /// The call sites that have most of it, live and held: at most three.
    pub holders: Vec<Holder>,
}

/// What a call site has of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Holder {
    /// The call site; 0 is "not recorded".
    pub site: u32,
    /// Bytes of its live blocks.
    pub live_bytes: u64,
    /// Free bytes that it holds: on a page with several call sites each holds an equal part.
    pub held_bytes: u64,
}

/// What was freed on the pages that a call site holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Around {
    /// The call site that holds the pages.
    pub site: u32,
    /// Free bytes that it holds on the pages that are followed.
    pub held_bytes: u64,
    /// Of them, by the call site of the last block that was freed there, most first.
    pub freed: Vec<FreedBytes>,
    /// Those of all further call sites.
    pub others_bytes: u64,
    /// Those on which no block was freed since the page is followed: never used, or the manager's own.
    pub unused_bytes: u64,
}

/// Bytes of freed blocks of one call site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FreedBytes {
    /// The call site.
    pub site: u32,
    /// Their bytes that are free now.
    pub bytes: u64,
}

impl Picture {
    /// Pages of the cell at this index.
    pub fn pages_of(&self, cell: usize) -> u64 {
        self.pages.saturating_sub(cell as u64 * self.cell_pages).min(self.cell_pages)
    }

    /// The call sites that it names.
    pub fn sites(&self) -> impl Iterator<Item = u32> {
        let holders = self.cells.iter().flat_map(|cell| cell.holders.iter().map(|holder| holder.site));
        let around = self.around.iter().flat_map(|around| {
            std::iter::once(around.site).chain(around.freed.iter().map(|freed| freed.site))
        });
        holders.chain(around)
    }
}
