//! The objects that are live at the reader's position, with their sizes: what makes every sequence of events a legal
//! one. Pages of them come and go, so that the memory follows the live heap and not the numbers a file states.

use std::collections::HashMap;

/// Objects of a page.
const PAGE: usize = 256;
/// Marks an object that is not live.
const NONE: u64 = u64::MAX;
/// Bytes that a page takes, with its entry.
const PAGE_BYTES: u64 = (PAGE * 8 + 64) as u64;

struct Page {
    sizes: [u64; PAGE],
    live: u32,
}

/// The live objects.
#[derive(Default)]
pub(super) struct Live {
    pages: HashMap<u64, Box<Page>>,
    live: u64,
    most: u64,
}

impl Live {
    /// Adds an object that is not live; one that is keeps its size.
    pub(super) fn insert(&mut self, object: u64, size: u64) {
        let (page, at) = place(object);
        let page = self.pages.entry(page).or_insert_with(|| Box::new(Page { sizes: [NONE; PAGE], live: 0 }));
        if page.sizes[at] == NONE {
            page.sizes[at] = size;
            page.live += 1;
            self.live += 1;
            self.most = self.most.max(self.live);
        }
    }

    /// Size of a live object.
    #[inline]
    pub(super) fn size(&self, object: u64) -> Option<u64> {
        let (page, at) = place(object);
        self.pages.get(&page).map(|page| page.sizes[at]).filter(|&size| size != NONE)
    }

    /// Removes an object; returns its size if it was live.
    pub(super) fn remove(&mut self, object: u64) -> Option<u64> {
        let (number, at) = place(object);
        let page = self.pages.get_mut(&number)?;
        let size = std::mem::replace(&mut page.sizes[at], NONE);
        if size == NONE {
            return None;
        }
        page.live -= 1;
        self.live -= 1;
        if page.live == 0 {
            self.pages.remove(&number);
        }
        Some(size)
    }

    /// Live objects.
    pub(super) fn len(&self) -> u64 {
        self.live
    }

    /// Most of them at once so far.
    pub(super) fn most(&self) -> u64 {
        self.most
    }

    /// Memory that it takes, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }
}

fn place(object: u64) -> (u64, usize) {
    (object / PAGE as u64, (object % PAGE as u64) as usize)
}
