//! Finds the parts of the address space that are the heap's.
//!
//! In general: a mapping in which a block has ever been. The kernel merges neighbouring mappings, so memory that the
//! program mapped itself may be in it; where the manager's layout is known (glibc), ranges are cut out of mappings.

use crate::attribution::{HeapRange, Shares};
use crate::block::Block;
use crate::mapping::Mapping;

/// The layout of a manager's heap, where it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Nothing.
    Unknown,
    /// glibc's malloc (malloc/malloc.c, malloc/arena.c): the segment of brk, arenas in windows of 64 MiB that are
    /// aligned to as much, and blocks with a mapping of their own, which end with a page; all others end 8 bytes past a
    /// multiple of 16. Before each block, 8 bytes are its size.
    Glibc,
}

/// Size and alignment of an arena's windows (`HEAP_MAX_SIZE` of a 64-bit glibc).
const WINDOW: u64 = 64 << 20;

impl Layout {
    /// The layout of a manager, by name.
    pub fn of(manager: &str) -> Layout {
        if manager == "glibc" { Layout::Glibc } else { Layout::Unknown }
    }

    /// Bytes before each block that are the manager's.
    pub fn header(self) -> u64 {
        match self {
            Layout::Unknown => 0,
            Layout::Glibc => 8,
        }
    }
}

/// The ranges of the heap, found again in each sample.
#[derive(Debug)]
pub struct HeapRanges {
    layout: Layout,
    page: u64,
    /// Ranges that have been the heap's and were mapped in the last sample, in order and disjoint.
    known: Vec<(u64, u64)>,
    /// Ranges of the parent's heap when the process was forked, while they are mapped.
    inherited: Vec<(u64, u64)>,
}

impl HeapRanges {
    /// No ranges yet but those of the parent's heap, where the process was forked.
    pub fn new(layout: Layout, page: u64, inherited: Vec<(u64, u64)>) -> HeapRanges {
        HeapRanges { layout, page, known: Vec::new(), inherited }
    }

    /// The ranges now, in order and disjoint: of `blocks`, in order of address, of `ever`, ranges in which blocks have
    /// been, and the part in `mappings` of what was found before.
    pub fn find(&mut self, mappings: &[Mapping], blocks: &[Block], ever: &[(u64, u64)]) -> Vec<HeapRange> {
        let mut found = Vec::new();
        self.of_blocks(mappings, blocks, &mut found);
        self.inherited.retain(|&(start, end)| overlapping(mappings, start, end).next().is_some());
        let kept: Vec<(u64, u64)> = match self.layout {
            // A block's own mapping is unmapped with it.
            Layout::Glibc => self.known.iter().copied().filter(|(start, _)| start % WINDOW == 0).collect(),
            Layout::Unknown => self.known.iter().chain(ever).copied().collect(),
        };
        for (start, end) in kept.into_iter().chain(self.inherited.iter().copied()) {
            for (number, mapping) in overlapping(mappings, start, end) {
                if !mapping.accessible && mapping.rss + mapping.swap == 0 {
                    // Reserved address space.
                    continue;
                }
                match self.layout {
                    Layout::Glibc => found.push(cut(mapping, number, start, end)),
                    Layout::Unknown if is_image(mappings, number) => {
                        found.push(cut(mapping, number, start, end));
                    }
                    // A file mapped in place of heap is not heap.
                    Layout::Unknown if mapping.is_private_file() => {}
                    Layout::Unknown => found.push(whole(mapping, number)),
                }
            }
        }
        if self.layout == Layout::Glibc {
            let segments = mappings.iter().enumerate().filter(|(_, mapping)| mapping.name == "[heap]");
            found.extend(segments.map(|(number, mapping)| whole(mapping, number)));
        }
        let heap_ranges = merged(found, self.page);
        self.known = match self.layout {
            // The window, not the mapped part of it: arenas grow.
            Layout::Glibc => {
                let mut windows: Vec<(u64, u64)> = heap_ranges
                    .iter()
                    .filter(|range| mappings[range.mapping].name != "[heap]")
                    .map(|range| window(range.start))
                    .collect();
                windows.retain(|window| self.known.contains(window) || self.is_arena(*window, blocks));
                windows.dedup();
                windows
            }
            Layout::Unknown => heap_ranges.iter().map(|range| (range.start, range.end)).collect(),
        };
        heap_ranges
    }

