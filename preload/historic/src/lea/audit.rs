//! What the heap shows of itself: the walk and the check.

use heaptoll_runtime::{ALIGNMENT, Damage, Piece, WORD};

use crate::lea::{Block, Lea, SMALLEST, TAGS};

impl Lea {
    fn is_empty(&self) -> bool {
        self.region.start() == self.region.end()
    }

    /// The first block's header; the sentinel follows the last block.
    fn first(&self) -> Block {
        Block::at(self.region.start() + WORD)
    }

    fn sentinel(&self) -> Block {
        Block::at(self.region.end() - WORD)
    }

    /// Shows the pieces; takes all marks away. Ends on a returned list that comes round, after a double free.
    pub(crate) fn show(&self, visit: &mut dyn FnMut(Piece)) {
        if self.is_empty() {
            return;
        }
        // SAFETY: the heap is sound: the list's blocks are blocks, and blocks follow each other up to the sentinel.
        unsafe {
            self.returned().take_while(|block| !block.is_marked()).for_each(|block| block.mark(false));
            visit(Piece::metadata(self.region.start(), WORD));
            let (mut block, sentinel) = (self.first(), self.sentinel());
            while block != sentinel {
                let (freed, _) = block.unmark();
                visit(match block.is_live() && !freed {
                    true => Piece::live(block.address(), block.size(), block.user(), TAGS),
                    false => Piece::free(block.address(), block.size(), TAGS),
                });
                block = block.after();
            }
            visit(Piece::metadata(sentinel.address(), WORD));
        }
    }

    pub(crate) fn audit(&self) -> Result<(), Damage> {
        if self.is_empty() {
            return Damage::unless(self.returned.is_none(), 0, "an empty heap has no blocks");
        }
        self.audit_tags()?;
        // SAFETY: tags are sound. The walk takes away what marks were made, whatever was found meanwhile.
        unsafe {
            let lists = self.mark_lists();
            let pieces = self.audit_marks();
            lists.and(pieces)
        }
    }

    /// That blocks follow each other from the first to the sentinel.
    fn audit_tags(&self) -> Result<(), Damage> {
        let (mut block, sentinel) = (self.first(), self.sentinel());
        while block != sentinel {
            let at = block.address();
            Damage::unless(at < sentinel.address(), at, "blocks end at the sentinel")?;
            // SAFETY: the header lies before the sentinel, and `is_sound` is checked before the size is used.
            unsafe {
                Damage::unless(block.is_sound(self.region.end()), at, "header and footer agree")?;
                let size = block.size();
                let fits = size >= SMALLEST && size.is_multiple_of(ALIGNMENT);
                Damage::unless(fits, at, "a block holds its tags and links, and keeps the alignment")?;
                block = block.after();
            }
        }
        Ok(())
    }

    /// That all lists are as they should be; marks their blocks.
    ///
    /// # Safety
    /// Tags are sound. Marks are taken away afterwards.
    unsafe fn mark_lists(&self) -> Result<(), Damage> {
        // SAFETY: tags are sound, as this function requires.
        unsafe { self.bins.check(self.region.start(), self.region.end())? };
        for (first, live) in [(self.returned, true), (self.remainder, false)] {
            let mut next = first;
            // Ends, since no block is passed twice.
            while !next.is_none() {
                let (block, at) = (next, next.address());
                let inside = self.region.contains(at) && at % ALIGNMENT == WORD;
                Damage::unless(inside, at, "what is in a list is in the heap")?;
                // SAFETY: the header's word is in the heap.
                unsafe {
                    Damage::unless(!block.is_marked(), at, "a block is in one list, once")?;
                    Damage::unless(block.is_sound(self.region.end()), at, "what is in a list is a block")?;
                    let right = block.is_live() == live;
                    Damage::unless(right, at, "what is returned is live by its tags, the remainder is not")?;
                    block.mark(!live);
                    next = if live { block.next() } else { Block::NONE };
                }
            }
        }
        Ok(())
    }

    /// That what is free is in a list, and no two clean blocks are neighbours; takes all marks away.
    ///
    /// # Safety
    /// Tags are sound, but for marks.
    unsafe fn audit_marks(&self) -> Result<(), Damage> {
        let mut found = Ok(());
        let (mut block, mut clean_before) = (self.first(), false);
        while block != self.sentinel() {
            let at = block.address();
            // SAFETY: tags are sound, but for marks, as this function requires.
            unsafe {
                let (marked, clean) = block.unmark();
                let known = Damage::unless(marked || block.is_live(), at, "every free block is in a list");
                let apart = Damage::unless(!clean || !clean_before, at, "clean neighbours are coalesced");
                found = found.and(known).and(apart);
                clean_before = clean;
                block = block.after();
            }
        }
        found
    }
}
