//! Live blocks laid over the pages of the heap, page by page: what pins and picture are computed from.

use crate::block::Block;

/// A page with a byte of a live block or of its header.
#[derive(Debug, Default)]
pub struct LaidPage {
    /// Its address.
    pub start: u64,
    /// Bytes of live blocks and of their headers.
    pub taken: u64,
    /// Where these are, `start..end`, in order and disjoint.
    pub ranges: Vec<(u64, u64)>,
    /// Blocks on it: their indices.
    pub blocks: Vec<usize>,
    /// Bytes that each of them takes of it.
    pub block_bytes: Vec<u64>,
    /// Sites of these, each once.
    pub sites: Vec<u32>,
}

/// Receives the pages in order of address, each once.
pub trait PageVisitor {
    /// A page that one block or several take a part of.
    fn page(&mut self, page: &LaidPage);

    /// Pages from `start` to before `end` that the block of this index fills.
    fn filled(&mut self, start: u64, end: u64, index: usize);
}

/// Visits the pages of `blocks`, which are in order of address. Before each block, `header` bytes are the manager's.
/// Bytes of two blocks are the first one's.
pub fn lay(blocks: &[Block], header: u64, page_size: u64, visitor: &mut impl PageVisitor) {
    let mut pass = Pass { blocks, page_size, page: LaidPage::default(), visitor };
    // Up to here, every byte has an owner.
    let mut owned = 0;
    for (index, block) in blocks.iter().enumerate() {
        pass.lay(index, block.address.saturating_sub(header).max(owned), block.end());
        owned = owned.max(block.end());
    }
    pass.end_page();
}

struct Pass<'a, V> {
    blocks: &'a [Block],
    page_size: u64,
    page: LaidPage,
    visitor: &'a mut V,
}

impl<V: PageVisitor> Pass<'_, V> {
    /// A block takes the bytes from `start` to before `end`.
    fn lay(&mut self, index: usize, start: u64, end: u64) {
        let mut from = start;
        while from < end {
            let page = from / self.page_size * self.page_size;
            if page != self.page.start || self.page.blocks.is_empty() {
                self.end_page();
                self.page.start = page;
            }
            let to = end.min(page.saturating_add(self.page_size));
            self.take(index, from, to);
            // The pages between the first and the last are the block's alone, without a free byte.
            let last = (end - 1) / self.page_size * self.page_size;
            from = if to < last {
                self.end_page();
                self.visitor.filled(to, last, index);
                last
            } else {
                to
            };
        }
    }

    /// A block takes these bytes of the present page.
    fn take(&mut self, index: usize, from: u64, to: u64) {
        let page = &mut self.page;
        page.taken += to - from;
        page.blocks.push(index);
        page.block_bytes.push(to - from);
        match page.ranges.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => page.ranges.push((from, to)),
        }
        let site = self.blocks[index].site;
        if !page.sites.contains(&site) {
            page.sites.push(site);
        }
    }

    fn end_page(&mut self) {
        if self.page.blocks.is_empty() {
            return;
        }
        self.visitor.page(&self.page);
        let page = &mut self.page;
        page.taken = 0;
        page.ranges.clear();
        page.blocks.clear();
        page.block_bytes.clear();
        page.sites.clear();
    }
}
