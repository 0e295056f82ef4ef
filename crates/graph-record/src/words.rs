//! Words of memory that hold edges, by address. Nearly every store is to a word that holds none, so that is found out in
//! a few loads.

use rustc_hash::FxHashMap;

/// Words of a page.
const PAGE: usize = 512;
/// Bytes of a page, as a power of two.
const PAGE_LOG2: u32 = 12;
/// Pages that are found without the map.
const RECENT: usize = 1024;
/// No page.
const NONE: u32 = u32::MAX;

/// What a word holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The pointer.
    pub value: u64,
    /// Number of the object that it led to when it was stored.
    pub to: u64,
}

#[derive(Debug)]
struct Page {
    bits: [u64; PAGE / 64],
    cells: Box<[Cell; PAGE]>,
}

/// All words that hold edges.
#[derive(Debug)]
pub(crate) struct Words {
    pages: Vec<Page>,
    by_number: FxHashMap<u64, u32>,
    /// Number of a page and its index, [`NONE`] if there is no such page.
    recent: Box<[(u64, u32); RECENT]>,
    alive: u64,
}

impl Words {
    pub fn new() -> Words {
        Words {
            pages: Vec::new(),
            by_number: FxHashMap::default(),
            recent: Box::new([(u64::MAX, NONE); RECENT]),
            alive: 0,
        }
    }

    #[inline]
    fn page(&mut self, address: u64) -> Option<usize> {
        let number = address >> PAGE_LOG2;
        let slot = &mut self.recent[number as usize % RECENT];
        if slot.0 != number {
            *slot = (number, self.by_number.get(&number).copied().unwrap_or(NONE));
        }
        (slot.1 != NONE).then_some(slot.1 as usize)
    }

    /// What the word at this address holds.
    #[inline]
    pub fn get(&mut self, address: u64) -> Option<Cell> {
        let page = self.page(address)?;
        let at = place(address);
        let page = &self.pages[page];
        (page.bits[at / 64] >> (at % 64) & 1 != 0).then(|| page.cells[at])
    }

    /// Sets it; returns what it held.
    pub fn set(&mut self, address: u64, cell: Cell) -> Option<Cell> {
        let page = self.page(address).unwrap_or_else(|| self.add(address));
        let at = place(address);
        let page = &mut self.pages[page];
        let bit = 1 << (at % 64);
        let held = page.bits[at / 64] & bit != 0;
        page.bits[at / 64] |= bit;
        self.alive += u64::from(!held);
        let old = std::mem::replace(&mut page.cells[at], cell);
        held.then_some(old)
    }

    fn add(&mut self, address: u64) -> usize {
        let (number, index) = (address >> PAGE_LOG2, self.pages.len());
        self.pages.push(Page { bits: [0; PAGE / 64], cells: Box::new([Cell::default(); PAGE]) });
        self.by_number.insert(number, index as u32);
        self.recent[number as usize % RECENT] = (number, index as u32);
        index
    }

    /// Clears it; returns what it held.
    pub fn clear(&mut self, address: u64) -> Option<Cell> {
        let page = self.page(address)?;
        let at = place(address);
        let page = &mut self.pages[page];
        let bit = 1 << (at % 64);
        if page.bits[at / 64] & bit == 0 {
            return None;
        }
        page.bits[at / 64] &= !bit;
        self.alive -= 1;
        Some(page.cells[at])
    }

    /// The addresses of words that hold an edge and of which a byte lies in a range.
    pub fn within(&mut self, start: u64, end: u64) -> Vec<u64> {
        let mut found = Vec::new();
        let mut page_start = start >> PAGE_LOG2 << PAGE_LOG2;
        while page_start < end {
            if let Some(page) = self.page(page_start) {
                let bits = &self.pages[page].bits;
                for (group, &word) in bits.iter().enumerate().filter(|(_, word)| **word != 0) {
                    let addresses = (0..64)
                        .filter(|bit| word >> bit & 1 != 0)
                        .map(|bit| page_start + 8 * (64 * group as u64 + bit));
                    found.extend(addresses.filter(|&address| address + 8 > start && address < end));
                }
            }
            page_start += 1 << PAGE_LOG2;
        }
        found
    }

    /// Words that hold edges now.
    pub fn alive(&self) -> u64 {
        self.alive
    }
}

fn place(address: u64) -> usize {
    (address >> 3) as usize % PAGE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_was_set_until_they_are_cleared() {
        let mut words = Words::new();
        let cell = |value| Cell { value, to: value / 2 };
        assert_eq!(words.get(0x1000), None);
        assert_eq!(words.set(0x1000, cell(2)), None);
        assert_eq!(words.set(0x1ff8, cell(4)), None);
        assert_eq!(words.set(0x2000, cell(6)), None);
        assert_eq!(words.set(0x1000, cell(8)), Some(cell(2)));
        assert_eq!((words.get(0x1000), words.get(0x1008)), (Some(cell(8)), None));
        assert_eq!(words.alive(), 3);
        assert_eq!(words.within(0x1004, 0x2001), [0x1000, 0x1ff8, 0x2000]);
        assert_eq!(words.within(0x1008, 0x2000), [0x1ff8]);
        assert_eq!(words.clear(0x1ff8), Some(cell(4)));
        assert_eq!(words.clear(0x1ff8), None);
        assert_eq!(words.within(0, 0x3000), [0x1000, 0x2000]);
    }
}
