//! Merges the rings of a process into one order.
//!
//! Events with numbers are delivered by number. Events without come only from a process's first thread, before it has
//! read that there is a second; docs/contributing/recording-ring.md proves why they may precede all that have numbers.
//! The proof needs this order of reads: after an event with a number has been read, and before it is delivered, the
//! first ring is read again. Events that it has by then go first; the numbered event does not depend on later ones.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use heaptoll_assertions::{assert_expensive, assert_internal};

use super::decode::Reader;
use super::drained::Drained;
use super::event::Sink;
use super::head::Head;
use super::map::Map;
use crate::atomic::Ordering;

/// Numbers that were skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Skipped {
    /// Numbers that were taken and not written.
    pub missing: u64,
    /// Places where numbers were overwritten.
    pub corrupted: u64,
}

/// The readers of a process.
pub(crate) struct Merge {
    map: Arc<Map>,
    /// The process's entry.
    process: usize,
    readers: Vec<Option<Reader>>,
    /// Readers whose next event has a number: the numbers and the readers.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    /// Readers that had nothing to read, the most recently active last.
    caught_up: Vec<usize>,
    /// The first thread's, until it has shown a number.
    unnumbered: Option<usize>,
    /// The next number.
    next: u64,
    /// Numbers that were skipped and have not come.
    skipped: u64,
    /// Number of readers so far: as many numbers can be taken and not written, one by each owner.
    owners: u64,
}

impl Merge {
    pub fn new(map: Arc<Map>, process: usize) -> Merge {
        Merge {
            map,
            process,
            readers: Vec::new(),
            heads: BinaryHeap::new(),
            caught_up: Vec::new(),
            unnumbered: None,
            next: 0,
            skipped: 0,
            owners: 0,
        }
    }

    pub fn add(&mut self, reader: Reader) {
        self.owners += 1;
        assert_expensive!(self.readers().all(|other| other.ring != reader.ring), "a ring has one reader");
        let index = self.readers.iter().position(Option::is_none).unwrap_or_else(|| {
            self.readers.push(None);
            self.readers.len() - 1
        });
        if reader.thread == 0 {
            self.unnumbered = Some(index);
        }
        self.readers[index] = Some(reader);
        self.caught_up.push(index);
    }

    /// Removes a reader that has nothing to read.
    pub fn remove(&mut self, index: usize) {
        assert_internal!(self.caught_up.contains(&index), "a reader that is removed has nothing to read");
        self.caught_up.retain(|&caught_up| caught_up != index);
        self.readers[index] = None;
        if self.unnumbered == Some(index) {
            self.unnumbered = None;
        }
    }

    pub fn readers(&self) -> impl Iterator<Item = &Reader> {
        self.readers.iter().flatten()
    }

    pub fn readers_mut(&mut self) -> impl Iterator<Item = &mut Reader> {
        self.readers.iter_mut().flatten()
    }

    pub fn reader_mut(&mut self, index: usize) -> Option<&mut Reader> {
        self.readers.get_mut(index)?.as_mut()
    }

    /// Words that can be in the rings at once.
    pub fn reach(&self) -> usize {
        self.readers().map(Reader::reach).sum()
    }

    pub fn caught_up(&self) -> &[usize] {
        &self.caught_up
    }

    /// Makes all readers stop waiting for the latencies of frees.
    pub fn stop_waiting(&mut self) {
        self.readers_mut().for_each(Reader::stop_waiting);
    }

    /// Delivers events in order, at most about `budget` words. With `taken`, missing numbers below it are skipped.
    pub fn deliver(&mut self, budget: usize, taken: Option<u64>, sink: &mut impl Sink) -> Drained {
        let mut drained = Drained::default();
        loop {
            assert_expensive!(self.are_readers_listed_once(), "each reader is in one list");
            self.poll(budget, &mut drained, sink);
            let before = drained.words;
            while drained.words < budget
                && let Some(&Reverse((number, index))) = self.heads.peek()
                && number <= self.next
            {
                if let Some(first) = self.unnumbered {
                    self.poll_one(first, budget, &mut drained, sink);
                    // The numbered event may depend on a free that waits for its latency.
                    if taken.is_none()
                        && self.readers[first].as_ref().is_some_and(Reader::holds_back_unnumbered)
                    {
                        drained.blocked = true;
                        return drained;
                    }
                    if self.heads.peek() != Some(&Reverse((number, index))) || drained.words >= budget {
                        continue;
                    }
                }
                self.heads.pop();
                self.note_arrival(number);
                self.deliver_from(number, index, budget, &mut drained, sink);
            }
            if drained.words >= budget {
                return drained;
            }
            if drained.words > before {
                continue;
            }
            let Some(&Reverse((number, index))) = self.heads.peek() else {
                drained.idle = true;
                return drained;
            };
            match taken {
                // No thread has taken this number: the ring was overwritten. Its owner must not wait for ever.
                Some(_) if number >= self.map.process(self.process).sequence.0.load(Ordering::Acquire) => {
                    drained.missing += 1;
                    drained.corrupted += 1;
                    self.heads.pop();
                    self.deliver_from(self.next.saturating_sub(1), index, budget, &mut drained, sink);
                }
                Some(taken) if self.next < taken => {
                    let skipped = self.skip_to(number.min(taken));
                    drained.missing += skipped.missing;
                    drained.corrupted += skipped.corrupted;
                }
                _ => {
                    drained.blocked = true;
                    return drained;
                }
            }
        }
    }

