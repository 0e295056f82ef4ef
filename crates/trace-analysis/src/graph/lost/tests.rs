//! Small graphs whose kinds are those of memcheck's manual.

use heaptoll_trace::graph::{AllocationKind, FreeCause, RootKind};

use super::*;

fn allocate(object: u64) -> Event {
    let site = object as u32;
    Event::Allocate { object, size: 1 << object, site, thread: 0, kind: AllocationKind::Plain, align_log2: 0 }
}

fn edge(from: u64, to: u64, to_offset: u64) -> Event {
    Event::Edge { from, offset: 8 * to, to, to_offset }
}

/// A root point with roots at these offsets.
fn point(clock_bytes: u64, roots: &[(u64, u64)]) -> Vec<Event> {
    let root = |&(object, offset): &(u64, u64)| Event::Root { object, offset, kind: RootKind::Static };
    let mut events = vec![Event::RootsBegin { clock_bytes }];
    events.extend(roots.iter().map(root));
    events.push(Event::RootsEnd { whole: true });
    events
}

fn kept(object: u64, touched_bytes: Option<u64>) -> Event {
    let last_touch = touched_bytes.map(|clock_bytes| LastTouch { event: 0, clock_bytes });
    Event::Kept { object, last_touch }
}

fn kinds(events: &[Event]) -> Vec<Kind> {
    let mut lost = Lost::default();
    lost.events(events, false);
    lost.finish().iter().map(|object| object.kind).collect()
}

fn led_by(leader_site: u32) -> Kind {
    Kind::Indirect { leader_site }
}

/// The nine cases of memcheck's manual, in its order: one object, or A (even) with B.
#[test]
fn kinds_are_those_of_the_nine_cases() {
    use Kind::{Definite, Possible, Reachable};
    let of = |roots: &[(u64, u64)], edges: &[Event]| {
        let mut events = vec![allocate(0), allocate(1)];
        events.extend(edges);
        events.extend(point(3, roots));
        kinds(&events)
    };
    let (start, inside) = ([edge(0, 1, 0)], [edge(0, 1, 4)]);
    assert_eq!(of(&[(0, 0), (1, 0)], &[]), [Reachable, Reachable], "1");
    assert_eq!(of(&[(0, 0)], &start), [Reachable, Reachable], "2");
    assert_eq!(of(&[], &[]), [Definite, Definite], "3");
    assert_eq!(of(&[], &start), [Definite, led_by(0)], "4");
    assert_eq!(of(&[(0, 4), (1, 0)], &[]), [Possible, Reachable], "5");
    assert_eq!(of(&[(0, 0)], &inside), [Reachable, Possible], "6");
    assert_eq!(of(&[(0, 4)], &start), [Possible, Possible], "7");
    assert_eq!(of(&[(0, 4)], &inside), [Possible, Possible], "8");
    assert_eq!(of(&[], &inside), [Definite, led_by(0)], "9");
}

#[test]
fn one_object_of_a_ring_is_definite_and_an_object_that_leads_to_a_leader_takes_its_place() {
    use Kind::Definite;
    let mut events: Vec<Event> = (0..6).map(allocate).collect();
    // A ring of 0, 1, 2; 5 leads to 4, which leads to 3 and to itself.
    events.extend([edge(0, 1, 0), edge(1, 2, 0), edge(2, 0, 0)]);
    events.extend([edge(4, 3, 0), edge(4, 4, 0), edge(5, 4, 0)]);
    events.extend(point(63, &[]));
    assert_eq!(kinds(&events), [Definite, led_by(0), led_by(0), led_by(5), led_by(5), Definite]);
    // 3 leads to the first of the ring: nothing of it is definite any more.
    events.insert(6, edge(3, 0, 0));
    assert_eq!(kinds(&events), [led_by(5), led_by(5), led_by(5), led_by(5), led_by(5), Definite]);
}

#[test]
fn what_lives_on_after_the_last_point_counts_as_reachable() {
    let mut events: Vec<Event> = (0..3).map(allocate).collect();
    events.extend(point(7, &[(2, 0)]));
    events.extend([allocate(3), Event::Touch { object: 1 }]);
    let mut lost = Lost::default();
    lost.events(&events, false);
    assert!(lost.goes_on());
    assert_eq!((lost.judged_at_bytes(), lost.clock_bytes()), (Some(7), 15));
    let kinds: Vec<Kind> = lost.finish().iter().map(|object| object.kind).collect();
    assert_eq!(kinds, [Kind::Definite, Kind::Reachable, Kind::Reachable, Kind::Reachable]);
}

#[test]
fn nothing_is_judged_without_a_whole_point_or_across_missing_events() {
    let cut = [allocate(0), Event::RootsBegin { clock_bytes: 1 }, Event::RootsEnd { whole: false }];
    assert_eq!(kinds(&cut), [Kind::Unjudged]);
    let mut lost = Lost::default();
    lost.events(&[allocate(0)], false);
    let mut rest = vec![allocate(1), edge(0, 1, 0), allocate(2)];
    rest.extend(point(7, &[]));
    lost.events(&rest, true);
    let kinds: Vec<Kind> = lost.finish().iter().map(|object| object.kind).collect();
    assert_eq!(kinds, [Kind::Unjudged, Kind::Reachable, Kind::Definite]);
}

#[test]
fn an_edge_ends_with_its_object_and_the_last_touch_is_known_at_the_end() {
    let free = Event::Free { object: 0, thread: 0, cause: FreeCause::Free, last_touch: None };
    let mut events = vec![allocate(0), allocate(1), edge(0, 1, 0), free, allocate(2)];
    events.extend(point(7, &[(2, 0)]));
    events.extend([kept(1, Some(3)), kept(2, None)]);
    let mut lost = Lost::default();
    lost.events(&events, false);
    assert!(!lost.goes_on());
    let found = lost.finish();
    assert_eq!((found[0].kind, found[0].idle_bytes, found[0].is_untouched), (Kind::Definite, Some(4), false));
    assert_eq!((found[1].kind, found[1].idle_bytes, found[1].is_untouched), (Kind::Reachable, Some(4), true));
}
