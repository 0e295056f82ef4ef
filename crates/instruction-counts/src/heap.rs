//! The heap's largest size: mappings over time, and which of them belong to the heap.
//!
//! A mapping belongs to the heap if a routine or the collector made it, or if an object was ever placed in it; then it
//! does from its creation on, and whether an object will be placed there is not known when it is made. So changes of
//! undecided mappings stay in a log, and decided ones are folded into two numbers between them. A stack never belongs
//! to the heap. Bytes count while they are readable or writable.

use std::collections::{BTreeMap, HashSet};

use heaptoll_reftrace::event::Origin;

use crate::pages::Pages;

/// Readable or writable.
const ACCESSIBLE: u8 = 1 | 2;
/// Changes that the log holds before it is compacted.
const LOG: usize = 4096;

/// The owner of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MappingOwner {
    Heap,
    /// Undecided: the mapping's number.
    Undecided(u64),
    /// Not the heap: a stack.
    Other,
}

/// Memory from an address up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    end: u64,
    accessible: bool,
    owner: MappingOwner,
}

/// A change of the sum of accessible bytes.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Of the heap: the most that was added on the way, and the sum in the end.
    Heap { most: i64, sum: i64 },
    /// Of a mapping that was undecided.
    Undecided { mapping: u64, sum: i64 },
}

/// All mappings of a process image.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    ranges: BTreeMap<u64, Range>,
    log: Vec<Change>,
    /// Length at which the log is compacted next.
    tidy_at: usize,
    /// Mappings found to be the heap's after they were made.
    decided: HashSet<u64>,
    mappings: u64,
    /// The heap's range in which the last object was placed.
    last: (u64, u64),
    /// Pages in which objects were placed.
    pub pages: Pages,
    /// What `mremap` has added while the event that removes its source is pending: both never exist at once.
    moving: Vec<(MappingOwner, i64)>,
}

impl Heap {
    /// Maps memory; `by_manager` if a routine or the collector requested it. Earlier mappings there are replaced.
    pub fn map(&mut self, address: u64, length: u64, protection: u8, origin: Origin, by_manager: bool) {
        let end = address.saturating_add(length);
        if end <= address {
            return;
        }
        if origin != Origin::Mremap {
            self.settle();
        }
        self.take_away(address, length);
        let owner = match origin {
            Origin::Stack => MappingOwner::Other,
            _ if by_manager => MappingOwner::Heap,
            _ => {
                self.mappings += 1;
                MappingOwner::Undecided(self.mappings)
            }
        };
        let accessible = protection & ACCESSIBLE != 0;
        self.insert(address, Range { end, accessible, owner });
        match (accessible, origin) {
            (true, Origin::Mremap) => self.moving.push((owner, length as i64)),
            (true, _) => self.change(owner, length as i64),
            (false, _) => {}
        }
        self.tidy_when_long();
    }

    /// Ends a move: another event follows.
    pub fn settle(&mut self) {
        for (owner, bytes) in std::mem::take(&mut self.moving) {
            self.change(owner, bytes);
        }
    }

    /// Unmaps memory.
    pub fn unmap(&mut self, address: u64, length: u64) {
        self.take_away(address, length);
        self.settle();
        self.tidy_when_long();
    }

    fn take_away(&mut self, address: u64, length: u64) {
        self.pages.remove(address, address.saturating_add(length));
        for (start, range) in self.cut(address, length) {
            if range.accessible {
                self.change(range.owner, -((range.end - start) as i64));
            }
        }
    }

    /// Changes the protection of memory.
    pub fn protect(&mut self, address: u64, length: u64, protection: u8) {
        self.settle();
        let accessible = protection & ACCESSIBLE != 0;
        if !accessible {
            self.pages.remove(address, address.saturating_add(length));
        }
        for (start, range) in self.cut(address, length) {
            if range.accessible != accessible {
                let bytes = (range.end - start) as i64;
                self.change(range.owner, if accessible { bytes } else { -bytes });
            }
            self.insert(start, Range { accessible, ..range });
        }
        self.tidy_when_long();
    }

