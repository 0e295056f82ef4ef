//! What was freed on which page: for each byte the call site of the last block that was freed there.
//!
//! A program frees more blocks than can be kept. So pages are followed, not frees: all of them at first, and one in two,
//! one in four, ... as more is kept or more is freed than a limit. Which ones is decided by a hash of their address, so
//! that what is found on them stands for all.

use rustc_hash::FxHashMap;

/// Pieces that are kept, 12 bytes each: half of the pages are forgotten when there are more.
const MOST_PIECES: usize = 1 << 20;
/// Pieces entered, after which half of the pages are forgotten: what following costs grows with the logarithm of the
/// frees, not with the frees.
const MOST_ENTERED: u64 = 1 << 22;
/// Pages of one freed block that are entered. Larger blocks have mappings of their own under most managers.
const MOST_PAGES: u64 = 256;
/// Halvings, at most.
const MOST_HALVINGS: u32 = 16;

/// Bytes of a page that were one freed block's, or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First byte, from the page's beginning.
    pub start: u32,
    /// The byte after it.
    pub end: u32,
    /// The call site that had allocated the block.
    pub site: u32,
}

/// The freed blocks of a process on the pages that are followed.
#[derive(Debug)]
pub struct FreedBlocks {
    page_size: u64,
    /// By number of the page; disjoint.
    pages: FxHashMap<u64, Vec<Piece>>,
    /// Of 2 to this power pages one is followed.
    halvings: u32,
    pieces: usize,
    entered: u64,
}

impl FreedBlocks {
    /// Nothing was freed yet; pages of this many bytes, a power of two.
    pub fn new(page_size: u64) -> FreedBlocks {
        FreedBlocks { page_size, pages: FxHashMap::default(), halvings: 0, pieces: 0, entered: 0 }
    }

    /// One page of so many is followed.
    pub fn one_in(&self) -> u64 {
        1 << self.halvings
    }

    /// A block that was allocated at `site` is freed, or moved away; it had the bytes from `start` to before `end`.
    #[inline]
    pub fn free(&mut self, start: u64, end: u64, site: u32) {
        let mut page = start / self.page_size;
        let last = end.saturating_sub(1).max(start) / self.page_size;
        let last = last.min(page.saturating_add(MOST_PAGES - 1));
        while page <= last {
            if is_followed(page, self.halvings) {
                let base = page * self.page_size;
                let piece = Piece {
                    start: (start.max(base) - base) as u32,
                    end: end.saturating_sub(base).min(self.page_size) as u32,
                    site,
                };
                self.enter(page, piece);
            }
            page += 1;
        }
    }

    /// What was freed on the page at this address, in no order; none where it is not followed.
    pub fn on_page(&self, address: u64) -> Option<&[Piece]> {
        let page = address / self.page_size;
        is_followed(page, self.halvings).then(|| self.pages.get(&page).map_or(&[][..], Vec::as_slice))
    }

    fn enter(&mut self, page: u64, piece: Piece) {
        if piece.start >= piece.end {
            return;
        }
        let pieces = self.pages.entry(page).or_default();
        let before = pieces.len();
        cover(pieces, piece);
        self.pieces = self.pieces + pieces.len() - before;
        self.entered += 1;
        if (self.pieces > MOST_PIECES || self.entered > MOST_ENTERED) && self.halvings < MOST_HALVINGS {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        self.halvings += 1;
        self.entered = 0;
        let halvings = self.halvings;
        self.pages.retain(|page, _| is_followed(*page, halvings));
        self.pages.shrink_to_fit();
        self.pieces = self.pages.values().map(Vec::len).sum();
    }
}

#[inline(always)]
fn is_followed(page: u64, halvings: u32) -> bool {
    // The upper bits of a product by an odd number depend on all bits of the page.
    let hash = page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    hash & ((1 << halvings) - 1) == 0
}

/// Adds a piece; what it covers of others is no longer theirs.
fn cover(pieces: &mut Vec<Piece>, new: Piece) {
    let mut rest = None;
    pieces.retain_mut(|old| {
        if old.end <= new.start || new.end <= old.start {
            return true;
        }
        if old.start < new.start && new.end < old.end {
            rest = Some(Piece { start: new.end, ..*old });
        }
        if old.start < new.start {
            old.end = new.start;
            return true;
        }
        old.start = new.end;
        old.start < old.end
    });
    pieces.extend(rest);
    pieces.push(new);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: u64 = 64;

    proptest! {
        #[test]
        fn each_byte_has_the_site_of_the_last_block_that_was_freed_there(
            frees in prop::collection::vec((0..512_u64, 1..200_u64, 1..9_u32), 0..60),
        ) {
            let mut freed = FreedBlocks::new(PAGE);
            let mut model = vec![0; 1024];
            for (start, bytes, site) in frees {
                freed.free(start, start + bytes, site);
                model[start as usize..(start + bytes) as usize].fill(site);
            }
            for page in 0..16 {
                let mut found = [0; PAGE as usize];
                for piece in freed.on_page(page * PAGE).expect("all are followed") {
                    for byte in &mut found[piece.start as usize..piece.end as usize] {
                        prop_assert_eq!(std::mem::replace(byte, piece.site), 0, "disjoint");
                    }
                }
                prop_assert_eq!(&found[..], &model[(page * PAGE) as usize..][..PAGE as usize]);
            }
            let kept: usize = freed.pages.values().map(Vec::len).sum();
            prop_assert_eq!(kept, freed.pieces);
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
        assert!(freed.pieces <= MOST_PIECES && freed.one_in() == 4, "{} of {}", freed.pieces, freed.one_in());
        let followed: Vec<&[Piece]> = (0..pages).filter_map(|page| freed.on_page(page * 4096)).collect();
        assert!(followed.iter().all(|pieces| pieces.len() == 32));
        let share = followed.len() as f64 / pages as f64;
        assert!((0.24..0.26).contains(&share), "one page in four: {share}");
    }

    #[test]
    fn a_huge_block_is_entered_at_its_beginning_only() {
        let mut freed = FreedBlocks::new(4096);
        freed.free(0, 1 << 40, 7);
        assert_eq!(freed.pages.len() as u64, MOST_PAGES);
        freed.free(u64::MAX - 10, u64::MAX, 7);
        freed.free(5, 5, 7);
        assert_eq!(freed.on_page(0).map(<[Piece]>::len), Some(1));
    }
}
