//! What nothing leads to when the program ends, by the kinds of Valgrind's memcheck, from a trace with pointers.
//!
//! The graph is judged at the last root point, which the tracer records where the program ends. *Reachable* is what
//! pointers to the starts of objects lead to from a root. *Possibly lost* is what only a chain with an interior pointer
//! leads to. Of the rest, an object to which no other lost object leads is *definitely lost*, and so is one of each ring;
//! *indirectly lost* is what these lead to, by any pointer. Where a trace has no root point at the end (it was recorded
//! before tracers wrote one, or was cut), what was touched or allocated since the last one counts as reachable.

use heaptoll_trace::graph::{Event, LastTouch};

use super::objects::Objects;

/// What became of an object that was never freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pointers to starts of objects lead to it.
    Reachable,
    /// Only chains with interior pointers do.
    Possible,
    /// Nothing does.
    Definite,
    /// Only lost objects do.
    Indirect {
        /// The site of the definitely lost object that does.
        leader_site: u32,
    },
    /// Not known: events are missing after its allocation.
    Unjudged,
}

/// An object that was never freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeverFreed {
    /// The call stack that made it.
    pub site: u32,
    /// Requested bytes.
    pub size: u64,
    /// What became of it.
    pub kind: Kind,
    /// Bytes allocated since it was touched last, or since its allocation when it never was; none where the trace has no
    /// end.
    pub idle_bytes: Option<u64>,
    /// The program never touched it.
    pub is_untouched: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    None,
    Reachable,
    Possible,
    Definite,
    /// By the slot of a leader, which may itself be led to by another.
    Indirect(u32),
}

/// What is kept of a live object.
#[derive(Debug, Default)]
struct Held {
    site: u32,
    born_bytes: u64,
    /// Its last touch at the trace's end, where that is known.
    kept: Option<Option<LastTouch>>,
    /// The root point of which it is a root, from 1, and whether one leads to its start.
    rooted_at: u64,
    is_rooted_at_start: bool,
    /// Root points before it was touched last, or allocated.
    seen_after: u64,
    /// Events are missing since its allocation.
    is_unsure: bool,
    mark: Mark,
}

/// Takes events in order.
#[derive(Debug, Default)]
pub struct Lost {
    objects: Objects<Held>,
    clock_bytes: u64,
    /// Root points so far; the whole one that is judged, and its clock.
    points: u64,
    judged: Option<(u64, u64)>,
    /// The program has done something after the last root point.
    goes_on: bool,
    point_bytes: u64,
}

impl Lost {
    /// Takes the events of a batch; before it, events may be missing.
    pub fn events(&mut self, events: &[Event], after_gap: bool) {
        if after_gap {
            self.objects.for_each(|_, node| node.data.is_unsure = true);
        }
        events.iter().for_each(|event| self.take(event));
    }

    /// Takes an event.
    pub fn take(&mut self, event: &Event) {
        match *event {
            Event::Allocate { object, size, site, .. } => {
                let born_bytes = self.clock_bytes;
                self.clock_bytes = self.clock_bytes.saturating_add(size);
                let held = Held { site, born_bytes, seen_after: self.points, ..Held::default() };
                self.objects.add(object, size, held);
                self.goes_on = true;
            }
            Event::Free { object, .. } => {
                self.objects.remove(object);
                self.goes_on = true;
            }
            Event::Kept { object, last_touch } => {
                if let Some(slot) = self.objects.slot(object) {
                    self.objects.node_mut(slot).data.kept = Some(last_touch);
                }
            }
            Event::Edge { from, offset, to, to_offset } => {
                self.objects.hold(from, offset, Some((to, to_offset != 0)));
                self.goes_on = true;
            }
            Event::Clear { from, offset } => {
                self.objects.hold(from, offset, None);
                self.goes_on = true;
            }
            Event::Touch { object } => {
                if let Some(slot) = self.objects.slot(object) {
                    self.objects.node_mut(slot).data.seen_after = self.points;
                }
                self.goes_on = true;
            }
            Event::RootsBegin { clock_bytes } => {
                self.clock_bytes = clock_bytes;
                self.point_bytes = clock_bytes;
                self.points += 1;
            }
            Event::Root { object, offset, .. } => self.root(object, offset == 0),
            Event::RootsEnd { whole } => {
                if whole {
                    self.judged = Some((self.points, self.point_bytes));
                    self.goes_on = false;
                }
            }
            Event::Access { .. } | Event::RequestBegin { .. } | Event::RequestEnd { .. } => {}
        }
    }

    fn root(&mut self, object: u64, is_at_start: bool) {
        let point = self.points;
        let Some(slot) = self.objects.slot(object) else { return };
        let held = &mut self.objects.node_mut(slot).data;
        held.is_rooted_at_start = is_at_start || (held.rooted_at == point && held.is_rooted_at_start);
        held.rooted_at = point;
    }

