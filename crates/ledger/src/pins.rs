//! Which call sites pin pages: live blocks that keep pages with free bytes resident.
//!
//! A page with a byte of a live block cannot be given back to the system, so the free bytes of that page are held by its
//! live blocks. Where all of these were allocated at one call site, the site holds them alone; where there are several
//! sites, each holds an equal part. So the bytes of all sites sum up to external fragmentation, and the bytes that a site
//! holds alone are a lower bound of what is free when its blocks are.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::block::Block;
use crate::laid_pages::{LaidPage, PageVisitor, lay};
use crate::residency::{Run, Walk};

/// Sites that a snapshot keeps; the rest is in [`Pins::others`].
const MOST_SITES: usize = 50;

/// The free bytes on resident pages with a live block, by the call sites of these blocks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pins {
    /// Call sites, those that hold most first.
    pub sites: Vec<Pin>,
    /// All other sites together; `site` is 0.
    pub others: Pin,
    /// Resident pages with live blocks and free bytes.
    pub pages: u64,
    /// All resident pages with live blocks.
    pub live_pages: u64,
    /// Free bytes on them: the sum over the sites.
    pub bytes: u64,
}

/// What the blocks of one call site hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pin {
    /// The call site: an index into the trace's sites; 0 is "not recorded".
    pub site: u32,
    /// Its live blocks that lie on pages with free bytes. One block on two such pages counts once.
    pub blocks: u64,
    /// Bytes requested in them.
    pub block_bytes: u64,
    /// Pages on which it has the only live blocks.
    pub alone_pages: u64,
    /// Free bytes of these.
    pub alone_bytes: u64,
    /// Pages that it shares with other sites.
    pub shared_pages: u64,
    /// Its part of the free bytes of these: an equal part for each site.
    pub shared_bytes: u64,
    /// Sum over `blocks` of the bytes that were allocated since each of them, in KiB.
    pub age_kib: u64,
}

impl Pin {
    /// Free bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.alone_bytes + self.shared_bytes
    }

    /// How much was allocated since its blocks were, bytes, on average.
    pub fn mean_age_bytes(&self) -> u64 {
        self.age_kib.checked_div(self.blocks).unwrap_or_default() * 1024
    }

    /// Adds what another site holds; its number stays.
    pub fn add(&mut self, other: &Pin) {
        self.blocks += other.blocks;
        self.block_bytes += other.block_bytes;
        self.alone_pages += other.alone_pages;
        self.alone_bytes += other.alone_bytes;
        self.shared_pages += other.shared_pages;
        self.shared_bytes += other.shared_bytes;
        self.age_kib = self.age_kib.saturating_add(other.age_kib);
    }
}

struct Pass<'a> {
    blocks: &'a [Block],
    walk: Walk<'a>,
    page_size: u64,
    clock_bytes: u64,
    by_site: HashMap<u32, Pin>,
    /// The last block that was counted: a block on two pages counts once.
    counted: Option<usize>,
    pins: Pins,
}

/// Attributes the free bytes on the pages of `blocks`, which are in order of address, to their sites. Before each block,
/// `header` bytes are the manager's. `runs` are the pages of the heap. `clock_bytes` were allocated until now.
pub fn pins(blocks: &[Block], runs: &[Run], header: u64, page: u64, clock_bytes: u64) -> Pins {
    let mut pass = Pass {
        blocks,
        walk: Walk::new(runs),
        page_size: page,
        clock_bytes,
        by_site: HashMap::new(),
        counted: None,
        pins: Pins::default(),
    };
    lay(blocks, header, page, &mut pass);
    pass.finish()
}

impl PageVisitor for Pass<'_> {
    fn filled(&mut self, start: u64, end: u64, _: usize) {
        self.pins.live_pages += self.walk.measure(start, end).amount.resident / self.page_size;
    }

    fn page(&mut self, page: &LaidPage) {
        let end = page.start.saturating_add(self.page_size);
        if self.walk.measure(page.start, end).amount.resident < self.page_size {
            return;
        }
        self.pins.live_pages += 1;
        let free = self.page_size.saturating_sub(page.taken);
        if free == 0 {
            return;
        }
        self.pins.pages += 1;
        self.pins.bytes += free;
        let sites = page.sites.len() as u64;
        for (at, site) in page.sites.iter().enumerate() {
            let pin = self.by_site.entry(*site).or_insert_with(|| Pin { site: *site, ..Pin::default() });
            if sites == 1 {
                pin.alone_pages += 1;
                pin.alone_bytes += free;
            } else {
                pin.shared_pages += 1;
                // The first ones take what does not divide.
                pin.shared_bytes += free / sites + u64::from((at as u64) < free % sites);
            }
        }
        for &index in &page.blocks {
            if self.counted.is_some_and(|counted| counted >= index) {
                continue;
            }
            self.counted = Some(index);
            let block = &self.blocks[index];
            let pin = self.by_site.entry(block.site).or_default();
            pin.blocks += 1;
            pin.block_bytes += block.requested;
            pin.age_kib =
                pin.age_kib.saturating_add(self.clock_bytes.saturating_sub(block.allocated_at_bytes) / 1024);
        }
    }
}

impl Pass<'_> {
    fn finish(self) -> Pins {
        let mut pins = self.pins;
        let mut all: Vec<Pin> = self.by_site.into_values().collect();
        all.sort_unstable_by_key(|pin| (std::cmp::Reverse(pin.bytes()), pin.site));
        let rest = all.split_off(all.len().min(MOST_SITES));
        rest.iter().for_each(|pin| pins.others.add(pin));
        pins.sites = all;
        pins
    }
}

#[cfg(test)]
mod tests;