    /// How many windows of glibc's arenas there were in the last sample, and their resident bytes that no live block has.
    pub fn arenas(&self, heap_ranges: &[HeapRange], shares: &[Shares]) -> (u64, u64) {
        if self.layout != Layout::Glibc {
            return (0, 0);
        }
        let in_arena = |range: &HeapRange| self.known.contains(&window(range.start));
        let free = heap_ranges
            .iter()
            .zip(shares)
            .filter(|(range, _)| in_arena(range))
            .map(|(_, shares)| shares.pinned.resident + shares.idle.resident);
        (self.known.len() as u64, free.sum())
    }

    /// Ranges of live blocks.
    fn of_blocks(&self, mappings: &[Mapping], blocks: &[Block], found: &mut Vec<HeapRange>) {
        let mut number = 0;
        // Up to here, blocks are in the range found last.
        let mut until = 0;
        for block in blocks {
            // A block without bytes has a range all the same.
            let end = block.end().max(block.address.saturating_add(1));
            if end <= until {
                continue;
            }
            while mappings.get(number).is_some_and(|mapping| mapping.end <= block.address) {
                number += 1;
            }
            let mut at = number;
            while let Some(mapping) = mappings.get(at).filter(|mapping| mapping.start < end) {
                let range = self.of_block(mappings, at, block.address, end);
                until = until.max(range.end.min(mapping.end));
                if self.layout == Layout::Glibc && self.is_own_mapping(block) {
                    // After its end there may be a neighbour in the same mapping.
                    until = until.min(end);
                }
                found.push(range);
                at += 1;
            }
        }
    }

    /// The range in one mapping that belongs to a block from `start` to `end`.
    fn of_block(&self, mappings: &[Mapping], number: usize, start: u64, end: u64) -> HeapRange {
        let mapping = &mappings[number];
        let pages = || {
            // A header may begin on the page before.
            let first = start.saturating_sub(2 * self.layout.header()) / self.page * self.page;
            cut(mapping, number, first, end.next_multiple_of(self.page))
        };
        match self.layout {
            Layout::Unknown if is_image(mappings, number) => pages(),
            Layout::Unknown => whole(mapping, number),
            Layout::Glibc if mapping.name == "[heap]" => whole(mapping, number),
            Layout::Glibc if end.is_multiple_of(self.page) || is_image(mappings, number) => pages(),
            Layout::Glibc => {
                let (start, end) = window(start);
                cut(mapping, number, start, end)
            }
        }
    }

    fn is_own_mapping(&self, block: &Block) -> bool {
        block.end().is_multiple_of(self.page)
    }

    /// Whether a block of an arena, not one with a mapping of its own, is in the window.
    fn is_arena(&self, (start, end): (u64, u64), blocks: &[Block]) -> bool {
        let first = blocks.partition_point(|block| block.address < start);
        blocks[first..]
            .iter()
            .take_while(|block| block.address < end)
            .any(|block| !self.is_own_mapping(block))
    }
}

/// The window of an arena that an address is in.
fn window(address: u64) -> (u64, u64) {
    let start = address / WINDOW * WINDOW;
    (start, start.saturating_add(WINDOW))
}

/// Whether the mapping certainly has other owners, so that only what is near blocks may be heap: static data of the
/// program and its libraries, and the stack.
fn is_image(mappings: &[Mapping], number: usize) -> bool {
    let mapping = &mappings[number];
    mapping.is_private_file() || mapping.name == "[stack]" || follows_image(mappings, number)
}

/// Whether a mapping without a name continues where a file's writable data ends: its zeroed data (`.bss`).
pub fn follows_image(mappings: &[Mapping], number: usize) -> bool {
    let mapping = &mappings[number];
    let before = number.checked_sub(1).and_then(|before| mappings.get(before));
    mapping.is_anonymous()
        && mapping.name.is_empty()
        && before.is_some_and(|before| before.end == mapping.start && before.writable)
        && is_loaded(mappings, number - 1)
}

