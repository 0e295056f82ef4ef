//! How large the heap was at most: mappings over time, and which of them turn out to be the heap's.
//!
//! A mapping is the heap's when a routine or the collector made it, or when an object was ever placed in it; then it is
//! from its creation on, and whether one will be placed there is not known when it is made. So changes of mappings that
//! are still open stand in a log, and those that are decided are folded into two numbers between them. A stack never is
//! the heap's. Bytes count while they can be read or written.

use std::collections::{BTreeMap, HashSet};

use heaptoll_reference::event::Origin;

use crate::pages::Pages;

/// Readable or writable.
const ACCESSIBLE: u8 = 1 | 2;
/// Changes that the log holds before it is tidied.
const LOG: usize = 4096;

/// Whose a mapping is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Heap,
    /// Not decided: the mapping's number.
    Open(u64),
    /// No heap: a stack.
    Other,
}

/// Memory from an address up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    end: u64,
    accessible: bool,
    of: Of,
}

/// What happened to the sum of accessible bytes.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// Of the heap's: the most that was added on the way, and what was added in the end.
    Heap { most: i64, sum: i64 },
    /// Of a mapping that was not decided.
    Open { mapping: u64, sum: i64 },
}

/// All mappings of a process image.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    ranges: BTreeMap<u64, Range>,
    log: Vec<Change>,
    /// Length at which the log is tidied next.
    tidy_at: usize,
    /// Mappings that became the heap's after they were made.
    decided: HashSet<u64>,
    mappings: u64,
    /// Where the last object was placed: the heap's, whole.
    last: (u64, u64),
    /// Where objects were placed.
    pub pages: Pages,
    /// What `mremap` has added, and what it takes away is not told yet: it never has both at once.
    moving: Vec<(Of, i64)>,
}

impl Heap {
    /// Memory is there; `inside` when a routine or the collector asked for it. What was there before is gone.
    pub fn map(&mut self, address: u64, length: u64, protection: u8, origin: Origin, inside: bool) {
        let end = address.saturating_add(length);
        if end <= address {
            return;
        }
        if origin != Origin::Mremap {
            self.settle();
        }
        self.take_away(address, length);
        let of = match origin {
            Origin::Stack => Of::Other,
            _ if inside => Of::Heap,
            _ => {
                self.mappings += 1;
                Of::Open(self.mappings)
            }
        };
        let accessible = protection & ACCESSIBLE != 0;
        self.insert(address, Range { end, accessible, of });
        match (accessible, origin) {
            (true, Origin::Mremap) => self.moving.push((of, length as i64)),
            (true, _) => self.change(of, length as i64),
            (false, _) => {}
        }
        self.tidy_when_long();
    }

    /// Whatever was moving has moved: something else happens.
    pub fn settle(&mut self) {
        for (of, bytes) in std::mem::take(&mut self.moving) {
            self.change(of, bytes);
        }
    }

    /// Memory is gone.
    pub fn unmap(&mut self, address: u64, length: u64) {
        self.take_away(address, length);
        self.settle();
        self.tidy_when_long();
    }

    fn take_away(&mut self, address: u64, length: u64) {
        self.pages.remove(address, address.saturating_add(length));
        for (start, range) in self.cut(address, length) {
            if range.accessible {
                self.change(range.of, -((range.end - start) as i64));
            }
        }
    }

    /// Protection of memory changed.
    pub fn protect(&mut self, address: u64, length: u64, protection: u8) {
        self.settle();
        let accessible = protection & ACCESSIBLE != 0;
        if !accessible {
            self.pages.remove(address, address.saturating_add(length));
        }
        for (start, range) in self.cut(address, length) {
            if range.accessible != accessible {
                let bytes = (range.end - start) as i64;
                self.change(range.of, if accessible { bytes } else { -bytes });
            }
            self.insert(start, Range { accessible, ..range });
        }
        self.tidy_when_long();
    }

