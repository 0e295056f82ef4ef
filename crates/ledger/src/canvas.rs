//! Draws the picture: live blocks laid over the resident pages, cell by cell.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::block::Block;
use crate::freed_blocks::FreedBlocks;
use crate::laid_pages::{LaidPage, PageVisitor, lay};
use crate::picture::{Around, Cell, FreedBytes, Holder, Picture};
use crate::residency::{Run, State, Walk};

/// Cells, at most.
const MOST_CELLS: u64 = 1536;
/// Call sites that a cell names.
const MOST_HOLDERS: usize = 3;
/// Call sites with a record of what was freed around their blocks, and sites of freed blocks of each.
const MOST_AROUND: usize = 12;

/// What a picture is made of.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Live blocks, in order of address.
    pub blocks: &'a [Block],
    /// The pages of the heap, in order and disjoint.
    pub runs: &'a [Run],
    /// Bytes before each block that are the manager's.
    pub header: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// Bytes allocated until now.
    pub clock_bytes: u64,
    /// What was freed where, if it is known.
    pub freed: Option<&'a FreedBlocks>,
}

/// Draws the picture.
pub fn picture(subject: &Subject) -> Picture {
    let resident = subject.runs.iter().filter(|run| run.state != State::Swapped);
    let pages: u64 = resident.map(|run| (run.end - run.start) / subject.page_size).sum();
    draw(subject, pages.div_ceil(MOST_CELLS).max(1))
}

fn draw(subject: &Subject, cell_pages: u64) -> Picture {
    let resident = subject.runs.iter().filter(|run| run.state != State::Swapped);
    let pages: u64 = resident.clone().map(|run| (run.end - run.start) / subject.page_size).sum();
    let mut canvas = Canvas {
        subject,
        walk: Walk::new(subject.runs),
        cells: cells(resident, cell_pages, subject.page_size),
        at: 0,
        tallies: FxHashMap::default(),
        around: FxHashMap::default(),
    };
    lay(subject.blocks, subject.header, subject.page_size, &mut canvas);
    canvas.end_cell();
    let around = around(canvas.around);
    let cells = canvas.cells.into_iter().map(|(cell, _)| cell).collect();
    let followed_one_in = subject.freed.map_or(0, FreedBlocks::one_in);
    Picture { page_bytes: subject.page_size, pages, cell_pages, cells, around, followed_one_in }
}

/// Empty cells over resident runs, each with its sum of ages.
fn cells<'a>(runs: impl Iterator<Item = &'a Run>, cell_pages: u64, page_size: u64) -> Vec<(Cell, u128)> {
    let mut cells: Vec<(Cell, u128)> = Vec::new();
    for run in runs {
        let mut from = run.start;
        while from < run.end {
            let space = cells.last().map_or(0, |(cell, _)| cell_pages - cell.empty_pages);
            if space == 0 {
                cells.push((Cell { start: from, ..Cell::default() }, 0));
            }
            let wanted = if space == 0 { cell_pages } else { space };
            let pages = wanted.min((run.end - from) / page_size).max(1);
            from += pages * page_size;
            if let Some((cell, _)) = cells.last_mut() {
                cell.empty_pages += pages;
                cell.end = from.min(run.end);
            }
        }
    }
    cells
}

/// The picture while pages are laid on it.
struct Canvas<'a> {
    subject: &'a Subject<'a>,
    walk: Walk<'a>,
    cells: Vec<(Cell, u128)>,
    /// The present cell.
    at: usize,
    /// What each call site has of it.
    tallies: FxHashMap<u32, Holder>,
    around: FxHashMap<u32, Tally>,
}

/// What was freed around the blocks of one call site.
#[derive(Default)]
struct Tally {
    held_bytes: u64,
    unused_bytes: u64,
    freed: FxHashMap<u32, u64>,
}