    /// Bytes allocated.
    pub fn clock_bytes(&self) -> u64 {
        self.clock_bytes
    }

    /// Bytes allocated until the root point that is judged; none where no whole one is there, and nothing can be judged.
    pub fn judged_at_bytes(&self) -> Option<u64> {
        self.judged.map(|(_, clock_bytes)| clock_bytes)
    }

    /// Whether the program has gone on after that point.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Every object that was never freed, in order of allocation; when all events were taken.
    pub fn finish(mut self) -> Vec<NeverFreed> {
        let mut slots: Vec<(u64, u32)> = Vec::new();
        self.objects.for_each(|slot, node| slots.push((node.object, slot)));
        slots.sort_unstable();
        let slots: Vec<u32> = slots.into_iter().map(|(_, slot)| slot).collect();
        self.mark_from_roots(&slots);
        self.mark_lost(&slots);
        slots.iter().map(|&slot| self.never_freed(slot)).collect()
    }

    /// Marks what roots lead to by starts alone, then what they lead to at all.
    fn mark_from_roots(&mut self, slots: &[u32]) {
        let Some((point, _)) = self.judged else { return };
        let (mut starts, mut interiors) = (Vec::new(), Vec::new());
        for &slot in slots {
            let held = &self.objects.node_mut(slot).data;
            let is_rooted = held.rooted_at == point;
            if held.is_unsure || held.seen_after >= point || (is_rooted && held.is_rooted_at_start) {
                starts.push(slot);
            } else if is_rooted {
                interiors.push(slot);
            }
        }
        while let Some(slot) = starts.pop() {
            if self.marked(slot, Mark::Reachable) {
                for (target, _) in self.objects.targets(slot) {
                    if target.is_interior { &mut interiors } else { &mut starts }.push(target.slot);
                }
            }
        }
        while let Some(slot) = interiors.pop() {
            if self.marked(slot, Mark::Possible) {
                interiors.extend(self.objects.targets(slot).map(|(target, _)| target.slot));
            }
        }
    }

    /// Marks an object that has no mark; returns whether it had none.
    fn marked(&mut self, slot: u32, mark: Mark) -> bool {
        let held = &mut self.objects.node_mut(slot).data;
        let is_new = held.mark == Mark::None;
        if is_new {
            held.mark = mark;
        }
        is_new
    }

    /// Marks what is lost: in order of allocation, an object without a mark leads a group, until another leads to it.
    fn mark_lost(&mut self, slots: &[u32]) {
        if self.judged.is_none() {
            return;
        }
        let mut open = Vec::new();
        for &leader in slots {
            if !self.marked(leader, Mark::Definite) {
                continue;
            }
            open.extend(self.objects.targets(leader).map(|(target, _)| target.slot));
            while let Some(slot) = open.pop() {
                let mark = &mut self.objects.node_mut(slot).data.mark;
                let was = *mark;
                if slot != leader && matches!(was, Mark::None | Mark::Definite) {
                    *mark = Mark::Indirect(leader);
                }
                // What another leader leads to is marked already.
                if was == Mark::None {
                    open.extend(self.objects.targets(slot).map(|(target, _)| target.slot));
                }
            }
        }
    }

    fn never_freed(&mut self, slot: u32) -> NeverFreed {
        let kind = self.kind(slot);
        let clock_bytes = self.clock_bytes;
        let node = self.objects.node_mut(slot);
        let held = &node.data;
        let touched_bytes = held.kept.map(|last| last.map_or(held.born_bytes, |touch| touch.clock_bytes));
        NeverFreed {
            site: held.site,
            size: node.size,
            kind,
            idle_bytes: touched_bytes.map(|touched| clock_bytes.saturating_sub(touched)),
            is_untouched: held.kept == Some(None),
        }
    }

    fn kind(&mut self, slot: u32) -> Kind {
        let held = &self.objects.node_mut(slot).data;
        match held.mark {
            _ if held.is_unsure || self.judged.is_none() => Kind::Unjudged,
            Mark::Reachable => Kind::Reachable,
            Mark::Possible => Kind::Possible,
            Mark::Definite => Kind::Definite,
            Mark::Indirect(leader) => Kind::Indirect { leader_site: self.leader_site(leader) },
            Mark::None => Kind::Unjudged,
        }
    }

    /// The site of the object that leads a group, whose leader may have been found to be led to.
    fn leader_site(&mut self, mut leader: u32) -> u32 {
        let mut passed = Vec::new();
        while let Mark::Indirect(next) = self.objects.node_mut(leader).data.mark {
            passed.push(leader);
            leader = next;
        }
        for slot in passed {
            self.objects.node_mut(slot).data.mark = Mark::Indirect(leader);
        }
        self.objects.node_mut(leader).data.site
    }
}

#[cfg(test)]
mod tests;