    /// An object was placed: its memory is the heap's.
    pub fn placed(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size.max(1));
        if self.last.0 <= address && end <= self.last.1 {
            self.pages.place(address, end);
            return;
        }
        let first = self.ranges.range(..=address).next_back().map_or(address, |(start, _)| *start);
        let mut open: Vec<(u64, Range)> = Vec::new();
        let mut upto = address;
        for (start, range) in self.ranges.range(first..end) {
            if range.end <= address {
                continue;
            }
            // No object lies across a hole: this one is not as large as was asked for.
            if *start > upto {
                break;
            }
            upto = range.end;
            match range.of {
                Of::Open(_) => open.push((*start, *range)),
                Of::Heap if *start <= address && end <= range.end => self.last = (*start, range.end),
                _ => {}
            }
        }
        self.pages.place(address, end.min(upto));
        for (start, range) in open {
            if let Of::Open(mapping) = range.of {
                self.decided.insert(mapping);
            }
            self.ranges.remove(&start);
            self.insert(start, Range { of: Of::Heap, ..range });
        }
    }

    /// The most bytes that the heap had at once, as far as is known now.
    pub fn high_water(&self) -> u64 {
        let (mut now, mut most) = (0i64, 0i64);
        let moving = self.moving.iter().map(|(of, bytes)| self.changed(*of, *bytes));
        for change in self.log.iter().copied().chain(moving.flatten()) {
            match change {
                Change::Heap { most: rise, sum } => {
                    most = most.max(now.saturating_add(rise));
                    now = now.saturating_add(sum);
                }
                Change::Open { mapping, sum } if self.decided.contains(&mapping) => {
                    now = now.saturating_add(sum);
                    most = most.max(now);
                }
                Change::Open { .. } => {}
            }
        }
        most.max(0) as u64
    }

    /// Takes the ranges within these bounds out, cut to them.
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

    /// Puts a range where none is, and joins it with neighbours of the heap's.
    fn insert(&mut self, mut start: u64, mut range: Range) {
        if range.of == Of::Heap {
            if let Some((before, left)) =
                self.ranges.range(..start).next_back().map(|(at, left)| (*at, *left))
                && left == (Range { end: start, ..range })
            {
                self.ranges.remove(&before);
                start = before;
            }
            if let Some(right) = self.ranges.get(&range.end).copied()
                && (right.of, right.accessible) == (range.of, range.accessible)
            {
                self.ranges.remove(&range.end);
                range.end = right.end;
            }
        }
        self.ranges.insert(start, range);
    }

    fn changed(&self, of: Of, bytes: i64) -> Option<Change> {
        match of {
            Of::Other => None,
            Of::Heap => Some(Change::Heap { most: bytes, sum: bytes }),
            Of::Open(mapping) if self.decided.contains(&mapping) => {
                Some(Change::Heap { most: bytes, sum: bytes })
            }
            Of::Open(mapping) => Some(Change::Open { mapping, sum: bytes }),
        }
    }

    fn change(&mut self, of: Of, bytes: i64) {
        if let Some(change) = self.changed(of, bytes) {
            append(&mut self.log, change);
        }
    }

    /// Only between whole operations: what one has taken out of the ranges would be taken for gone.
    fn tidy_when_long(&mut self) {
        if self.log.len() >= self.tidy_at.max(LOG) && self.moving.is_empty() {
            self.tidy();
        }
    }

    /// Folds what has been decided by now, and leaves out what is gone and never was the heap's.
    fn tidy(&mut self) {
        let mut open = HashSet::new();
        for range in self.ranges.values_mut() {
            match range.of {
                Of::Open(mapping) if self.decided.contains(&mapping) => range.of = Of::Heap,
                Of::Open(mapping) => {
                    open.insert(mapping);
                }
                Of::Heap | Of::Other => {}
            }
        }
        for change in std::mem::take(&mut self.log) {
            match change {
                Change::Open { mapping, sum } if self.decided.contains(&mapping) => {
                    append(&mut self.log, Change::Heap { most: sum, sum });
                }
                Change::Open { mapping, .. } if !open.contains(&mapping) => {}
                change => append(&mut self.log, change),
            }
        }
        self.decided.clear();
        self.tidy_at = 2 * self.log.len();
    }
}

/// Adds to a log; two changes of the heap's in a row become one.
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
