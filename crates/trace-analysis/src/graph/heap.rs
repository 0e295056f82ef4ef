//! The graph at the reader's position: objects in slots, their edges, and what was reachable at the last root point.

use heaptoll_trace::graph::{Event, LastTouch, RootKind};

use super::figures::{GraphFigures, RootCounts, RootPoint};
use super::objects::{Node, Objects};
use super::requests::Requests;

/// Bytes that are kept of a live object, without its edges.
pub const EACH_OBJECT: u64 = 160;

/// What is kept of a live object.
#[derive(Debug, Default)]
struct Seen {
    born_bytes: u64,
    /// Root points before its allocation.
    born_point: usize,
    /// Root point at which it was marked last, from 1; 0: at none.
    marked: usize,
    /// Clock of the first of the root points since which it was not reached.
    unreached_bytes: Option<u64>,
    is_hidden: bool,
}

/// Takes events in order.
#[derive(Debug, Default)]
pub struct GraphHeap {
    objects: Objects<Seen>,
    figures: GraphFigures,
    clock_bytes: u64,
    live_bytes: u64,
    /// Numbers of the events at which root points began, in order.
    points_at: Vec<u64>,
    /// By root point, from which on so many bytes more or less are used.
    used: Vec<i128>,
    /// Slots of the roots of the point that is read.
    roots: Vec<u32>,
    requests: Requests,
    /// Number of the next event, as far as it is known.
    event: u64,
}

impl GraphHeap {
    /// No objects yet.
    pub fn new() -> GraphHeap {
        GraphHeap::default()
    }

    /// Takes the events of a batch, the last of which comes before the event `next_event`.
    pub fn events(&mut self, events: &[Event], next_event: u64) {
        self.event = next_event.saturating_sub(events.len() as u64).max(self.event);
        for event in events {
            self.take(event);
            self.event += 1;
        }
    }

    fn take(&mut self, event: &Event) {
        match *event {
            Event::Allocate { object, size, .. } => self.allocate(object, size),
            Event::Free { object, last_touch, .. } => self.end(object, last_touch, true),
            Event::Kept { object, last_touch } => self.end(object, last_touch, false),
            Event::Edge { from, offset, to, to_offset } => {
                self.figures.edges_stored += 1;
                self.edge(from, offset, Some((to, to_offset != 0)));
            }
            Event::Clear { from, offset } => {
                self.figures.edges_cleared += 1;
                self.edge(from, offset, None);
            }
            Event::Touch { object } => {
                self.figures.touches += 1;
                if let Some(slot) = self.objects.slot(object) {
                    self.touched(slot);
                }
            }
            Event::RootsBegin { clock_bytes } => {
                self.clock_bytes = clock_bytes;
                self.roots.clear();
                self.points_at.push(self.event);
            }
            Event::Root { object, kind, .. } => self.root(object, kind),
            Event::RootsEnd { whole } => self.mark(whole),
            Event::Access { store, thread, .. } => {
                self.figures.accesses += 1;
                self.figures.stores += u64::from(store);
                self.requests.access(thread);
            }
            Event::RequestBegin { thread } => self.requests.begin(thread),
            Event::RequestEnd { thread } => self.requests.end(thread),
        }
    }

    fn allocate(&mut self, object: u64, size: u64) {
        self.figures.objects += 1;
        self.figures.bytes = self.figures.bytes.saturating_add(size);
        let seen = Seen { born_bytes: self.clock_bytes, born_point: self.points_at.len(), ..Seen::default() };
        self.clock_bytes = self.clock_bytes.saturating_add(size);
        self.live_bytes = self.live_bytes.saturating_add(size);
        self.figures.max_live_bytes = self.figures.max_live_bytes.max(self.live_bytes);
        self.objects.add(object, size, seen);
    }

    fn end(&mut self, object: u64, last_touch: Option<LastTouch>, is_freed: bool) {
        let Some(node) = self.objects.remove(object) else { return };
        self.live_bytes = self.live_bytes.saturating_sub(node.size);
        self.used_until(&node, last_touch);
        if is_freed {
            self.died(&node, last_touch);
        }
    }

