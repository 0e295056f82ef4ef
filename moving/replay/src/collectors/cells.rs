//! Cells: memory in which objects stay where they are. Cells of a size class are cut from blocks of pages; an object
//! larger than any has pages of its own. Each cell begins with a word of the collector's, the object follows.
//!
//! Which cells are free is the collector's business; what is counted here is how many of a block are in use, so that
//! pages of a block without any can be given back.

use crate::collectors::damage::Damage;
use crate::collectors::pages::{PAGE_BYTES, Pages};
use crate::error::Error;
use crate::header::WORD;
use heaptoll_wheel::class::{LARGEST, class_for, pages_of_block, size_of_class};

/// In place of a class: a large object's pages.
const LARGE: u8 = u8::MAX;
/// In place of a class: no cell begins here.
const NONE: u8 = LARGE - 1;

/// What the table of pages has of each.
#[derive(Debug, Clone, Copy)]
struct Page {
    /// The first page of its block or object.
    first: u32,
    /// Of the first page: cells in use. Of a large object: 1.
    used: u16,
    class: u8,
}

const FREE: Page = Page { first: 0, used: 0, class: NONE };
/// Bytes of the table a page.
const TABLE_BYTES: usize = size_of::<Page>();

/// Cells that were cut together, or the one of a large object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Its class; none for a large object.
    pub class: Option<usize>,
    /// The first cell.
    pub first: usize,
    /// Bytes of each.
    pub size: usize,
    /// How many.
    pub count: usize,
    /// Pages of it: cells need not fill the last.
    pages: usize,
}

impl Block {
    /// Addresses of its cells.
    pub fn cells(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |number| self.first + number * self.size)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Cells {
    pages: Pages,
    map: Vec<Page>,
    /// Pages of the collector's own.
    own: usize,
    /// Bytes of the collector's tables that grow with the heap's contents, which are a part of the heap.
    pub table_bytes: usize,
}

impl Cells {
    /// Those of an empty heap.
    ///
    /// # Errors
    /// The system has no memory for it.
    pub fn new(heap_pages: usize) -> Result<Cells, Error> {
        let pages = Pages::reserve(heap_pages, TABLE_BYTES)?;
        let map = vec![FREE; pages.reserved()];
        Ok(Cells { pages, map, own: 0, table_bytes: 0 })
    }

    /// A page of the collector's own, whatever the limit: its address. None when addresses are used up.
    pub fn take_own(&mut self) -> Option<usize> {
        let page = self.pages.take(1)?;
        self.own += 1;
        Some(self.pages.address(page))
    }

    /// Bytes of a cell for an object of so many.
    #[inline(always)]
    pub fn bytes_for(object_bytes: usize) -> usize {
        object_bytes + WORD
    }

    /// Address of the reserved memory, to which links may be relative.
    pub fn base(&self) -> usize {
        self.pages.base()
    }

    /// Pages in use, tables included.
    pub fn used_pages(&self) -> usize {
        self.pages.used() + self.table_bytes.div_ceil(PAGE_BYTES)
    }

    /// Pages that the heap has.
    pub fn limit(&self) -> usize {
        self.pages.limit()
    }

    /// Pages that can still be taken.
    pub fn left(&self) -> usize {
        self.limit().saturating_sub(self.used_pages())
    }

    /// Cuts a block of a class; none when the heap is full.
    pub fn cut(&mut self, class: usize) -> Option<Block> {
        let first = self.take(pages_of_block(class), class as u8)?;
        Some(self.block(first))
    }

    /// Pages for a cell of so many bytes, more than [`LARGEST`], which is in use; none when the heap is full.
    pub fn take_large(&mut self, bytes: usize) -> Option<Block> {
        let first = self.take(bytes.div_ceil(PAGE_BYTES), LARGE)?;
        self.map[first].used = 1;
        Some(self.block(first))
    }

    fn take(&mut self, count: usize, class: u8) -> Option<usize> {
        if self.left() < count {
            return None;
        }
        let first = self.pages.take(count)?;
        self.map[first..first + count].fill(Page { first: first as u32, used: 0, class });
        Some(first)
    }

