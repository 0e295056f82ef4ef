//! When each object can be reached no more, from a trace of a run in which nothing was freed: as a conservative collector
//! finds it that ignores the program's frees.
//!
//! At each root point everything is marked that the roots lead to. What is not marked and is used later was held by a
//! hidden pointer: it is kept, and with it what it leads to. All other objects that are not marked are dead, and leave the
//! graph.

use heaptoll_trace::graph::Event;
use heaptoll_trace_analysis::graph::objects::Objects;

/// What is known of an object before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Requested bytes.
    pub size: u64,
    /// How many objects had been allocated when it was used last.
    pub last: u64,
}

/// What is kept of an object in the graph.
#[derive(Debug, Default)]
struct Seen {
    /// Its place among those that are followed.
    followed: Option<usize>,
    /// Root point at which it was marked last, from 1; 0: at none.
    marked: usize,
    is_hidden: bool,
}

/// Why there are no points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPoints {
    /// Events are missing.
    Cut,
    /// The object of this number, among those that are followed, is another than the one that is known, or there is none.
    Differs(u64),
}

/// Points of unreachability. Positions are numbers of objects allocated before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreachablePoints {
    /// Positions of the root points.
    pub at: Vec<u64>,
    /// By object: position of the root point at which it left the graph.
    pub unreachable: Vec<Option<u64>>,
    /// Objects that nothing led to at a root point and that were used later, and their bytes.
    pub hidden_objects: u64,
    /// See `hidden_objects`.
    pub hidden_bytes: u64,
}

/// Takes the events of a trace in order.
#[derive(Debug)]
pub struct Unreachability<'a> {
    /// Number of the first object that is followed. Those before it are in the graph until they are freed.
    first: u64,
    uses: &'a [Use],
    objects: Objects<Seen>,
    /// Objects that are followed, so far.
    now: u64,
    roots: Vec<u32>,
    found: UnreachablePoints,
    failed: Option<NoPoints>,
}