    /// The object is used at the root points between its allocation and its last touch.
    fn used_until(&mut self, node: &Node<Seen>, last_touch: Option<LastTouch>) {
        let end = last_touch.map_or(0, |touch| self.points_at.partition_point(|&at| at < touch.event));
        if end <= node.data.born_point {
            return;
        }
        self.used.resize(self.used.len().max(end + 1), 0);
        self.used[node.data.born_point] += i128::from(node.size);
        self.used[end] -= i128::from(node.size);
    }

    fn died(&mut self, node: &Node<Seen>, last_touch: Option<LastTouch>) {
        let now = self.clock_bytes;
        let area = |since: u64| u128::from(node.size) * u128::from(now.saturating_sub(since));
        let bounds = &mut self.figures.bounds;
        bounds.objects += 1;
        bounds.bytes = bounds.bytes.saturating_add(node.size);
        bounds.lifetime += area(node.data.born_bytes);
        bounds.unused += area(last_touch.map_or(node.data.born_bytes, |touch| touch.clock_bytes));
        if let Some(since) = node.data.unreached_bytes {
            bounds.unreachable_before_free += 1;
            bounds.unreachable_before_free_bytes += node.size;
            bounds.unreachable += area(since);
        } else if node.data.born_point < self.points_at.len() {
            bounds.reachable_at_last_point += 1;
            bounds.reachable_at_last_point_bytes += node.size;
        } else {
            bounds.between_points += 1;
        }
    }

    fn edge(&mut self, from: u64, offset: u64, to: Option<(u64, bool)>) {
        self.objects.hold(from, offset, to);
        if self.objects.edges() > self.figures.max_edges {
            self.figures.max_edges = self.objects.edges();
            self.figures.bytes_at_max_edges = self.live_bytes;
        }
    }

    /// The program touches an object: if nothing led to it, something did that is not in the graph.
    fn touched(&mut self, slot: u32) {
        let node = self.objects.node_mut(slot);
        if node.data.unreached_bytes.take().is_some() {
            let hidden = &mut self.figures.hidden;
            hidden.at_points += 1;
            if !std::mem::replace(&mut node.data.is_hidden, true) {
                hidden.objects += 1;
                hidden.bytes += node.size;
            }
        }
    }

    fn root(&mut self, object: u64, kind: RootKind) {
        let RootCounts { register, stack, in_static, mapping } = &mut self.figures.roots;
        *match kind {
            RootKind::Register => register,
            RootKind::Stack => stack,
            RootKind::Static => in_static,
            RootKind::Mapping => mapping,
        } += 1;
        self.roots.extend(self.objects.slot(object));
    }

    /// Marks what can be reached. A root point that is not whole has no figures.
    fn mark(&mut self, whole: bool) {
        let point = self.points_at.len();
        let mut open = std::mem::take(&mut self.roots);
        let mut reachable_bytes = 0;
        while let Some(slot) = open.pop() {
            let node = self.objects.node_mut(slot);
            if std::mem::replace(&mut node.data.marked, point) == point {
                continue;
            }
            reachable_bytes += node.size;
            let not_marked = self.objects.targets(slot).filter(|(_, data)| data.marked != point);
            open.extend(not_marked.map(|(target, _)| target.slot));
        }
        if whole {
            let clock_bytes = self.clock_bytes;
            self.objects.for_each(|_, node| {
                if node.data.marked == point {
                    node.data.unreached_bytes = None;
                } else {
                    node.data.unreached_bytes.get_or_insert(clock_bytes);
                }
            });
        }
        let (clock_bytes, live_bytes) = (self.clock_bytes, self.live_bytes);
        self.figures.points.push(RootPoint { clock_bytes, live_bytes, reachable_bytes, used_bytes: 0 });
        self.roots = open;
    }

    /// The figures, when all events were taken. What is about the file is left to the caller.
    pub fn figures(mut self) -> GraphFigures {
        let mut used = 0_i128;
        for (point, change) in
            self.figures.points.iter_mut().zip(self.used.iter().chain(std::iter::repeat(&0)))
        {
            used += change;
            point.used_bytes = u64::try_from(used).unwrap_or(0);
        }
        self.figures.requests = self.requests.ended;
        self.figures.request_accesses = self.requests.accesses;
        self.figures
    }
}

#[cfg(test)]
mod tests;