    /// Continues with number `to`. If more numbers are missing than can be taken and not written, they count as one
    /// damage: a number was overwritten, or the words that carried those in between were.
    pub fn skip_to(&mut self, to: u64) -> Skipped {
        let skipped = to.saturating_sub(self.next);
        self.next += skipped;
        if skipped > self.owners {
            return Skipped { missing: 0, corrupted: 1 };
        }
        self.skipped = self.skipped.saturating_add(skipped);
        Skipped { missing: skipped, corrupted: 0 }
    }

    /// Threads that can have been killed between their number and its words.
    pub fn threads(&self) -> u64 {
        self.owners + self.readers().map(|reader| reader.threads() as u64 - 1).sum::<u64>()
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Numbers that were skipped and have not arrived: an event of a suspended thread may arrive late.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Records that an event with this number is delivered: it may be one that was skipped.
    fn note_arrival(&mut self, number: u64) {
        if number < self.next {
            self.skipped = self.skipped.saturating_sub(1);
        }
    }

    /// Delivers events of a reader whose next event is next in order, as long as its numbers are consecutive.
    fn deliver_from(
        &mut self,
        mut number: u64,
        index: usize,
        budget: usize,
        drained: &mut Drained,
        sink: &mut impl Sink,
    ) {
        let Some(Some(reader)) = self.readers.get_mut(index) else { return };
        loop {
            let (words, head) = reader.numbered(&self.map, sink);
            drained.words += words;
            // A number that was skipped and arrives late does not count.
            self.next = self.next.max(number + 1);
            assert_internal!(self.next > number, "a number that is delivered is below the next");
            match head {
                Head::Numbered(following)
                    if following <= self.next && drained.words < budget && self.unnumbered.is_none() =>
                {
                    number = following;
                    if number < self.next {
                        self.skipped = self.skipped.saturating_sub(1);
                    }
                }
                Head::Numbered(following) => {
                    self.heads.push(Reverse((following, index)));
                    return;
                }
                Head::Nothing | Head::Plain => {
                    self.caught_up.push(index);
                    return;
                }
            }
        }
    }

    /// Polls the readers that had nothing, the most recently active first, until the next number is found.
    fn poll(&mut self, budget: usize, drained: &mut Drained, sink: &mut impl Sink) {
        let mut at = self.caught_up.len();
        while at > 0 && drained.words < budget {
            at -= 1;
            let Some(Some(reader)) = self.readers.get_mut(self.caught_up[at]) else { continue };
            drained.words += reader.plain(&self.map, budget - drained.words, sink);
            if let Head::Numbered(number) = reader.head() {
                let index = self.caught_up.remove(at);
                self.heads.push(Reverse((number, index)));
                if self.unnumbered == Some(index) {
                    self.unnumbered = None;
                }
                if number <= self.next {
                    return;
                }
            }
        }
    }

    fn poll_one(&mut self, index: usize, budget: usize, drained: &mut Drained, sink: &mut impl Sink) {
        let Some(Some(reader)) = self.readers.get_mut(index) else { return };
        drained.words += reader.plain(&self.map, budget - drained.words, sink);
        if let Head::Numbered(number) = reader.head() {
            self.caught_up.retain(|&caught_up| caught_up != index);
            self.heads.push(Reverse((number, index)));
            self.unnumbered = None;
        }
    }

    /// How often each reader is in a list.
    fn listings(&self) -> Vec<u32> {
        let mut listings = vec![0; self.readers.len()];
        for &index in &self.caught_up {
            listings[index] += 1;
        }
        for &Reverse((_, index)) in &self.heads {
            listings[index] += 1;
        }
        listings
    }

    fn are_readers_listed_once(&self) -> bool {
        let first = self.unnumbered.is_none_or(|index| self.caught_up.contains(&index));
        let readers = self.readers.iter().zip(self.listings());
        first && readers.into_iter().all(|(reader, listings)| listings == u32::from(reader.is_some()))
    }

    /// Whether each reader is in one list, and the numbers are those of the rings.
    pub fn check(&self) -> Result<(), String> {
        for &Reverse((number, index)) in &self.heads {
            match self.readers[index].as_ref().map(Reader::head) {
                Some(Head::Numbered(head)) if head == number => {}
                other => {
                    return Err(format!("reader {index} is kept at number {number} but is at {other:?}"));
                }
            }
        }
        for (index, seen) in self.listings().into_iter().enumerate() {
            if seen != u32::from(self.readers[index].is_some()) {
                return Err(format!("reader {index} is in {seen} lists"));
            }
        }
        match self.unnumbered {
            Some(index) if !self.caught_up.contains(&index) => {
                Err(format!("the first reader, {index}, is not caught up"))
            }
            _ => Ok(()),
        }
    }
}