    /// Records that an object was placed: its memory is the heap's.
    pub fn placed(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size.max(1));
        if self.last.0 <= address && end <= self.last.1 {
            self.pages.place(address, end);
            return;
        }
        let first = self.ranges.range(..=address).next_back().map_or(address, |(start, _)| *start);
        let mut undecided: Vec<(u64, Range)> = Vec::new();
        let mut upto = address;
        for (start, range) in self.ranges.range(first..end) {
            if range.end <= address {
                continue;
            }
            // No object crosses a gap: this one is smaller than requested.
            if *start > upto {
                break;
            }
            upto = range.end;
            match range.owner {
                MappingOwner::Undecided(_) => undecided.push((*start, *range)),
                MappingOwner::Heap if *start <= address && end <= range.end => {
                    self.last = (*start, range.end)
                }
                _ => {}
            }
        }
        self.pages.place(address, end.min(upto));
        for (start, range) in undecided {
            if let MappingOwner::Undecided(mapping) = range.owner {
                self.decided.insert(mapping);
            }
            self.ranges.remove(&start);
            self.insert(start, Range { owner: MappingOwner::Heap, ..range });
        }
    }

    /// The most bytes that the heap had at once, as far as is decided now.
    pub fn high_water(&self) -> u64 {
        let (mut now, mut most) = (0i64, 0i64);
        let moving = self.moving.iter().map(|(owner, bytes)| self.changed(*owner, *bytes));
        for change in self.log.iter().copied().chain(moving.flatten()) {
            match change {
                Change::Heap { most: rise, sum } => {
                    most = most.max(now.saturating_add(rise));
                    now = now.saturating_add(sum);
                }
                Change::Undecided { mapping, sum } if self.decided.contains(&mapping) => {
                    now = now.saturating_add(sum);
                    most = most.max(now);
                }
                Change::Undecided { .. } => {}
            }
        }
        most.max(0) as u64
    }

    /// Removes the ranges within these bounds, cut to them, and returns them.
    fn cut(&mut self, address: u64, length: u64) -> Vec<(u64, Range)> {
        let end = address.saturating_add(length);
        self.last = (0, 0);
        let first = self.ranges.range(..=address).next_back().map_or(address, |(start, _)| *start);
        let touched: Vec<(u64, Range)> = self
            .ranges
            .range(first..end)
            .filter(|(_, range)| range.end > address)
            .map(|(start, range)| (*start, *range))
            .collect();
        let mut inner = Vec::with_capacity(touched.len());
        for (start, range) in touched {
            self.ranges.remove(&start);
            if start < address {
                self.ranges.insert(start, Range { end: address, ..range });
            }
            if range.end > end {
                self.ranges.insert(end, range);
            }
            inner.push((start.max(address), Range { end: range.end.min(end), ..range }));
        }
        inner
    }

    /// Inserts a range into a gap, and joins it with neighbours of the heap's.
    fn insert(&mut self, mut start: u64, mut range: Range) {
        if range.owner == MappingOwner::Heap {
            if let Some((before, left)) =
                self.ranges.range(..start).next_back().map(|(at, left)| (*at, *left))
                && left == (Range { end: start, ..range })
            {
                self.ranges.remove(&before);
                start = before;
            }
            if let Some(right) = self.ranges.get(&range.end).copied()
                && (right.owner, right.accessible) == (range.owner, range.accessible)
            {
                self.ranges.remove(&range.end);
                range.end = right.end;
            }
        }
        self.ranges.insert(start, range);
    }

    fn changed(&self, owner: MappingOwner, bytes: i64) -> Option<Change> {
        match owner {
            MappingOwner::Other => None,
            MappingOwner::Heap => Some(Change::Heap { most: bytes, sum: bytes }),
            MappingOwner::Undecided(mapping) if self.decided.contains(&mapping) => {
                Some(Change::Heap { most: bytes, sum: bytes })
            }
            MappingOwner::Undecided(mapping) => Some(Change::Undecided { mapping, sum: bytes }),
        }
    }

    fn change(&mut self, owner: MappingOwner, bytes: i64) {
        if let Some(change) = self.changed(owner, bytes) {
            append(&mut self.log, change);
        }
    }

    /// Only between whole operations: ranges that one has removed would count as unmapped.
    fn tidy_when_long(&mut self) {
        if self.log.len() >= self.tidy_at.max(LOG) && self.moving.is_empty() {
            self.tidy();
        }
    }

    /// Folds what is decided by now, and drops what is unmapped and never was the heap's.
    fn tidy(&mut self) {
        let mut undecided = HashSet::new();
        for range in self.ranges.values_mut() {
            match range.owner {
                MappingOwner::Undecided(mapping) if self.decided.contains(&mapping) => {
                    range.owner = MappingOwner::Heap
                }
                MappingOwner::Undecided(mapping) => {
                    undecided.insert(mapping);
                }
                MappingOwner::Heap | MappingOwner::Other => {}
            }
        }
        for change in std::mem::take(&mut self.log) {
            match change {
                Change::Undecided { mapping, sum } if self.decided.contains(&mapping) => {
                    append(&mut self.log, Change::Heap { most: sum, sum });
                }
                Change::Undecided { mapping, .. } if !undecided.contains(&mapping) => {}
                change => append(&mut self.log, change),
            }
        }
        self.decided.clear();
        self.tidy_at = 2 * self.log.len();
    }
}

/// Appends to a log; two consecutive changes of the heap's become one.
fn append(log: &mut Vec<Change>, change: Change) {
    match (log.last_mut(), change) {
        (Some(Change::Heap { most, sum }), Change::Heap { most: rise, sum: more }) => {
            *most = (*most).max(sum.saturating_add(rise));
            *sum = sum.saturating_add(more);
        }
        _ => log.push(change),
    }
}

#[cfg(test)]
mod tests;
