//! The heap: consecutive blocks, each preceded by its size.

use core::ptr::NonNull;

use heaptoll_runtime::{ALIGNMENT, Damage, Heap, Misuse, Piece, Region, WORD, round_up};

use crate::blocks::header::{Block, Mark};

/// Sizes fit the header's number, bytes.
const SIZES: usize = 1 << 48;

/// A heap that only hands out.
///
/// ```text
///   start                                         next             end
///   │ own │ size │ block ... │ size │ block ... │ not handed out yet │
///           ≡ 8    ≡ 0 mod 16
/// ```
#[derive(Debug)]
pub struct Bump {
    /// Where the next header goes; 0 in a fresh heap.
    next: usize,
    /// The region's end: in one place with `next` for the fast path.
    end: usize,
    region: Region,
}

impl Bump {
    /// An empty heap.
    pub const fn new() -> Bump {
        Bump { next: 0, end: 0, region: Region::new() }
    }

    /// Bytes of a block for a request, header included.
    #[inline(always)]
    const fn size_for(bytes: usize) -> usize {
        round_up(bytes + WORD, ALIGNMENT)
    }

    /// Makes the next `size` bytes a block.
    ///
    /// # Safety
    /// The region has them.
    #[inline(always)]
    unsafe fn hand_out(&mut self, size: usize) -> NonNull<u8> {
        let block = Block::at(self.next);
        self.next += size;
        // SAFETY: the bytes are the heap's and in no block yet; an address in the region is not null.
        unsafe {
            block.set(Mark::Live, size);
            NonNull::new_unchecked(block.user() as *mut u8)
        }
    }

    /// Makes space for `bytes` from `next` on.
    fn reserve(&mut self, bytes: usize) -> Option<()> {
        let own = if self.next == 0 { WORD } else { 0 };
        let more = (bytes + own).saturating_sub(self.end - self.next);
        if more > 0 {
            self.region.grow_to_page(more)?;
            self.end = self.region.end();
        }
        if self.next == 0 {
            self.next = self.region.start() + WORD;
        }
        Some(())
    }

    #[cold]
    #[inline(never)]
    fn grown(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.reserve(size)?;
        // SAFETY: `reserve` has made space for `size` bytes.
        Some(unsafe { self.hand_out(size) })
    }

    /// A block's size, by its address; what its header shows to be wrong otherwise.
    ///
    /// # Safety
    /// The word in front of the address is readable.
    unsafe fn size(&self, user: NonNull<u8>) -> Result<usize, Misuse> {
        let block = Block::of_user(user.as_ptr() as usize);
        // SAFETY: the word in front of the address is readable, as this function requires.
        let size = unsafe { block.number(Mark::Live) };
        match self.region.contains(block.address()) {
            false => Err(Misuse::Foreign),
            true if size > self.next.saturating_sub(block.address()) => Err(Misuse::Damaged),
            true => Ok(size),
        }
    }
}

impl Default for Bump {
    fn default() -> Bump {
        Bump::new()
    }
}

impl Heap for Bump {
    const NAME: &'static str = "bump";
    const FREES: bool = false;

    heaptoll_runtime::region_of_heap!(region);

    #[inline(always)]
    fn allocate(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        let size = Self::size_for(bytes);
        if size > self.end - self.next {
            return self.grown(size);
        }
        // SAFETY: the comparison has shown that there is space for `size` bytes.
        Some(unsafe { self.hand_out(size) })
    }

    fn allocate_aligned(&mut self, alignment: usize, bytes: usize) -> Option<NonNull<u8>> {
        // Space for a gap too, wherever the pointer is.
        self.reserve(Self::size_for(bytes).checked_add(alignment)?)?;
        let gap = Block::at(self.next);
        let user = round_up(gap.user(), alignment);
        let skipped = user - gap.user();
        // SAFETY: `reserve` has made space for gap and block; a gap has at least 16 bytes, as addresses do.
        unsafe {
            if skipped != 0 {
                gap.set(Mark::Free, skipped);
                self.next += skipped;
            }
            Some(self.hand_out(Self::size_for(bytes)))
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, _: NonNull<u8>) -> Result<(), Misuse> {
        Ok(())
    }

    unsafe fn resize(&mut self, user: NonNull<u8>, bytes: usize) -> Result<bool, Misuse> {
        // SAFETY: `block` came from this heap and is live, as `Heap::resize` requires.
        let (block, has) = (Block::of_user(user.as_ptr() as usize), unsafe { self.size(user)? });
        let size = Self::size_for(bytes);
        if size <= has {
            return Ok(true);
        }
        let last = block.address() + has == self.next;
        if !last || self.reserve(size - has).is_none() {
            return Ok(false);
        }
        self.next = block.address() + size;
        // SAFETY: the words are the block's, and what follows is in no block.
        unsafe { block.set(Mark::Live, size) };
        Ok(true)
    }

    unsafe fn usable(&self, user: NonNull<u8>) -> usize {
        // SAFETY: `block` is a live block of this heap, as `Heap::usable` requires.
        unsafe { self.size(user) }.map_or(0, |size| size - WORD)
    }

    fn walk(&self, visit: &mut dyn FnMut(Piece)) {
        let (start, end) = (self.region.start(), self.region.end());
        if self.next == 0 {
            return;
        }
        visit(Piece::metadata(start, WORD));
        let mut block = Block::at(start + WORD);
        while block.address() < self.next {
            // SAFETY: blocks and gaps follow each other up to `next`.
            let (live, gap) = unsafe { (block.number(Mark::Live), block.number(Mark::Free)) };
            let piece = match live < SIZES {
                true => Piece::live(block.address(), live, block.user(), WORD),
                false => Piece::unused(block.address(), gap),
            };
            visit(piece);
            block = Block::at(block.address() + piece.bytes);
        }
        if self.next < end {
            visit(Piece::unused(self.next, end - self.next));
        }
    }

    fn check(&self) -> Result<(), Damage> {
        Damage::unless(self.end == self.region.end(), self.end, "the heap knows its end")?;
        if self.next == 0 {
            return Ok(());
        }
        let mut at = self.region.start() + WORD;
        while at != self.next {
            // SAFETY: `at` lies below `next`, in the region.
            let (live, gap) = unsafe { (Block::at(at).number(Mark::Live), Block::at(at).number(Mark::Free)) };
            let size = live.min(gap);
            Damage::unless(size < SIZES, at, "a header has a mark and a size")?;
            Damage::unless(size.is_multiple_of(ALIGNMENT) && size != 0, at, "sizes keep the alignment")?;
            Damage::unless(size <= self.next - at, at, "blocks end where the next begins")?;
            at += size;
        }
        Damage::unless(self.next <= self.end, self.next, "blocks lie in the region")
    }
}
