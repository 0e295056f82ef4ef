//! What was freed on which page: for each 16 bytes the call site of the last block that was freed there.
//!
//! A program frees more blocks than can be kept. So pages are followed, not frees: all of them at first, and one in two,
//! one in four, ... as more are followed or more is freed than a limit. Which ones is decided by a hash of their address,
//! so that what is found on them stands for all.

use rustc_hash::FxHashMap;

/// Bytes that have one call site: blocks lie so far apart.
const GRANULE: u64 = 16;
/// Pages that are kept, of 1 KiB where a page has 4: half of them are forgotten when there are more.
const MOST_PAGES: usize = 1 << 15;
/// Frees on followed pages, after which half of the pages are forgotten: what following costs grows with the logarithm
/// of the frees, not with the frees.
const MOST_ENTERED: u64 = 1 << 22;
/// Pages of one freed block that are entered. Larger blocks have mappings of their own under most managers.
const MOST_OF_BLOCK: u64 = 256;
/// Halvings, at most.
const MOST_HALVINGS: u32 = 20;

/// Bytes of a page that were one freed block's, or those of several of one call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First byte, from the page's beginning.
    pub start: u64,
    /// The byte after it.
    pub end: u64,
    /// The call site that had allocated the block.
    pub site: u32,
}

/// The freed blocks of a process on the pages that are followed.
#[derive(Debug)]
pub struct FreedBlocks {
    page_size: u64,
    /// By number of the page: the site of each granule, 0 where no block was freed.
    pages: FxHashMap<u64, Box<[u32]>>,
    /// Of 2 to this power pages one is followed.
    halvings: u32,
    entered: u64,
}

impl FreedBlocks {
    /// Nothing was freed yet; pages of this many bytes, a power of two above 16.
    pub fn new(page_size: u64) -> FreedBlocks {
        FreedBlocks { page_size, pages: FxHashMap::default(), halvings: 0, entered: 0 }
    }

    /// One page in this many is followed.
    pub fn one_in(&self) -> u64 {
        1 << self.halvings
    }

    /// A block that was allocated at `site`, which is not 0, is freed, or moved away; it had the bytes from `start` to
    /// before `end`.
    #[inline]
    pub fn free(&mut self, start: u64, end: u64, site: u32) {
        let first = start / self.page_size;
        let last = end.saturating_sub(1) / self.page_size;
        for page in first..=last.min(first.saturating_add(MOST_OF_BLOCK - 1)) {
            if is_followed(page, self.halvings) {
                let base = page * self.page_size;
                let from = start.max(base) - base;
                let to = end.saturating_sub(base).min(self.page_size);
                self.enter(page, from / GRANULE, to.div_ceil(GRANULE), site);
            }
        }
    }

    /// What was freed on the page at this address, in order, to 16 bytes; none where it is not followed.
    pub fn on_page(&self, address: u64) -> Option<Vec<Piece>> {
        let page = address / self.page_size;
        if !is_followed(page, self.halvings) {
            return None;
        }
        let Some(granules) = self.pages.get(&page) else { return Some(Vec::new()) };
        let mut at = 0;
        let pieces = granules.chunk_by(|one, next| one == next).map(|run| {
            let start = at;
            at += run.len() as u64 * GRANULE;
            Piece { start, end: at, site: run[0] }
        });
        Some(pieces.filter(|piece| piece.site != 0).collect())
    }

    fn enter(&mut self, page: u64, from: u64, to: u64, site: u32) {
        let granules = (self.page_size / GRANULE) as usize;
        let granules = self.pages.entry(page).or_insert_with(|| vec![0; granules].into());
        if let Some(taken) = granules.get_mut(from as usize..to as usize) {
            taken.fill(site);
        }
        self.entered += 1;
        if (self.pages.len() > MOST_PAGES || self.entered > MOST_ENTERED) && self.halvings < MOST_HALVINGS {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.halvings += 1;
        self.entered = 0;
        let halvings = self.halvings;
        self.pages.retain(|page, _| is_followed(*page, halvings));
    }
}

#[inline(always)]
fn is_followed(page: u64, halvings: u32) -> bool {
    // The upper bits of a product by an odd number depend on all bits of the page.
    let hash = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    hash & ((1 << halvings) - 1) == 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 64;

    proptest! {
        #[test]
        fn each_granule_has_the_site_of_the_last_block_that_was_freed_there(
            frees in prop::collection::vec((0..512_u64, 1..200_u64, 1..9_u32), 0..60),
        ) {
            let mut freed = FreedBlocks::new(PAGE);
            let mut model = vec![0; 1024 / GRANULE as usize];
            for (start, bytes, site) in frees {
                freed.free(start, start + bytes, site);
                let (from, to) = (start / GRANULE, (start + bytes).div_ceil(GRANULE));
                model[from as usize..to as usize].fill(site);
            }
            for page in 0..16 {
                let mut found = [0; (PAGE / GRANULE) as usize];
                for piece in freed.on_page(page * PAGE).expect("all are followed") {
                    found[(piece.start / GRANULE) as usize..(piece.end / GRANULE) as usize].fill(piece.site);
                }
                let from = (page * PAGE / GRANULE) as usize;
                prop_assert_eq!(&found[..], &model[from..from + found.len()]);
            }
        }
    }

    #[test]
    fn more_than_is_kept_halves_the_pages_and_those_left_are_whole() {
        let mut freed = FreedBlocks::new(4096);
        let pages = 100_000;
        for page in 0..pages {
            for piece in 0..32 {
                let start = page * 4096 + piece * 128;
                freed.free(start, start + 112, piece as u32 + 1);
            }
        }
        assert!(freed.pages.len() <= MOST_PAGES && freed.one_in() == 4, "one page in {}", freed.one_in());
        let followed: Vec<Vec<Piece>> = (0..pages).filter_map(|page| freed.on_page(page * 4096)).collect();
        assert!(followed.iter().all(|pieces| pieces.len() == 32));
        let share = followed.len() as f64 / pages as f64;
        assert!((0.24..0.26).contains(&share), "one page in four: {share}");
    }

    #[test]
    fn a_huge_block_is_entered_at_its_beginning_only() {
        let mut freed = FreedBlocks::new(4096);
        freed.free(0, 1 << 40, 7);
        assert_eq!(freed.pages.len() as u64, MOST_OF_BLOCK);
        freed.free(u64::MAX - 10, u64::MAX, 7);
        freed.free(5, 5, 7);
        assert_eq!(freed.on_page(0).map(|pieces| pieces.len()), Some(1));
    }
}