    fn block(&self, first: usize) -> Block {
        let address = self.pages.address(first);
        match self.map[first].class {
            LARGE => {
                let own = |page: &&Page| page.class == LARGE && page.first as usize == first;
                let pages = self.map[first..].iter().take_while(own).count();
                Block { class: None, first: address, size: pages * PAGE_BYTES, count: 1, pages }
            }
            class => {
                let (size, pages) = (size_of_class(class.into()), pages_of_block(class.into()));
                let count = pages * PAGE_BYTES / size;
                Block { class: Some(class.into()), first: address, size, count, pages }
            }
        }
    }

    /// The class of a cell; none of a large one.
    #[inline(always)]
    pub fn class_of(&self, cell: usize) -> Option<usize> {
        let class = self.map[self.pages.number(cell)].class;
        (class != LARGE).then_some(class.into())
    }

    /// Bytes of a cell.
    #[inline(always)]
    pub fn size_of(&self, cell: usize) -> usize {
        match self.class_of(cell) {
            Some(class) => size_of_class(class),
            None => self.block(self.pages.number(cell)).size,
        }
    }

    fn used(&mut self, cell: usize) -> &mut u16 {
        let first = self.map[self.pages.number(cell)].first as usize;
        &mut self.map[first].used
    }

    /// A cell of a class comes into use.
    #[inline(always)]
    pub fn use_cell(&mut self, cell: usize) {
        *self.used(cell) += 1;
    }

    /// All cells count as being in use: a collector that does not know counts those that are free.
    pub fn count_all(&mut self) {
        let blocks: Vec<Block> = self.blocks().collect();
        for block in blocks {
            *self.used(block.first) = block.count as u16;
        }
    }

    /// A cell is free. One of a large object's is given back to the heap.
    pub fn free_cell(&mut self, cell: usize) {
        *self.used(cell) -= 1;
        if self.class_of(cell).is_none() {
            self.give_back(self.block(self.pages.number(cell)));
        }
    }

    /// Whether no cell of a cell's block is in use.
    #[inline(always)]
    pub fn is_in_free_block(&self, cell: usize) -> bool {
        self.map[self.map[self.pages.number(cell)].first as usize].used == 0
    }

    /// Gives the pages back of every block of which no cell is in use; the caller has let go of their cells.
    pub fn give_back_free_blocks(&mut self) {
        for first in 0..self.map.len() {
            let page = self.map[first];
            if page.class != NONE && page.first as usize == first && page.used == 0 {
                self.give_back(self.block(first));
            }
        }
    }

    fn give_back(&mut self, block: Block) {
        let first = self.pages.number(block.first);
        self.map[first..first + block.pages].fill(FREE);
        self.pages.release(first, block.pages);
    }

    /// All blocks.
    pub fn blocks(&self) -> impl Iterator<Item = Block> {
        let firsts = self
            .map
            .iter()
            .enumerate()
            .filter(|(number, page)| page.class != NONE && page.first as usize == *number);
        firsts.map(|(number, _)| self.block(number))
    }

    /// Whether a cell begins at an address.
    pub fn is_cell(&self, address: usize) -> bool {
        if !self.pages.contains(address) || self.map[self.pages.number(address)].class == NONE {
            return false;
        }
        let block = self.block(self.map[self.pages.number(address)].first as usize);
        (address - block.first).is_multiple_of(block.size)
            && (address - block.first) / block.size < block.count
    }

    /// Proves that the counts of cells in use are right.
    ///
    /// # Errors
    /// One is not, or pages are miscounted.
    pub fn check(&self, is_used: impl Fn(usize) -> bool) -> Result<(), Damage> {
        for block in self.blocks() {
            let used = block.cells().filter(|&cell| is_used(cell)).count();
            let counted = usize::from(self.map[self.pages.number(block.first)].used);
            let invariant = "the cells in use of a block are counted";
            Damage::unless_equal(
                invariant,
                ("cells of a block that are in use", used),
                ("counted", counted),
            )?;
        }
        self.check_pages()
    }