/// Mappings of one program or library, at most: a program may map a file many times.
const LOADED: usize = 64;

/// Whether a private mapping of a file is part of a program or library: its code lies before it, with at most zeroed data in
/// between. Any other is a file that the program reads, and what lies behind it is not zeroed data.
pub fn is_loaded(mappings: &[Mapping], number: usize) -> bool {
    let mapping = &mappings[number];
    let is_part = |before: &&Mapping| before.name == mapping.name || before.is_anonymous();
    let mut parts = mappings[..=number].iter().rev().take(LOADED).take_while(is_part);
    mapping.is_private_file() && parts.any(|part| part.executable && !part.is_anonymous())
}

fn whole(mapping: &Mapping, number: usize) -> HeapRange {
    HeapRange { start: mapping.start, end: mapping.end, mapping: number }
}

fn cut(mapping: &Mapping, number: usize, start: u64, end: u64) -> HeapRange {
    HeapRange { start: start.max(mapping.start), end: end.min(mapping.end), mapping: number }
}

/// Mappings with a byte of a range.
fn overlapping(mappings: &[Mapping], start: u64, end: u64) -> impl Iterator<Item = (usize, &Mapping)> {
    let first = mappings.partition_point(|mapping| mapping.end <= start);
    mappings.iter().enumerate().skip(first).take_while(move |(_, mapping)| mapping.start < end)
}

