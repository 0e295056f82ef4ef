//! A map from addresses to numbers by granules of 16 bytes: three levels, of which a large object fills upper ones.

use super::index::{Index, NONE};

/// Bytes that lead to the same number.
pub(super) const GRANULE: u64 = 16;
const GRANULE_BITS: u32 = GRANULE.trailing_zeros();
/// A page is 4 KiB.
const PAGE_BITS: u32 = 12;
const GRANULES: usize = 1 << (PAGE_BITS - GRANULE_BITS);
/// A region is 64 MiB.
const REGION_BITS: u32 = 26;
const PAGES: usize = 1 << (REGION_BITS - PAGE_BITS);
const REGIONS: usize = 1 << (48 - REGION_BITS);
/// Flag of an entry: it is the number of an object that fills it, not of a page or region.
const WHOLE: u32 = 1 << 31;
/// Most empty pages kept for reuse.
const SPARE: usize = 64;

/// An entry of the map that a range of addresses covers.
pub(super) enum MapEntry<'a> {
    /// A page or region that the range fills.
    Whole(&'a mut Index),
    /// A granule, and whether the range begins in it.
    Granule(&'a mut Index, bool),
}

#[derive(Debug)]
struct Page {
    entries: [Index; GRANULES],
    used: u32,
}

#[derive(Debug)]
struct Region {
    entries: Box<[u32]>,
    used: u32,
}

/// The map. Empty entries are 0.
#[derive(Debug)]
pub(super) struct Granules {
    /// Zeroed by the kernel on demand: parts without a heap take no memory.
    top: Vec<u32>,
    regions: Vec<Option<Region>>,
    free_regions: Vec<u32>,
    pages: Vec<Option<Box<Page>>>,
    free_pages: Vec<u32>,
    #[expect(clippy::vec_box)] // They return to `pages` in their boxes.
    spare: Vec<Box<Page>>,
}

impl Granules {
    pub(super) fn new() -> Granules {
        Granules {
            top: vec![0; REGIONS],
            regions: vec![None],
            free_regions: Vec::new(),
            pages: vec![None],
            free_pages: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The number to which an address leads.
    #[inline(always)]
    pub(super) fn get(&self, address: u64) -> Index {
        let Some(&entry) = self.top.get((address >> REGION_BITS) as usize) else { return NONE };
        if entry & WHOLE != 0 || entry == 0 {
            return entry & !WHOLE;
        }
        let Some(region) = &self.regions[entry as usize] else { return NONE };
        let entry = region.entries[(address >> PAGE_BITS) as usize % PAGES];
        if entry & WHOLE != 0 || entry == 0 {
            return entry & !WHOLE;
        }
        let Some(page) = &self.pages[entry as usize] else { return NONE };
        page.entries[(address >> GRANULE_BITS) as usize % GRANULES]
    }

    /// Calls `change` for every entry of a range, which is not empty and below 2^48.
    pub(super) fn each_mut(&mut self, start: u64, end: u64, mut change: impl FnMut(MapEntry<'_>)) {
        for (number, from, to) in parts(start, end, REGION_BITS) {
            let entry = self.top[number as usize];
            if to - from == 1 << REGION_BITS {
                self.top[number as usize] = whole(entry, &mut change);
                continue;
            }
            let region = if entry == 0 { self.new_region() } else { entry };
            self.top[number as usize] = region;
            for (number, from, to) in parts(from, to, PAGE_BITS) {
                self.in_page(region, number as usize % PAGES, (from, to), start, &mut change);
            }
            if self.regions[region as usize].as_ref().is_some_and(|region| region.used == 0) {
                self.regions[region as usize] = None;
                self.free_regions.push(region);
                self.top[number as usize] = 0;
            }
        }
    }

    #[inline(always)]
    fn in_page(
        &mut self,
        region: u32,
        at: usize,
        (from, to): (u64, u64),
        start: u64,
        change: &mut impl FnMut(MapEntry<'_>),
    ) {
        let Some(before) = self.regions[region as usize].as_ref().map(|region| region.entries[at]) else {
            return;
        };
        let after = if to - from == 1 << PAGE_BITS {
            whole(before, change)
        } else {
            let number = if before == 0 { self.new_page() } else { before };
            let page = self.pages[number as usize].as_mut();
            if page.map_or(0, |page| page.change(from, to, start, change)) > 0 {
                number
            } else {
                self.drop_page(number);
                0
            }
        };
        if let Some(region) = &mut self.regions[region as usize] {
            region.entries[at] = after;
            region.used = region.used + u32::from(after != 0) - u32::from(before != 0);
        }
    }

    fn new_region(&mut self) -> u32 {
        let region = Some(Region { entries: vec![0; PAGES].into_boxed_slice(), used: 0 });
        match self.free_regions.pop() {
            Some(number) => {
                self.regions[number as usize] = region;
                number
            }
            None => {
                self.regions.push(region);
                (self.regions.len() - 1) as u32
            }
        }
    }

    fn new_page(&mut self) -> u32 {
        let page = self.spare.pop().unwrap_or_else(|| Box::new(Page { entries: [NONE; GRANULES], used: 0 }));
        match self.free_pages.pop() {
            Some(number) => {
                self.pages[number as usize] = Some(page);
                number
            }
            None => {
                self.pages.push(Some(page));
                (self.pages.len() - 1) as u32
            }
        }
    }

    fn drop_page(&mut self, number: u32) {
        let page = self.pages[number as usize].take();
        self.free_pages.push(number);
        if self.spare.len() < SPARE {
            self.spare.extend(page);
        }
    }

    /// Calls `visit` for the entries of a range, with the same conditions, until it returns a result.
    pub(super) fn find(
        &self,
        start: u64,
        end: u64,
        mut visit: impl FnMut(Index) -> Option<Index>,
    ) -> Option<Index> {
        for (number, from, to) in parts(start, end, REGION_BITS) {
            let entry = self.top[number as usize];
            if entry & WHOLE != 0 {
                return Some(entry & !WHOLE);
            }
            let Some(region) = &self.regions[entry as usize] else { continue };
            for (number, from, to) in parts(from, to, PAGE_BITS) {
                let entry = region.entries[number as usize % PAGES];
                if entry & WHOLE != 0 {
                    return Some(entry & !WHOLE);
                }
                let Some(page) = &self.pages[entry as usize] else { continue };
                let (first, last) = (granule_index(from), granule_index(to - 1));
                let found = page.entries[first..=last].iter().find_map(|index| visit(*index));
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// Memory, bytes, without the top level, of which only touched pages are resident.
    pub(super) fn bytes(&self) -> usize {
        let regions = self.regions.iter().flatten().count();
        let pages = self.pages.iter().flatten().count() + self.spare.len();
        regions * (PAGES * 4 + size_of::<Region>()) + pages * (size_of::<Page>() + 8)
    }

    /// All entries that are set: from, to, the number.
    pub(super) fn entries(&self) -> Vec<(u64, u64, Index)> {
        let mut all = Vec::new();
        let mut add = |at: u64, bits: u32, index: u32| all.push((at, at + (1 << bits), index & !WHOLE));
        // Compared as memory: nearly all of it is empty.
        const EMPTY: [u32; 4096] = [0; 4096];
        let full = self.top.chunks(EMPTY.len()).enumerate().filter(|(_, chunk)| *chunk != EMPTY);
        let tops = full.flat_map(|(chunk, entries)| {
            entries.iter().enumerate().map(move |(number, entry)| (chunk * EMPTY.len() + number, *entry))
        });
        for (number, entry) in tops.filter(|(_, entry)| *entry != 0) {
            let at = (number as u64) << REGION_BITS;
            let Some(region) = self.regions.get(entry as usize).and_then(Option::as_ref) else {
                add(at, REGION_BITS, entry);
                continue;
            };
            for (number, &entry) in region.entries.iter().enumerate().filter(|(_, entry)| **entry != 0) {
                let at = at + ((number as u64) << PAGE_BITS);
                let Some(page) = self.pages.get(entry as usize).and_then(Option::as_ref) else {
                    add(at, PAGE_BITS, entry);
                    continue;
                };
                for (number, &index) in page.entries.iter().enumerate().filter(|(_, index)| **index != 0) {
                    add(at + number as u64 * GRANULE, GRANULE_BITS, index);
                }
            }
        }
        all
    }

    /// Checks the counts of used entries.
    pub(super) fn check(&self) -> Result<(), String> {
        let used = |entries: &[u32]| entries.iter().filter(|entry| **entry != 0).count() as u32;
        for (number, page) in self.pages.iter().enumerate() {
            if page.as_ref().is_some_and(|page| page.used != used(&page.entries) || page.used == 0) {
                return Err(format!("page {number} is counted wrong"));
            }
        }
        for (number, region) in self.regions.iter().enumerate() {
            if region.as_ref().is_some_and(|region| region.used != used(&region.entries) || region.used == 0)
            {
                return Err(format!("region {number} is counted wrong"));
            }
        }
        if self.spare.iter().any(|page| page.used != 0 || used(&page.entries) != 0) {
            return Err("a spare page is not empty".into());
        }
        Ok(())
    }
}

impl Page {
    /// Changes the granules of a range; returns how many are used afterwards.
    #[inline(always)]
    fn change(&mut self, from: u64, to: u64, start: u64, change: &mut impl FnMut(MapEntry<'_>)) -> u32 {
        let (first, last) = (granule_index(from), granule_index(to - 1));
        let mut begins = from == start;
        for entry in &mut self.entries[first..=last] {
            let before = *entry;
            change(MapEntry::Granule(entry, std::mem::take(&mut begins)));
            self.used = self.used + u32::from(*entry != NONE) - u32::from(before != NONE);
        }
        self.used
    }
}

#[inline(always)]
fn granule_index(address: u64) -> usize {
    (address >> GRANULE_BITS) as usize % GRANULES
}

/// The new value of an entry that one object fills.
#[inline(always)]
fn whole(entry: u32, change: &mut impl FnMut(MapEntry<'_>)) -> u32 {
    let mut index = entry & !WHOLE;
    change(MapEntry::Whole(&mut index));
    if index == NONE { 0 } else { index | WHOLE }
}

/// A range split into aligned parts of 2^`bits` bytes: number, from, to.
#[inline(always)]
fn parts(start: u64, end: u64, bits: u32) -> impl Iterator<Item = (u64, u64, u64)> {
    (start >> bits..=(end - 1) >> bits).map(move |number| {
        let from = number << bits;
        (number, start.max(from), end.min(from + (1 << bits)))
    })
}

/// The number of entries that a range needs.
pub(super) fn entry_count(start: u64, end: u64) -> u64 {
    parts(start, end, REGION_BITS)
        .map(|(_, from, to)| match to - from == 1 << REGION_BITS {
            true => 1,
            false => parts(from, to, PAGE_BITS)
                .map(|(_, from, to)| match to - from == 1 << PAGE_BITS {
                    true => 1,
                    false => (granule_index(to - 1) - granule_index(from) + 1) as u64,
                })
                .sum(),
        })
        .sum()
}
