//! Hears one process image, and keeps of each object when it was made, touched first and last, and freed.
//!
//! A touch is a reference of the program: what the malloc family and collections do in blocks (headers, links of free
//! lists, the zeroes of `calloc`, the copy of `realloc`, marks) is none, nor is it when they are made by a thread that a
//! manager started. A reference belongs to the object that its first byte lies in.
//!
//! The clock of instructions is told with events only. So what is touched between two tellings, a *stretch*, is noted by
//! the reference's place in it, and gets its moment when the stretch ends, in proportion. It lies within the stretch; the
//! clock of bytes stands still there and is exact.

use std::collections::HashMap;

use heaptoll_reference::word::Text;
use heaptoll_reference::{Clock as Counted, Event, Owner, Reference, Routine, Sink};

use crate::group::{Groups, How, Sum};
use crate::life::{Ended, Life, Takes};
use crate::objects::{Index, Objects};
use crate::pointers::Pointers;
use crate::sites::Sites;
use crate::space::{Phase, Spaces};
use crate::stamp::{Clock, Stamp};
use crate::timeline::Timeline;

mod calls;

/// `HEAPTOLL_COLLECTION_END` of include/heaptoll.h.
const COLLECTION_END: u32 = 2;

/// What is known beforehand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About {
    /// The manager collects garbage: a freed block is its program's no more, and perhaps not reclaimed.
    pub collector: bool,
}

/// Both curves over time.
#[derive(Debug, Default)]
pub(crate) struct Curves(pub [Timeline; 2]);

impl Takes for Curves {
    #[inline(always)]
    fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp) {
        for clock in Clock::ALL {
            self.0[clock as usize].add(phase, bytes, from[clock], to[clock]);
        }
    }
}

/// What became of freed blocks under a collector.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Reuse {
    /// Given out again, or unmapped, though no collection had ended since the free: the free alone reclaimed them.
    pub by_free: Sum,
    /// Given out again, or unmapped, after a collection.
    pub after_collection: Sum,
    /// Not given out again: whether they were reclaimed is not known.
    pub never: Sum,
}

/// Hears one process image.
#[derive(Debug, Default)]
pub struct Drag {
    pub(crate) about: About,
    pub(crate) objects: Objects<Life>,
    pub(crate) now: Stamp,
    /// Number of the stretch,
    stretch: u64,
    /// the program's references in it so far,
    references: u32,
    /// and what they touched.
    touched: Vec<Index>,
    thread: u32,
    /// By thread: objects that a realloc has, with their address.
    resizing: HashMap<u32, Vec<(u64, Life)>>,
    pub(crate) groups: Groups,
    pub(crate) curves: Curves,
    serial: u64,
    pub(crate) collections: u64,
    last_collection: Stamp,
    pub(crate) reuse: Reuse,
    /// Who made the last reference, and it.
    last: Option<(Owner, Reference)>,
    pub(crate) pointers: Pointers,
    pub(crate) sites: Sites,
    live_bytes: u64,
    pub(crate) most_bytes: u64,
    /// References heard, by owner.
    pub(crate) heard: [u64; 3],
    /// Of the program's, those into objects.
    pub(crate) hits: u64,
    /// Frees and reallocs of what is not known.
    pub(crate) unknown: u64,
    /// Objects that do not lie where programs are.
    pub(crate) unplaced: u64,
}

impl Drag {
    /// Of a process image that begins.
    pub fn new(about: About) -> Drag {
        Drag { about, ..Drag::default() }
    }

    /// What both clocks show.
    pub fn now(&self) -> Stamp {
        self.now
    }

    #[inline(always)]
    fn touch(&mut self, address: u64) {
        let at = self.references;
        self.references += 1;
        let Some(index) = self.objects.find(address) else { return };
        let life = self.objects.get_mut(index);
        if life.stretch != self.stretch {
            if life.freed {
                return;
            }
            life.stretch = self.stretch;
            life.first_at = at;
            self.touched.push(index);
        }
        life.last_at = at;
        self.hits += 1;
    }

    /// Ends a stretch in which the program executed so many instructions.
    fn settle(&mut self, instructions: u64) {
        let (begun, all) = (self.now, u128::from(self.references) * 2);
        let at = |place: u32| {
            let mut stamp = begun;
            stamp[Clock::Instructions] +=
                (u128::from(instructions) * (2 * u128::from(place) + 1) / all) as u64;
            stamp
        };
        for index in self.touched.drain(..) {
            let life = self.objects.get_mut(index);
            let (first, last) = (at(life.first_at), at(life.last_at));
            life.touch(first, last);
        }
        self.now[Clock::Instructions] += instructions;
        self.references = 0;
        self.stretch += 1;
    }

    /// Before an object goes its touches must be known, also where no event told them.
    fn settled(&mut self) {
        if !self.touched.is_empty() {
            self.settle(0);
        }
    }