impl<'a> Unreachability<'a> {
    /// No events yet. `uses` is of each object from the one with number `first` on.
    pub fn new(first: u64, uses: &'a [Use]) -> Unreachability<'a> {
        Unreachability {
            first,
            uses,
            objects: Objects::default(),
            now: 0,
            roots: Vec::new(),
            found: UnreachablePoints { unreachable: vec![None; uses.len()], ..UnreachablePoints::default() },
            failed: None,
        }
    }

    /// Takes the events of a batch. Where events are missing before it, there are no points.
    pub fn events(&mut self, events: &[Event], after_gap: bool) {
        if after_gap {
            self.failed.get_or_insert(NoPoints::Cut);
        }
        for event in events {
            if self.failed.is_some() {
                return;
            }
            self.take(event);
        }
    }

    fn take(&mut self, event: &Event) {
        match *event {
            Event::Allocate { object, size, .. } => self.allocate(object, size),
            Event::Free { object, .. } | Event::Kept { object, .. } => {
                self.objects.remove(object);
            }
            Event::Edge { from, offset, to, to_offset } => {
                self.objects.hold(from, offset, Some((to, to_offset != 0)));
            }
            Event::Clear { from, offset } => self.objects.hold(from, offset, None),
            Event::RootsBegin { .. } => self.roots.clear(),
            Event::Root { object, .. } => self.roots.extend(self.objects.slot(object)),
            Event::RootsEnd { whole: true } if self.now > 0 => self.point(),
            Event::RootsEnd { whole: false } => self.failed = Some(NoPoints::Cut),
            Event::RootsEnd { .. }
            | Event::Touch { .. }
            | Event::Access { .. }
            | Event::RequestBegin { .. }
            | Event::RequestEnd { .. } => {}
        }
    }

    fn allocate(&mut self, object: u64, size: u64) {
        let followed = object.checked_sub(self.first);
        if let Some(place) = followed {
            if self.uses.get(place as usize).is_none_or(|known| known.size != size) || place != self.now {
                self.failed = Some(NoPoints::Differs(place));
            }
            self.now = place + 1;
        }
        let followed = followed.map(|place| place as usize);
        self.objects.add(object, size, Seen { followed, ..Seen::default() });
    }

    fn point(&mut self) {
        self.found.at.push(self.now);
        let roots = std::mem::take(&mut self.roots);
        self.mark(roots);
        let hidden = self.hidden();
        self.mark(hidden);
        for object in self.unmarked() {
            if let Some(node) = self.objects.remove(object)
                && let Some(place) = node.data.followed
            {
                self.found.unreachable[place] = Some(self.now);
            }
        }
    }

    fn mark(&mut self, mut open: Vec<u32>) {
        let point = self.found.at.len();
        while let Some(slot) = open.pop() {
            if std::mem::replace(&mut self.objects.node_mut(slot).data.marked, point) != point {
                let not_marked = self.objects.targets(slot).filter(|(_, data)| data.marked != point);
                open.extend(not_marked.map(|(target, _)| target.slot));
            }
        }
        self.roots = open;
    }

    /// Slots of the objects that nothing leads to and that are used later.
    fn hidden(&mut self) -> Vec<u32> {
        let (point, now, uses, found) = (self.found.at.len(), self.now, self.uses, &mut self.found);
        let mut hidden = Vec::new();
        self.objects.for_each(|slot, node| {
            let is_used = node.data.followed.is_some_and(|place| uses[place].last > now);
            if node.data.marked != point && is_used {
                hidden.push(slot);
                if !std::mem::replace(&mut node.data.is_hidden, true) {
                    found.hidden_objects += 1;
                    found.hidden_bytes = found.hidden_bytes.saturating_add(node.size);
                }
            }
        });
        hidden
    }

    /// Objects that are followed and were not marked.
    fn unmarked(&mut self) -> Vec<u64> {
        let point = self.found.at.len();
        let mut unmarked = Vec::new();
        self.objects.for_each(|_, node| {
            if node.data.marked != point && node.data.followed.is_some() {
                unmarked.push(node.object);
            }
        });
        unmarked
    }

    /// The points, when all events were taken.
    ///
    /// # Errors
    /// [`NoPoints`].
    pub fn points(self) -> Result<UnreachablePoints, NoPoints> {
        match self.failed {
            Some(why) => Err(why),
            None if self.now != self.uses.len() as u64 => Err(NoPoints::Differs(self.now)),
            None => Ok(self.found),
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_trace::graph::{AllocationKind, FreeCause, RootKind};

    use super::*;

    fn allocate(object: u64) -> Event {
        let (size, kind) = (10 * object + 10, AllocationKind::Plain);
        Event::Allocate { object, size, site: 0, thread: 0, kind, align_log2: 0 }
    }

    fn edge(from: u64, to: u64) -> Event {
        Event::Edge { from, offset: 8, to, to_offset: 0 }
    }

    fn roots(objects: &[u64]) -> Vec<Event> {
        let root = |&object: &u64| Event::Root { object, offset: 0, kind: RootKind::Stack };
        let begin = Event::RootsBegin { clock_bytes: 0 };
        let end = Event::RootsEnd { whole: true };
        std::iter::once(begin).chain(objects.iter().map(root)).chain([end]).collect()
    }

    /// Points of objects from number 1 on, which are used last at these positions.
    fn points(last: &[u64], events: &[Event]) -> Result<UnreachablePoints, NoPoints> {
        let uses: Vec<Use> =
            (1..).zip(last).map(|(number, &last)| Use { size: 10 * number + 10, last }).collect();
        let mut found = Unreachability::new(1, &uses);
        found.events(events, false);
        found.points()
    }

    #[test]
    fn an_object_leaves_at_the_first_root_point_at_which_nothing_leads_to_it() {
        // Object 0 is from before main and holds 1, which holds 2.
        let mut events = vec![allocate(0), allocate(1), edge(0, 1), allocate(2), edge(1, 2)];
        events.extend(roots(&[0]));
        events.extend([allocate(3), Event::Clear { from: 1, offset: 8 }]);
        events.extend(roots(&[0, 3]));
        events.push(Event::Free { object: 0, thread: 0, cause: FreeCause::Free, last_touch: None });
        events.extend(roots(&[3]));
        let found = points(&[1, 2, 3], &events).expect("whole");
        assert_eq!((found.at, found.hidden_objects), (vec![2, 3, 3], 0));
        assert_eq!(found.unreachable, [Some(3), Some(3), None]);
    }

    #[test]
    fn what_is_used_later_is_kept_with_all_that_it_leads_to_and_counted() {
        let mut events = vec![allocate(0), allocate(1), allocate(2), edge(1, 2), allocate(3)];
        events.extend(roots(&[]));
        events.push(allocate(4));
        events.extend(roots(&[4]));
        let found = points(&[4, 2, 3, 4], &events).expect("whole");
        assert_eq!(found.unreachable, [Some(4), Some(4), Some(3), None]);
        assert_eq!((found.hidden_objects, found.hidden_bytes), (1, 20));
    }

    #[test]
    fn a_cycle_that_nothing_leads_to_is_unreachable() {
        let mut events = vec![allocate(0), allocate(1), allocate(2), edge(1, 2), edge(2, 1)];
        events.extend(roots(&[0]));
        assert_eq!(points(&[1, 2], &events).expect("whole").unreachable, [Some(2), Some(2)]);
    }

    #[test]
    fn another_sequence_and_missing_events_give_no_points() {
        let events = [allocate(0), allocate(1), allocate(2)];
        assert_eq!(points(&[1], &events), Err(NoPoints::Differs(1)));
        assert_eq!(points(&[1, 2, 3], &events), Err(NoPoints::Differs(2)));
        let other = Event::Allocate {
            object: 1,
            size: 7,
            site: 0,
            thread: 0,
            kind: AllocationKind::Plain,
            align_log2: 0,
        };
        assert_eq!(points(&[1, 2], &[allocate(0), other]), Err(NoPoints::Differs(0)));
        let mut cut = events.to_vec();
        cut.extend([Event::RootsBegin { clock_bytes: 0 }, Event::RootsEnd { whole: false }]);
        assert_eq!(points(&[1, 2], &cut), Err(NoPoints::Cut));
        let mut found = Unreachability::new(0, &[]);
        found.events(&[], true);
        assert_eq!(found.points(), Err(NoPoints::Cut));
    }
}
