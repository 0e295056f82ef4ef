//! Records of each object of a process image when it was allocated, touched first and last, and freed.
//!
//! A touch is a reference of the program: accesses of the malloc family and of collections to blocks (headers,
//! free-list links, the zeroing of `calloc`, the copy of `realloc`, marks) are no touches, also when a thread that a
//! manager started makes them. A reference belongs to the object that contains its first byte.
//!
//! The clock of instructions is recorded with events only. So what is touched between two of its values, in a
//! *segment*, is noted with the reference's position in it, and gets its time when the segment ends, in proportion.
//! That time lies within the segment; the clock of bytes does not advance there and is exact.

use std::collections::HashMap;

use heaptoll_callsites::Sum;
use heaptoll_reftrace::word::Text;
use heaptoll_reftrace::{Clock as Counted, Event, Owner, Reference, Routine, Sink};

use crate::group::{EndCause, Groups};
use crate::lifetime::{Ended, Lifetime, PhaseSink};
use crate::objects::{Index, Objects};
use crate::pointers::Pointers;
use crate::sites::Sites;
use crate::space::{Phase, Spaces};
use crate::stamp::{Clock, Stamp};
use crate::timeline::Timeline;

mod calls;

/// `HEAPTOLL_COLLECTION_END` of include/heaptoll.h.
const COLLECTION_END: u32 = 2;

/// The manager, as known beforehand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManagerInfo {
    /// The manager collects garbage: a freed block is its program's no more, and perhaps not reclaimed.
    pub collector: bool,
}

/// Both curves over time.
#[derive(Debug, Default)]
pub(crate) struct Curves(pub [Timeline; 2]);

impl PhaseSink for Curves {
    #[inline(always)]
    fn take(&mut self, phase: Phase, bytes: u64, from: Stamp, to: Stamp) {
        for clock in Clock::ALL {
            self.0[clock as usize].add(phase, bytes, from[clock], to[clock]);
        }
    }
}

/// What happened to freed blocks under a collector.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
pub struct Reuse {
    /// Allocated again, or unmapped, though no collection had ended since the free: the free alone reclaimed them.
    pub by_free: Sum,
    /// Allocated again, or unmapped, after a collection.
    pub after_collection: Sum,
    /// Not allocated again: whether they were reclaimed is not known.
    pub never: Sum,
}

/// The sink for one process image.
#[derive(Debug, Default)]
pub struct Drag {
    pub(crate) manager: ManagerInfo,
    pub(crate) objects: Objects<Lifetime>,
    pub(crate) now: Stamp,
    /// Number of the current segment.
    segment: u64,
    /// The program's references in it so far.
    references: u32,
    /// The objects that they touched.
    touched: Vec<Index>,
    thread: u32,
    /// By thread: objects in a realloc that has not returned, with their address.
    resizing: HashMap<u32, Vec<(u64, Lifetime)>>,
    pub(crate) groups: Groups,
    pub(crate) curves: Curves,
    serial: u64,
    pub(crate) collections: u64,
    last_collection: Stamp,
    pub(crate) reuse: Reuse,
    /// The last reference and its owner.
    last: Option<(Owner, Reference)>,
    pub(crate) pointers: Pointers,
    pub(crate) sites: Sites,
    live_bytes: u64,
    pub(crate) most_bytes: u64,
    /// References decoded, by owner.
    pub(crate) references_by_owner: [u64; 3],
    /// Those of the program's references that hit objects.
    pub(crate) hits: u64,
    /// Frees and reallocs of unknown blocks.
    pub(crate) unknown: u64,
    /// Objects at addresses where no program has memory.
    pub(crate) unplaced: u64,
}

impl Drag {
    /// The sink for a process image that begins.
    pub fn new(manager: ManagerInfo) -> Drag {
        Drag { manager, ..Drag::default() }
    }

    /// The values of both clocks.
    pub fn now(&self) -> Stamp {
        self.now
    }

    #[inline(always)]
    fn touch(&mut self, address: u64) {
        let at = self.references;
        self.references += 1;
        let Some(index) = self.objects.find(address) else { return };
        let lifetime = self.objects.get_mut(index);
        if lifetime.segment != self.segment {
            if lifetime.freed {
                return;
            }
            lifetime.segment = self.segment;
            lifetime.first_at = at;
            self.touched.push(index);
        }
        lifetime.last_at = at;
        self.hits += 1;
    }

    /// Ends a segment in which the program executed this many instructions.
    fn settle(&mut self, instructions: u64) {
        let (begun, all) = (self.now, u128::from(self.references) * 2);
        let at = |place: u32| {
            let mut stamp = begun;
            stamp[Clock::Instructions] +=
                (u128::from(instructions) * (2 * u128::from(place) + 1) / all) as u64;
            stamp
        };
        for index in self.touched.drain(..) {
            let lifetime = self.objects.get_mut(index);
            let (first, last) = (at(lifetime.first_at), at(lifetime.last_at));
            lifetime.touch(first, last);
        }
        self.now[Clock::Instructions] += instructions;
        self.references = 0;
        self.segment += 1;
    }