    /// Puts an object where it lies now. What lay there has gone, seen or not.
    fn place(&mut self, address: u64, life: Life) {
        self.settled();
        let end = address.saturating_add(life.size.max(1));
        while let Some(other) = self.objects.overlapping(address, end) {
            self.displace(other);
        }
        let bytes = if life.freed { 0 } else { life.size };
        match self.objects.insert(address, life.size, life) {
            Ok(_) => {
                self.live_bytes += bytes;
                self.most_bytes = self.most_bytes.max(self.live_bytes);
            }
            Err(_) => self.unplaced += 1,
        }
    }

    /// Ends what lies where something else is now, or nothing.
    fn displace(&mut self, index: Index) {
        let life = self.objects.take(index);
        let collected = self.collections > life.collections;
        if life.freed {
            match (collected, life.moved) {
                (true, _) => {
                    self.reuse.after_collection.add(life.size);
                    self.waited(&life, self.last_collection);
                }
                (false, false) => self.reuse.by_free.add(life.size),
                (false, true) => {}
            }
            return;
        }
        self.live_bytes -= life.size;
        let idle_since = life.last_touch().unwrap_or(life.from)[Clock::Instructions];
        let known = collected
            && idle_since.max(life.from[Clock::Instructions]) <= self.last_collection[Clock::Instructions];
        match known {
            true => self.end(life, self.last_collection, How::Reclaimed),
            // A manager may have one address for all that have no bytes.
            false if life.size == 0 => self.end(life, self.now, How::Freed),
            false => self.end(life, self.now, How::Lost),
        }
    }

    /// A freed block waited until then, at most.
    fn waited(&mut self, life: &Life, until: Stamp) {
        let mut spaces = Spaces::default();
        spaces.add(Phase::Unreclaimed, life.size, life.from, until);
        self.curves.take(Phase::Unreclaimed, life.size, life.from, until);
        self.groups.add_waiting(life.size, life.site, &spaces);
    }

    fn end(&mut self, life: Life, when: Stamp, how: How) {
        let (size, site) = (life.size, life.site);
        let ended: Ended = life.end(when, &mut self.curves);
        self.groups.add(size, site, &ended, how);
    }

    /// The process has ended, or is not heard any more.
    pub(crate) fn finish(&mut self) {
        self.settled();
        let resizing = std::mem::take(&mut self.resizing);
        for (_, life) in resizing.into_values().flatten() {
            self.end(life, self.now, How::Kept);
        }
        for life in std::mem::take(&mut self.objects).into_values() {
            if life.freed {
                self.reuse.never.add(life.size);
                self.waited(&life, self.now);
            } else {
                self.end(life, self.now, How::Kept);
            }
        }
    }

    fn pointer(&mut self, value: u64) {
        let Some((owner, store)) = self.last else { return };
        let mut object = |address: u64| {
            let index = self.objects.find(address)?;
            let life = self.objects.get(index);
            (!life.freed).then_some(life.serial)
        };
        let (into, to) = (object(store.address()), object(value));
        self.pointers.add(owner, into, to);
    }

    /// Memory is gone, and what lay in it.
    fn unmapped(&mut self, address: u64, length: u64) {
        let (mut from, end) = (address, address.saturating_add(length));
        while let Some(index) = self.objects.overlapping(from, end) {
            self.settled();
            let (start, life) = (self.objects.start(index), self.objects.get(index));
            let behind = start + life.size.max(1);
            if life.freed || start >= address && behind <= end {
                self.displace(index);
            } else {
                from = behind;
            }
        }
    }
}

impl Sink for Drag {
    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.heard[owner as usize] += references.len() as u64;
        if let Some(last) = references.last() {
            self.last = Some((owner, *last));
        }
        if owner != Owner::Program {
            return;
        }
        if u64::from(self.references) + references.len() as u64 > u64::from(u32::MAX / 2) {
            self.settle(0);
        }
        for reference in references {
            self.touch(reference.address());
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match *event {
            Event::Enter { routine, arguments, .. } => self.enter(routine, arguments),
            Event::Leave { routine, arguments, site, result, .. } => {
                self.leave(routine, arguments, site, result);
            }
            Event::Abandon { routine, .. } => self.abandon(routine),
            Event::Thread { thread } => {
                self.settled();
                self.thread = thread;
            }
            Event::Kernel { owner: Owner::Program, address, .. } => self.touch(address),
            Event::Announced { kind: COLLECTION_END, .. } => {
                self.about.collector = true;
                self.collections += 1;
                self.last_collection = self.now;
            }
            Event::Unmap { address, length } => self.unmapped(address, length),
            Event::Pointer { value } => self.pointer(value),
            Event::Site { site, frames } => self.sites.define(site, frames),
            Event::Text { what: Text::Frame, word, bytes } => self.sites.name_frame(word, bytes),
            Event::Text { what: Text::FrameObject, word, bytes } => self.sites.place_frame(word, bytes),
            _ => {}
        }
    }

    fn executed(&mut self, owner: Owner, cost: Counted) {
        if owner == Owner::Program {
            self.settle(cost.instructions);
        }
    }
}

#[cfg(test)]
mod tests;