    /// Proves that each page in use is one of a block or of the collector's own.
    ///
    /// # Errors
    /// They are not as many.
    pub fn check_pages(&self) -> Result<(), Damage> {
        let in_blocks: usize = self.blocks().map(|block| block.pages).sum();
        let invariant = "every page in use belongs to a block";
        let used = self.pages.used() - self.own;
        Damage::unless_equal(invariant, ("pages in use", used), ("in blocks", in_blocks))
    }
}

/// The class of an object's cell of so many bytes; none for a large one.
#[inline(always)]
pub fn class_of_bytes(bytes: usize) -> Option<usize> {
    (bytes <= LARGEST).then(|| class_for(bytes))
}

#[cfg(test)]
mod tests {
    use heaptoll_wheel::class::CLASSES;

    use super::*;

    #[test]
    fn blocks_are_cut_into_cells_and_given_back_when_none_is_in_use() {
        let mut cells = Cells::new(64).unwrap();
        let block = cells.cut(1).unwrap();
        assert_eq!((block.class, block.size, block.count), (Some(1), 48, 85));
        let cell = block.cells().nth(2).unwrap();
        cells.use_cell(cell);
        assert_eq!((cells.is_in_free_block(cell), cells.class_of(cell)), (false, Some(1)));
        assert!(cells.is_cell(cell) && !cells.is_cell(cell + 16));
        assert_eq!(cells.check(|other| other == cell), Ok(()));
        cells.give_back_free_blocks();
        assert_eq!(cells.used_pages(), 1);
        cells.free_cell(cell);
        assert_eq!(cells.check(|_| true).map_err(|damage| damage.invariant.len() > 9), Err(true));
        cells.give_back_free_blocks();
        assert_eq!((cells.used_pages(), cells.is_cell(cell)), (0, false));
    }

    #[test]
    fn blocks_of_every_class_and_size_give_back_as_many_pages_as_they_took() {
        let mut cells = Cells::new(256).unwrap();
        let all = || (0..CLASSES).map(Some).chain([None]);
        for round in 0..3 {
            for class in all() {
                let block = match class {
                    Some(class) => cells.cut(class).unwrap(),
                    None => cells.take_large(LARGEST + 1 + 4096 * round).unwrap(),
                };
                let cell = block.cells().last().unwrap();
                if class.is_some() {
                    cells.use_cell(cell);
                }
                assert_eq!(cells.check(|other| other == cell), Ok(()), "{class:?}");
                cells.free_cell(cell);
                cells.give_back_free_blocks();
                assert_eq!((cells.check(|_| false), cells.used_pages()), (Ok(()), 0), "{class:?}");
                assert!(cells.map.iter().all(|page| page.class == NONE), "{class:?}");
            }
        }
    }

    #[test]
    fn a_page_that_no_block_has_is_stated_with_both_counts() {
        let mut cells = Cells::new(16).unwrap();
        cells.cut(0).unwrap();
        cells.pages.take(1).unwrap();
        let damage = cells.check_pages().unwrap_err();
        assert_eq!(damage.to_string(), "pages in use: 2, in blocks: 1");
    }

    #[test]
    fn large_objects_have_pages_of_their_own_and_tables_are_a_part_of_the_heap() {
        let mut cells = Cells::new(8).unwrap();
        let large = cells.take_large(3 * 4096 + 1).unwrap();
        let next = cells.take_large(9000).unwrap();
        assert_eq!((large.size, next.size, cells.left()), (4 * 4096, 3 * 4096, 0));
        assert_eq!(cells.take_large(9000), None);
        cells.free_cell(large.first);
        assert_eq!((cells.left(), cells.used_pages()), (4, 3));
        cells.table_bytes = 4097;
        assert_eq!((cells.left(), cells.used_pages()), (2, 5));
        assert_eq!(cells.cut(40), None);
        assert!(cells.cut(0).is_some());
    }
}