impl PageVisitor for Canvas<'_> {
    fn page(&mut self, page: &LaidPage) {
        let end = page.start.saturating_add(self.subject.page_size);
        if self.walk.measure(page.start, end).amount.resident < self.subject.page_size {
            return;
        }
        self.enter(page.start);
        let held = self.subject.page_size.saturating_sub(page.taken);
        let sites = page.sites.len().max(1) as u64;
        for (at, site) in page.sites.iter().enumerate() {
            self.tally(*site).held_bytes += held / sites + u64::from((at as u64) < held % sites);
        }
        let mut age = 0;
        for (&index, &bytes) in page.blocks.iter().zip(&page.block_bytes) {
            let block = &self.subject.blocks[index];
            self.tally(block.site).live_bytes += bytes;
            age += self.age_kib(block) * u128::from(bytes);
        }
        self.count(1, page.taken, held, age);
        self.freed_on(page, sites);
    }

    fn filled(&mut self, start: u64, end: u64, index: usize) {
        let block = self.subject.blocks[index];
        let page_size = self.subject.page_size;
        let mut from = start;
        while from < end {
            self.enter(from);
            let Some((cell, _)) = self.cells.get(self.at) else { return };
            let to = end.min(cell.end.max(from + page_size));
            let resident = self.walk.measure(from, to).amount.resident;
            if resident > 0 {
                self.tally(block.site).live_bytes += resident;
                let age = self.age_kib(&block) * u128::from(resident);
                self.count(resident / page_size, resident, 0, age);
            }
            from = to;
        }
    }
}

impl Canvas<'_> {
    /// Goes on to the cell of this address.
    fn enter(&mut self, address: u64) {
        while self.cells.get(self.at).is_some_and(|(cell, _)| cell.end <= address) {
            self.end_cell();
            self.at += 1;
        }
    }

    fn tally(&mut self, site: u32) -> &mut Holder {
        self.tallies.entry(site).or_insert(Holder { site, ..Holder::default() })
    }

    fn age_kib(&self, block: &Block) -> u128 {
        u128::from(self.subject.clock_bytes.saturating_sub(block.allocated_at_bytes) / 1024)
    }

    /// Adds pages with live blocks to the present cell.
    fn count(&mut self, pages: u64, live_bytes: u64, held_bytes: u64, age: u128) {
        if let Some((cell, ages)) = self.cells.get_mut(self.at) {
            cell.empty_pages = cell.empty_pages.saturating_sub(pages);
            cell.live_bytes += live_bytes;
            cell.held_bytes += held_bytes;
            *ages += age;
        }
    }

    fn end_cell(&mut self) {
        let mut holders: Vec<Holder> = self.tallies.drain().map(|(_, holder)| holder).collect();
        holders.sort_unstable_by_key(|holder| (Reverse(holder.live_bytes + holder.held_bytes), holder.site));
        holders.truncate(MOST_HOLDERS);
        if let Some((cell, ages)) = self.cells.get_mut(self.at) {
            cell.holders = holders;
            cell.age_kib = (*ages).checked_div(u128::from(cell.live_bytes)).unwrap_or_default() as u64;
        }
    }

    /// Attributes the free bytes of a page to what was freed there.
    fn freed_on(&mut self, page: &LaidPage, sites: u64) {
        let Some(pieces) = self.subject.freed.and_then(|freed| freed.on_page(page.start)) else { return };
        let held = self.subject.page_size.saturating_sub(page.taken);
        let free: Vec<(u32, u64)> = pieces
            .iter()
            .map(|piece| {
                let (start, end) = (page.start + piece.start, page.start + piece.end);
                let covered: u64 =
                    page.ranges.iter().map(|(from, to)| end.min(*to).saturating_sub(start.max(*from))).sum();
                (piece.site, (end - start).saturating_sub(covered))
            })
            .collect();
        let known: u64 = free.iter().map(|(_, bytes)| bytes).sum();
        for site in &page.sites {
            let tally = self.around.entry(*site).or_default();
            tally.held_bytes += held / sites;
            tally.unused_bytes += held.saturating_sub(known) / sites;
            for (freed, bytes) in free.iter().filter(|(_, bytes)| *bytes > 0) {
                *tally.freed.entry(*freed).or_default() += bytes / sites;
            }
        }
    }
}

/// The call sites that hold most.
fn around(tallies: FxHashMap<u32, Tally>) -> Vec<Around> {
    let mut all: Vec<(u32, Tally)> = tallies.into_iter().collect();
    all.sort_unstable_by_key(|(site, tally)| (Reverse(tally.held_bytes), *site));
    all.truncate(MOST_AROUND);
    all.into_iter()
        .map(|(site, tally)| {
            let mut freed: Vec<FreedBytes> =
                tally.freed.into_iter().map(|(site, bytes)| FreedBytes { site, bytes }).collect();
            freed.sort_unstable_by_key(|freed| (Reverse(freed.bytes), freed.site));
            let rest = freed.split_off(freed.len().min(MOST_AROUND));
            Around {
                site,
                held_bytes: tally.held_bytes,
                freed,
                others_bytes: rest.iter().map(|freed| freed.bytes).sum(),
                unused_bytes: tally.unused_bytes,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
