//! What conservative finding of roots and pointers keeps of a program's heap, from a trace with pointers.
//!
//! Two passes. The first finds when each object is touched last and freed. In the second everything is marked at each
//! root point: by kind of root, from the objects that are used later, and once more by the rules of collectors that honour
//! fewer interior pointers. An object is *kept* where roots lead to it and the program never touches it again.
//!
//! An object that is never touched again is a dead end: no pointer in it is ever loaded. So what leads to an object, or
//! through it, and that the program uses, are the objects that are used later and roots which lead to these. What these
//! objects lead to any collector keeps that goes by pointers. What only roots to other objects keep may be the price of conservatism:
//! the word may be a dead slot, a number, or a variable that a precise collector honours too. It is the price for certain
//! where the object was unreachable before: to what is unreachable a program has no pointer left.

mod ends;
mod figures;
mod lives;
mod marks;
mod point;
mod seen;
mod sums;

use heaptoll_trace::graph::{Event, FreeCause};
use heaptoll_trace_analysis::graph::objects::Objects;

use ends::Ends;
pub use figures::{
    Cause, CauseFigures, ConservatismFigures, Count, Distance, EndFigures, InteriorFigures, InteriorRule,
    Level, PointFigures, UntilFree,
};
pub use lives::Lives;
use marks::Root;
use seen::Seen;
use sums::Sums;

/// The second pass.
#[derive(Debug)]
pub struct Conservatism<'a> {
    lives: &'a Lives,
    objects: Objects<Seen>,
    /// Objects allocated.
    allocated: usize,
    bytes: u64,
    clock_bytes: u64,
    /// Number of the next event, as far as it is known.
    event: u64,
    /// Number of the event with which the root point that is read began.
    point_at: u64,
    roots: Vec<Root>,
    /// A whole root point was read. It counts when the program goes on: of what comes to its end nothing is used later.
    is_pending: bool,
    sums: Sums,
    ends: Ends,
    left_out: u64,
    /// Events are missing: what comes after is left out, since edges are not known any more.
    is_cut: bool,
}

impl<'a> Conservatism<'a> {
    /// No objects yet.
    pub fn new(lives: &'a Lives) -> Conservatism<'a> {
        Conservatism {
            lives,
            objects: Objects::default(),
            allocated: 0,
            bytes: 0,
            clock_bytes: 0,
            event: 0,
            point_at: 0,
            roots: Vec::new(),
            is_pending: false,
            sums: Sums::default(),
            ends: Ends::default(),
            left_out: 0,
            is_cut: false,
        }
    }

    /// Takes the events of a batch, the last of which comes before the event `next_event`. Where events are missing before
    /// it, this one and all that follow are left out.
    pub fn events(&mut self, events: &[Event], next_event: u64, after_gap: bool) {
        if after_gap {
            self.count_pending();
        }
        self.is_cut |= after_gap;
        self.event = next_event.saturating_sub(events.len() as u64).max(self.event);
        for event in events {
            if !self.is_cut {
                self.take(event);
            } else if matches!(event, Event::RootsEnd { .. }) {
                self.left_out += 1;
            }
            self.event += 1;
        }
    }

    fn take(&mut self, event: &Event) {
        if !matches!(event, Event::Kept { .. }) {
            self.count_pending();
        }
        match *event {
            Event::Allocate { object, size, .. } => self.allocate(object, size),
            Event::Free { object, cause, .. } => {
                if let Some(node) = self.objects.remove(object) {
                    match cause {
                        FreeCause::Free => self.ends.freed(&node, self.clock_bytes, self.sums.clock_bytes()),
                        FreeCause::Resized | FreeCause::Lost => self.ends.otherwise(&node),
                    }
                }
            }
            Event::Kept { object, .. } => {
                if let Some(node) = self.objects.remove(object) {
                    self.ends.kept(&node);
                }
            }
            Event::Edge { from, offset, to, to_offset } => {
                self.objects.hold(from, offset, Some((to, to_offset != 0)));
            }
            Event::Clear { from, offset } => self.objects.hold(from, offset, None),
            Event::Touch { object } => self.touched(object),
            Event::RootsBegin { clock_bytes } => {
                self.clock_bytes = clock_bytes;
                self.point_at = self.event;
                self.roots.clear();
            }
            Event::Root { object, kind, offset } => {
                let slot = self.objects.slot(object);
                self.roots.extend(slot.map(|slot| Root { slot, kind, is_interior: offset != 0 }));
            }
            Event::RootsEnd { whole: true } => self.is_pending = true,
            Event::RootsEnd { whole: false } => self.left_out += 1,
            Event::Access { .. } | Event::RequestBegin { .. } | Event::RequestEnd { .. } => {}
        }
    }

    fn allocate(&mut self, object: u64, size: u64) {
        let (used_until, freed_bytes) = self.lives.of(self.allocated);
        self.allocated += 1;
        self.bytes = self.bytes.saturating_add(size);
        self.clock_bytes = self.clock_bytes.saturating_add(size);
        self.objects.add(object, size, Seen { used_until, freed_bytes, ..Seen::default() });
    }

    /// The program touches an object. If nothing led to it, something did that is not in the graph.
    fn touched(&mut self, object: u64) {
        let Some(slot) = self.objects.slot(object) else { return };
        let seen = &mut self.objects.node_mut(slot).data;
        seen.is_hidden |= seen.was_unreached;
        seen.was_unreached = false;
        seen.unreached_bytes = None;
    }

    /// The program goes on after the root point that was read, if one was.
    fn count_pending(&mut self) {
        if std::mem::take(&mut self.is_pending) {
            self.point();
        }
    }

    fn point(&mut self) {
        let roots = std::mem::take(&mut self.roots);
        marks::mark(&mut self.objects, &roots, self.point_at);
        let point = point::count(&mut self.objects, self.point_at, self.clock_bytes);
        self.sums.add(&point, self.clock_bytes);
        self.roots = roots;
    }

    /// The figures, when all events were taken. What is about the file is left to the caller.
    pub fn figures(mut self) -> ConservatismFigures {
        let mut unknown = 0;
        let ends = &mut self.ends;
        self.objects.for_each(|_, _| unknown += 1);
        ends.unknown = unknown;
        ConservatismFigures {
            objects: self.allocated as u64,
            bytes: self.bytes,
            left_out: self.left_out,
            ends: self.ends.figures(),
            ..self.sums.figures()
        }
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
