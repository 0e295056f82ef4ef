//! Small graphs whose figures are known.

use heaptoll_trace::graph::{AllocationKind, FreeCause};

use super::*;

fn allocate(object: u64, size: u64) -> Event {
    Event::Allocate { object, size, site: 0, thread: 0, kind: AllocationKind::Plain, align_log2: 0 }
}

fn free(object: u64, last_touch: Option<(u64, u64)>) -> Event {
    let last_touch = last_touch.map(|(event, clock_bytes)| LastTouch { event, clock_bytes });
    Event::Free { object, thread: 0, cause: FreeCause::Free, last_touch }
}

fn edge(from: u64, offset: u64, to: u64) -> Event {
    Event::Edge { from, offset, to, to_offset: 0 }
}

fn roots(clock_bytes: u64, objects: &[u64]) -> Vec<Event> {
    let root = |&object: &u64| Event::Root { object, offset: 0, kind: RootKind::Stack };
    let mut events = vec![Event::RootsBegin { clock_bytes }];
    events.extend(objects.iter().map(root));
    events.push(Event::RootsEnd { whole: true });
    events
}

fn figures(events: &[Event]) -> GraphFigures {
    let mut heap = GraphHeap::new();
    heap.events(events, events.len() as u64);
    heap.figures(&mut CallSites::new(&heaptoll_trace::Sites::default(), 3))
}

#[test]
fn what_roots_lead_to_over_edges_is_reachable() {
    let mut events = vec![allocate(0, 10), allocate(1, 20), allocate(2, 40), allocate(3, 80)];
    events.extend([edge(0, 0, 1), edge(1, 8, 0), edge(2, 0, 1), edge(3, 0, 3)]);
    events.extend(roots(150, &[0]));
    events.push(Event::Clear { from: 0, offset: 0 });
    events.extend(roots(150, &[0, 3]));
    let found = figures(&events);
    let reachable: Vec<u64> = found.points.iter().map(|point| point.reachable_bytes).collect();
    assert_eq!(reachable, [30, 90]);
    assert_eq!(found.points[0].live_bytes, 150);
    assert_eq!((found.edges_stored, found.edges_cleared, found.max_edges), (4, 1, 4));
    assert_eq!((found.roots.stack, found.hidden.objects), (3, 0));
}

#[test]
fn an_edge_ends_with_either_of_its_objects() {
    let mut events = vec![allocate(0, 10), allocate(1, 20), edge(0, 0, 1), free(1, None), allocate(2, 40)];
    // In the slot of object 1, to which a word of object 0 still leads.
    events.extend(roots(70, &[0]));
    events.extend([edge(2, 0, 0), edge(2, 8, 2), free(2, None), edge(0, 8, 0)]);
    let found = figures(&events);
    assert_eq!(found.points[0].reachable_bytes, 10);
    assert_eq!(found.max_edges, 2);
}

#[test]
fn a_touched_object_to_which_nothing_led_is_hidden() {
    let mut events = vec![allocate(0, 10), allocate(1, 20)];
    events.extend(roots(30, &[0]));
    events.extend([Event::Touch { object: 0 }, Event::Touch { object: 1 }]);
    events.extend(roots(30, &[0]));
    events.push(Event::Touch { object: 1 });
    let hidden = figures(&events).hidden;
    assert_eq!((hidden.objects, hidden.bytes, hidden.at_points), (1, 20, 2));
}

#[test]
fn bounds_of_lifetimes_are_the_last_touch_and_the_free() {
    // Touched before event 2, unreachable at the point of clock 30, freed at clock 130.
    let mut events = vec![allocate(0, 10), allocate(1, 20)];
    events.extend(roots(30, &[1]));
    events.extend([allocate(2, 100), free(0, Some((2, 10))), free(1, Some((4, 130))), free(2, None)]);
    let found = figures(&events);
    let bounds = found.bounds;
    assert_eq!((bounds.objects, bounds.bytes), (3, 130));
    assert_eq!(bounds.lifetime, 10 * 130 + 20 * 120 + 100 * 100);
    assert_eq!(bounds.unused, 10 * 120 + 100 * 100);
    assert_eq!((bounds.unreachable_before_free, bounds.unreachable), (1, 10 * 100));
    assert_eq!((bounds.reachable_at_last_point, bounds.between_points), (1, 1));
    assert_eq!(found.points[0].used_bytes, 20);
}