    /// Resolves pending touches before an object ends, also where no event has ended the segment.
    fn settled(&mut self) {
        if !self.touched.is_empty() {
            self.settle(0);
        }
    }

    /// Records an object at its address. Objects recorded there have ended, whether or not that was seen.
    fn place(&mut self, address: u64, lifetime: Lifetime) {
        self.settled();
        let end = address.saturating_add(lifetime.size.max(1));
        while let Some(other) = self.objects.overlapping(address, end) {
            self.displace(other);
        }
        let bytes = if lifetime.freed { 0 } else { lifetime.size };
        match self.objects.insert(address, lifetime.size, lifetime) {
            Ok(_) => {
                self.live_bytes += bytes;
                self.most_bytes = self.most_bytes.max(self.live_bytes);
            }
            Err(_) => self.unplaced += 1,
        }
    }

    /// Ends an object whose memory was given to another, or unmapped.
    fn displace(&mut self, index: Index) {
        let lifetime = self.objects.take(index);
        let collected = self.collections > lifetime.collections;
        if lifetime.freed {
            match (collected, lifetime.moved) {
                (true, _) => {
                    self.reuse.after_collection.add(lifetime.size);
                    self.waited(&lifetime, self.last_collection);
                }
                (false, false) => self.reuse.by_free.add(lifetime.size),
                (false, true) => {}
            }
            return;
        }
        self.live_bytes -= lifetime.size;
        let idle_since = lifetime.last_touch().unwrap_or(lifetime.from)[Clock::Instructions];
        let known = collected
            && idle_since.max(lifetime.from[Clock::Instructions])
                <= self.last_collection[Clock::Instructions];
        match known {
            true => self.end(lifetime, self.last_collection, EndCause::Reclaimed),
            // A manager may have one address for all objects of size 0.
            false if lifetime.size == 0 => self.end(lifetime, self.now, EndCause::Freed),
            false => self.end(lifetime, self.now, EndCause::Lost),
        }
    }

    /// Records that a freed block waited until then, at most.
    fn waited(&mut self, lifetime: &Lifetime, until: Stamp) {
        let mut spaces = Spaces::default();
        spaces.add(Phase::Unreclaimed, lifetime.size, lifetime.from, until);
        self.curves.take(Phase::Unreclaimed, lifetime.size, lifetime.from, until);
        self.groups.add_waiting(lifetime.size, lifetime.site, &spaces);
    }

    fn end(&mut self, lifetime: Lifetime, when: Stamp, cause: EndCause) {
        let (size, site) = (lifetime.size, lifetime.site);
        let ended: Ended = lifetime.end(when, &mut self.curves);
        self.groups.add(size, site, &ended, cause);
    }

    /// Ends all objects: the process has ended, or is decoded no further.
    pub(crate) fn finish(&mut self) {
        self.settled();
        let resizing = std::mem::take(&mut self.resizing);
        for (_, lifetime) in resizing.into_values().flatten() {
            self.end(lifetime, self.now, EndCause::Kept);
        }
        for lifetime in std::mem::take(&mut self.objects).into_values() {
            if lifetime.freed {
                self.reuse.never.add(lifetime.size);
                self.waited(&lifetime, self.now);
            } else {
                self.end(lifetime, self.now, EndCause::Kept);
            }
        }
    }

    fn pointer(&mut self, value: u64) {
        let Some((owner, store)) = self.last else { return };
        let mut object = |address: u64| {
            let index = self.objects.find(address)?;
            let lifetime = self.objects.get(index);
            (!lifetime.freed).then_some(lifetime.serial)
        };
        let (into, to) = (object(store.address()), object(value));
        self.pointers.add(owner, into, to);
    }

    /// Ends the objects in unmapped memory.
    fn unmapped(&mut self, address: u64, length: u64) {
        let (mut from, end) = (address, address.saturating_add(length));
        while let Some(index) = self.objects.overlapping(from, end) {
            self.settled();
            let (start, lifetime) = (self.objects.start(index), self.objects.get(index));
            let object_end = start + lifetime.size.max(1);
            if lifetime.freed || start >= address && object_end <= end {
                self.displace(index);
            } else {
                from = object_end;
            }
        }
    }
}

impl Sink for Drag {
    #[inline]
    fn references(&mut self, owner: Owner, references: &[Reference]) {
        self.references_by_owner[owner as usize] += references.len() as u64;
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
                self.manager.collector = true;
                self.collections += 1;
                self.last_collection = self.now;
            }
            Event::Unmap { address, length } => self.unmapped(address, length),
            Event::Pointer { value, .. } => self.pointer(value),
            Event::Site { site, frames } => self.sites.define(site, frames),
            Event::Text { what: Text::Frame, word, bytes } => self.sites.codes.name(word, bytes),
            Event::Text { what: Text::FrameObject, word, bytes } => self.sites.codes.locate(word, bytes),
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