/// The ranges in order; those of one mapping that touch or overlap are merged.
fn merged(mut found: Vec<HeapRange>, page: u64) -> Vec<HeapRange> {
    found.retain(|range| range.start < range.end);
    found.sort_unstable_by_key(|range| (range.start, range.end));
    let mut heap_ranges: Vec<HeapRange> = Vec::new();
    for mut range in found {
        range.start = range.start / page * page;
        match heap_ranges.last_mut() {
            Some(last) if last.mapping == range.mapping && range.start <= last.end => {
                last.end = last.end.max(range.end);
            }
            _ => heap_ranges.push(range),
        }
    }
    heap_ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line::Amount;

    fn mapping(start: u64, end: u64, name: &str) -> Mapping {
        let inode = u64::from(name.starts_with('/'));
        Mapping {
            start,
            end,
            inode,
            name: name.into(),
            writable: true,
            executable: inode == 1,
            accessible: true,
            ..Mapping::default()
        }
    }

    fn block(address: u64, usable: u64) -> Block {
        Block { address, requested: usable, usable, ..Block::default() }
    }

    fn ranges(heap_ranges: &[HeapRange]) -> Vec<(u64, u64)> {
        heap_ranges.iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn a_mapping_with_a_block_is_heap_also_when_the_block_has_gone() {
        let mappings =
            [mapping(0x1000, 0x9000, ""), mapping(0x9000, 0xa000, ""), mapping(0xb000, 0xc000, "/bin/x")];
        let mut heap_ranges = HeapRanges::new(Layout::Unknown, 0x1000, vec![]);
        assert_eq!(ranges(&heap_ranges.find(&mappings, &[], &[])), []);
        assert_eq!(ranges(&heap_ranges.find(&mappings, &[block(0x2010, 16)], &[])), [(0x1000, 0x9000)]);
        // It grew, and its block is gone.
        let grown = [mapping(0x1000, 0xa000, ""), mapping(0xb000, 0xc000, "/bin/x")];
        assert_eq!(ranges(&heap_ranges.find(&grown, &[], &[])), [(0x1000, 0xa000)]);
        // Unmapped, it is forgotten.
        assert_eq!(ranges(&heap_ranges.find(&mappings[2..], &[], &[])), []);
        assert_eq!(ranges(&heap_ranges.find(&mappings, &[], &[])), []);
        assert_eq!(ranges(&heap_ranges.find(&mappings, &[], &[(0x9800, 0x9900)])), [(0x9000, 0xa000)]);
    }

    #[test]
    fn in_static_data_only_the_pages_with_blocks_are_heap() {
        let mappings = [mapping(0x10000, 0x20000, "/bin/x"), mapping(0x20000, 0x30000, "")];
        let blocks = [block(0x12010, 16), block(0x21ff8, 16), block(0x28000, 0x10)];
        let found = HeapRanges::new(Layout::Unknown, 0x1000, vec![]).find(&mappings, &blocks, &[]);
        assert_eq!(ranges(&found), [(0x12000, 0x13000), (0x21000, 0x23000), (0x28000, 0x29000)]);
    }

    #[test]
    fn a_block_across_mappings_makes_both_heap() {
        let mappings =
            [mapping(0x1000, 0x3000, ""), mapping(0x3000, 0x5000, ""), mapping(0x6000, 0x7000, "")];
        let blocks = [block(0x1010, 16), block(0x2800, 0x1000)];
        let found = HeapRanges::new(Layout::Unknown, 0x1000, vec![]).find(&mappings, &blocks, &[]);
        assert_eq!(ranges(&found), [(0x1000, 0x3000), (0x3000, 0x5000)]);
    }

    #[test]
    fn glibcs_large_blocks_do_not_take_their_neighbours() {
        const BASE: u64 = 0x7f12_3400_0000;
        let mappings = [
            mapping(0x5000_0000, 0x5002_1000, "[heap]"),
            // An arena's window begins here, and the program's own memory lies after it in one mapping.
            mapping(BASE, BASE + WINDOW + 0x10000, ""),
            // A block with a mapping of its own between memory of the program's.
            mapping(BASE + 2 * WINDOW, BASE + 2 * WINDOW + 0x100_0000, ""),
        ];
        let large = BASE + 2 * WINDOW + 0x8010;
        let blocks = [block(BASE + 0x8b0, 24), block(large, 0x40_0000 - 16)];
        let mut heap_ranges = HeapRanges::new(Layout::Glibc, 0x1000, vec![]);
        let found = heap_ranges.find(&mappings, &blocks, &[]);
        let expected =
            [(0x5000_0000, 0x5002_1000), (BASE, BASE + WINDOW), (large - 16, large - 16 + 0x40_0000)];
        assert_eq!(ranges(&found), expected);
        // What is free in the arena, and neither in the main one nor around the large block.
        let share = |resident| Shares {
            pinned: Amount { resident, ..Amount::default() },
            idle: Amount { resident, ..Amount::default() },
            ..Shares::default()
        };
        assert_eq!(heap_ranges.arenas(&found, &[share(1), share(10), share(100)]), (1, 20));
        // All freed: the arena stays, the block's own mapping does not.
        assert_eq!(ranges(&heap_ranges.find(&mappings, &[], &[])), expected[..2]);
    }

    /// Before, a child had its parent's blocks with mappings of their own, and its arenas, as other anonymous memory.
    #[test]
    fn what_a_forked_child_has_of_its_parents_heap_is_heap_until_it_is_unmapped() {
        const BASE: u64 = 0x7f12_3400_0000;
        let mappings =
            [mapping(BASE, BASE + 0x10000, ""), mapping(BASE + WINDOW, BASE + WINDOW + 0x9000, "")];
        let blocks = [block(BASE + 0x8b0, 24), block(BASE + WINDOW + 0x1010, 0x4000 - 16)];
        for (layout, own) in [
            (Layout::Glibc, (BASE + WINDOW + 0x1000, BASE + WINDOW + 0x5000)),
            (Layout::Unknown, (BASE + WINDOW, BASE + WINDOW + 0x9000)),
        ] {
            let parents = ranges(&HeapRanges::new(layout, 0x1000, vec![]).find(&mappings, &blocks, &[]));
            assert_eq!(parents, [(BASE, BASE + 0x10000), own]);
            let mut child = HeapRanges::new(layout, 0x1000, parents.clone());
            assert_eq!(ranges(&child.find(&mappings, &[], &[])), parents);
            assert_eq!(ranges(&child.find(&mappings[..1], &[], &[])), parents[..1]);
            assert_eq!(ranges(&child.find(&mappings, &[], &[])), parents[..1]);
        }
    }
}
