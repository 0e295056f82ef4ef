//! The census: a walk over the heap added up, by kind and by range of sizes.

use heaptoll_assertions::{assert_internal, assert_sound};

use crate::{Heap, Piece, PieceKind};

/// One range of sizes: the usable sizes above 2^(k-1) and up to 2^k bytes, at index k.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Range {
    /// The largest block in it, bytes; for managers with one class a range, the class's size.
    pub largest: usize,
    /// Blocks the program holds.
    pub live_blocks: u64,
    /// Bytes in them, as handed out.
    pub live_bytes: u64,
    /// Blocks ready to be handed out.
    pub free_blocks: u64,
    /// Bytes in them.
    pub free_bytes: u64,
}

/// A snapshot of the heap, all in bytes. `live + free + metadata + unused == mapped`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Address space of the heap.
    pub mapped: u64,
    /// In blocks the program holds, as handed out.
    pub live: u64,
    /// In blocks ready to be handed out.
    pub free: u64,
    /// Headers, tags and tables.
    pub metadata: u64,
    /// Not carved into blocks yet.
    pub unused: u64,
    /// By size.
    pub ranges: [Range; 64],
}

impl Tally {
    fn add(&mut self, piece: Piece) {
        assert_internal!(piece.overhead <= piece.bytes, "a piece's overhead is a part of it");
        assert_internal!(
            (piece.kind == PieceKind::Live) == (piece.block != 0),
            "the program holds an address of live blocks, and of no other piece"
        );
        assert_internal!(
            piece.block == 0 || (piece.address..piece.address + piece.bytes).contains(&piece.block),
            "a block's address lies in its piece"
        );
        let bytes = (piece.bytes - piece.overhead) as u64;
        self.metadata += piece.overhead as u64;
        let range = &mut self.ranges[bytes.next_power_of_two().trailing_zeros() as usize & 63];
        let (blocks, sum, total) = match piece.kind {
            PieceKind::Live => (&mut range.live_blocks, &mut range.live_bytes, &mut self.live),
            PieceKind::Free => (&mut range.free_blocks, &mut range.free_bytes, &mut self.free),
            PieceKind::Metadata => return,
            PieceKind::Unused => {
                self.unused += bytes;
                return;
            }
        };
        *blocks += 1;
        *sum += bytes;
        *total += bytes;
        range.largest = range.largest.max(bytes as usize);
    }

    /// The ranges that have blocks, the smallest first.
    pub fn filled(&self) -> impl Iterator<Item = &Range> {
        self.ranges.iter().filter(|range| range.live_blocks + range.free_blocks > 0)
    }
}

/// Walks a sound heap and adds it up.
pub fn tally<H: Heap>(heap: &H) -> Tally {
    let region = heap.region();
    let mapped = region.mapped_bytes() as u64;
    let beyond = mapped - (region.end() - region.start()) as u64;
    let ranges = [Range::default(); 64];
    let mut tally = Tally { mapped, live: 0, free: 0, metadata: 0, unused: beyond, ranges };
    assert_sound!(heap.check());
    let mut end = region.start();
    heap.walk(&mut |piece| {
        assert_internal!(piece.address == end, "the pieces of a heap tile its region");
        end = piece.address + piece.bytes;
        tally.add(piece);
    });
    assert_internal!(end == region.end(), "the pieces of a heap tile its region");
    assert_internal!(
        tally.live + tally.free + tally.metadata + tally.unused == tally.mapped,
        "the census accounts for all mapped bytes"
    );
    tally
}
