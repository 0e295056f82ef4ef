//! Which call sites hold the live bytes.

use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::block::Block;

/// Sites that a snapshot keeps; the rest is in [`LiveHolders::others`].
const MOST_SITES: usize = 50;

/// The live blocks by the call sites that allocated them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LiveHolders {
    /// Call sites, those that hold most first.
    pub sites: Vec<LiveHolder>,
    /// All other sites together; `site` is 0.
    pub others: LiveHolder,
}

/// The live blocks of one call site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LiveHolder {
    /// The call site: an index into the trace's sites; 0 is "not recorded".
    pub site: u32,
    /// Its live blocks.
    pub blocks: u64,
    /// Bytes requested in them.
    pub bytes: u64,
}

impl LiveHolder {
    /// Adds what another site holds; its number stays.
    pub fn add(&mut self, other: &LiveHolder) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
    }
}

/// The holders of these blocks.
pub fn live_holders(blocks: &[Block]) -> LiveHolders {
    let mut by_site: FxHashMap<u32, LiveHolder> = FxHashMap::default();
    // Neighbours are often of one site.
    for of_one in blocks.chunk_by(|one, next| one.site == next.site) {
        let site = of_one[0].site;
        let bytes = of_one.iter().map(|block| block.requested).sum();
        let holder = by_site.entry(site).or_insert(LiveHolder { site, ..LiveHolder::default() });
        holder.add(&LiveHolder { site, blocks: of_one.len() as u64, bytes });
    }
    let mut sites: Vec<LiveHolder> = by_site.into_values().collect();
    sites.sort_unstable_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.site));
    let mut others = LiveHolder::default();
    sites.split_off(sites.len().min(MOST_SITES)).iter().for_each(|holder| others.add(holder));
    LiveHolders { sites, others }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_live_byte_has_one_holder() {
        let block = |site: u32| Block { site, requested: u64::from(site), ..Block::default() };
        let blocks: Vec<Block> = (0..3).flat_map(|_| (1..=60).chain([7, 7]).map(block)).collect();
        let found = live_holders(&blocks);
        assert_eq!(found.sites.len(), MOST_SITES);
        assert_eq!(found.sites[0], LiveHolder { site: 60, blocks: 3, bytes: 180 });
        assert!(found.sites.contains(&LiveHolder { site: 7, blocks: 9, bytes: 63 }));
        assert_eq!(found.others, LiveHolder { site: 0, blocks: 30, bytes: 3 * (66 - 7) });
        let all = found.sites.iter().map(|holder| holder.bytes).sum::<u64>() + found.others.bytes;
        assert_eq!(all, blocks.iter().map(|block| block.requested).sum::<u64>());
        assert_eq!(live_holders(&[]), LiveHolders::default());
    }
}
