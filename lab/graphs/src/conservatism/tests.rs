//! Small graphs whose figures are known.

use heaptoll_trace::graph::{AllocationKind, LastTouch, RootKind};

use super::*;

fn allocate(object: u64, size: u64) -> Event {
    Event::Allocate { object, size, site: 0, thread: 0, kind: AllocationKind::Plain, align_log2: 0 }
}

fn touch(event: u64) -> Option<LastTouch> {
    (event != 0).then_some(LastTouch { event, clock_bytes: 0 })
}

/// The program frees it; its last touch is before the event of that number, or never (0).
fn free(object: u64, last_touch: u64) -> Event {
    Event::Free { object, thread: 0, cause: FreeCause::Free, last_touch: touch(last_touch) }
}

fn kept(object: u64, last_touch: u64) -> Event {
    Event::Kept { object, last_touch: touch(last_touch) }
}

fn edge(from: u64, to: u64, to_offset: u64) -> Event {
    Event::Edge { from, offset: 8 * to, to, to_offset }
}

fn roots(clock_bytes: u64, roots: &[(u64, RootKind, u64)]) -> Vec<Event> {
    let root = |&(object, kind, offset): &(u64, RootKind, u64)| Event::Root { object, kind, offset };
    let mut events = vec![Event::RootsBegin { clock_bytes }];
    events.extend(roots.iter().map(root));
    events.push(Event::RootsEnd { whole: true });
    events
}

/// The same with a program that goes on after its last root point.
pub fn going_on(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    let end =
        events.iter().rposition(|event| !matches!(event, Event::Kept { .. })).map_or(0, |last| last + 1);
    events.insert(end, Event::RequestEnd { thread: 0 });
    events
}

fn figures(events: &[Event]) -> ConservatismFigures {
    let events = &going_on(events);
    let mut lives = Lives::default();
    lives.events(events).expect("memory");
    let mut pass = Conservatism::new(&lives);
    pass.events(events, events.len() as u64, false);
    pass.figures()
}

fn kept_bytes(figures: &ConservatismFigures) -> Vec<u64> {
    figures.causes.iter().map(|cause| cause.kept.peak_bytes).collect()
}

#[test]
fn an_object_that_is_never_touched_again_counts_for_what_alone_leads_to_it() {
    use RootKind::{Mapping, Register, Stack, Static};
    let mut events: Vec<Event> = (0..8).map(|object| allocate(object, 1 << object)).collect();
    // 0 is used to the end and leads to 1; 2 to 7 are not touched again.
    events.push(edge(0, 1, 0));
    events.extend(roots(
        255,
        &[
            (0, Stack, 0),
            (1, Static, 0),
            (2, Register, 0),
            (3, Stack, 0),
            (4, Register, 0),
            (4, Stack, 0),
            (5, Static, 0),
            (6, Mapping, 0),
            (7, Stack, 0),
            (7, Mapping, 0),
        ],
    ));
    events.push(kept(0, 100));
    events.extend((1..8).map(|object| kept(object, 3)));
    let found = figures(&events);
    assert_eq!(kept_bytes(&found), [2, 4, 8, 16, 32, 64, 128]);
    let peaks = [found.live, found.used, found.required, found.reachable, found.at_least, found.at_most];
    assert_eq!(peaks.map(|level| level.peak_bytes), [255, 1, 3, 255, 0, 252]);
    assert_eq!((found.live.mean_bytes, found.at_most.of_live), (255.0, 252.0 / 255.0));
}

#[test]
fn what_a_dead_object_leads_to_counts_for_the_root_of_that() {
    let mut events = vec![allocate(0, 10), allocate(1, 20), allocate(2, 40)];
    events.extend([edge(0, 1, 0), edge(1, 2, 0)]);
    events.extend(roots(70, &[(0, RootKind::Stack, 0)]));
    // 2 is used later, but not by way of 0 and 1, which are never touched again: it is held elsewhere.
    events.extend([kept(0, 1), kept(1, 2), kept(2, 100)]);
    let found = figures(&events);
    assert_eq!(kept_bytes(&found), [0, 0, 30, 0, 0, 0, 0]);
    assert_eq!((found.used.peak_bytes, found.hidden.peak_bytes), (40, 0));
}

#[test]
fn what_was_unreachable_and_is_reached_again_is_kept_by_no_pointer() {
    let mut events = vec![allocate(0, 10), allocate(1, 20), allocate(2, 40)];
    events.extend(roots(70, &[(2, RootKind::Stack, 0)]));
    // A stale word, and a number in an object that is used later.
    events.push(edge(2, 1, 0));
    events.extend(roots(70, &[(0, RootKind::Stack, 0), (2, RootKind::Stack, 0)]));
    events.extend([kept(0, 1), kept(1, 2), kept(2, 100)]);
    let found = figures(&events);
    assert_eq!(kept_bytes(&found), [20, 0, 10, 0, 0, 0, 0]);
    let again: Vec<u64> = found.causes.iter().map(|cause| cause.again.peak_bytes).collect();
    assert_eq!(again, [20, 0, 10, 0, 0, 0, 0]);
    assert_eq!((found.at_least.peak_bytes, found.at_most.peak_bytes), (30, 30));
}

#[test]
fn what_a_hidden_pointer_held_is_not_reached_again_by_mistake() {
    let mut events = vec![allocate(0, 10)];
    events.extend(roots(10, &[]));
    events.push(Event::Touch { object: 0 });
    events.extend(roots(10, &[]));
    events.extend(roots(10, &[(0, RootKind::Register, 0)]));
    events.push(kept(0, 4));
    let found = figures(&events);
    assert_eq!((found.hidden.peak_bytes, found.at_least.peak_bytes, found.at_most.peak_bytes), (10, 0, 10));
}

#[test]
fn interior_pointers_of_stacks_and_of_the_heap_count_apart() {
    let mut events: Vec<Event> = (0..5).map(|object| allocate(object, 1 << object)).collect();
    events.extend([edge(0, 1, 8), edge(2, 3, 0)]);
    let stack = RootKind::Stack;
    events.extend(roots(31, &[(0, stack, 0), (2, stack, 4), (4, RootKind::Static, 4)]));
    // 1, to which only the middle of a word in 0 leads, is used later.
    events.extend([kept(0, 100), kept(1, 100), kept(2, 3), kept(3, 4), kept(4, 5)]);
    let found = figures(&events);
    let freed: Vec<(u64, u64)> =
        found.interior.iter().map(|rule| (rule.unused.peak_bytes, rule.used.peak_bytes)).collect();
    assert_eq!(freed, [(16, 2), (4 + 8 + 16, 2)]);
}

#[test]
fn unreachability_comes_before_or_after_the_free() {
    let mut events: Vec<Event> = (0..4).map(|object| allocate(object, 10)).collect();
    let stack = RootKind::Stack;
    events.push(edge(1, 2, 0));
    events.extend(roots(40, &[(1, stack, 0), (3, stack, 0)]));
    events.push(allocate(4, 100));
    // 0 was unreachable, 1 still leads to 2, 3 is undecided, 4 lived at no point; 5 and 6 are never freed.
    events.extend([free(0, 1), free(2, 1), free(3, 1), free(4, 0), allocate(5, 1), allocate(6, 2)]);
    events.extend(roots(143, &[(5, stack, 0), (1, stack, 0)]));
    events.extend([kept(1, 3), kept(5, 3), kept(6, 3)]);
    let ends = figures(&events).ends;
    let objects = [ends.freed, ends.before, ends.pointed, ends.undecided, ends.between, ends.never_freed];
    assert_eq!(objects.map(|count| count.objects), [4, 1, 1, 1, 1, 3]);
    assert_eq!((ends.before.bytes, ends.before_by.mean_bytes), (10, 100.0));
    assert_eq!((ends.before_by.median_bytes, ends.before_by.percentile_90_bytes), (100, 100));
    assert_eq!((ends.undecided_within.mean_bytes, ends.lost), (100.0, Count { objects: 1, bytes: 2 }));
}

#[test]
fn what_is_kept_has_a_time_until_its_free() {
    let mut events = vec![allocate(0, 10), allocate(1, 30)];
    events.extend(roots(40, &[(0, RootKind::Stack, 0), (1, RootKind::Stack, 0)]));
    events.extend([allocate(2, 60), free(0, 1), kept(1, 1), kept(2, 0)]);
    let until = figures(&events).causes[Cause::Stacks as usize].until_free;
    assert_eq!(until, UntilFree { mean_bytes: Some(60.0), never_freed: 0.75 });
}

#[test]
fn points_that_are_not_whole_and_all_after_missing_events_are_left_out() {
    let mut events = vec![allocate(0, 10), Event::RootsBegin { clock_bytes: 10 }];
    events.push(Event::RootsEnd { whole: false });
    events.extend(roots(10, &[]));
    let more = roots(10, &[]);
    let mut lives = Lives::default();
    lives.events(&events).expect("memory");
    let mut pass = Conservatism::new(&lives);
    pass.events(&events, 5, false);
    pass.events(&more, 20, true);
    let found = pass.figures();
    assert_eq!((found.points.len(), found.left_out, found.ends.unknown), (1, 2, 1));
    assert_eq!(found.used.peak_bytes, 10, "an object whose end is not in the trace may be used");
}

#[test]
fn a_point_at_the_programs_end_is_none() {
    let mut events = vec![allocate(0, 10)];
    events.extend(roots(10, &[(0, RootKind::Stack, 0)]));
    events.push(Event::Touch { object: 0 });
    events.extend(roots(10, &[(0, RootKind::Stack, 0)]));
    events.push(kept(0, 4));
    let mut lives = Lives::default();
    lives.events(&events).expect("memory");
    let mut pass = Conservatism::new(&lives);
    pass.events(&events, events.len() as u64, false);
    assert_eq!(pass.figures().points.len(), 1);
    assert_eq!(figures(&events).points.len(), 2);
}

#[test]
fn sizes_out_of_all_bounds_are_no_overflow() {
    let mut events: Vec<Event> = (0..3).map(|object| allocate(object, u64::MAX - object)).collect();
    for _ in 0..3 {
        events.extend(roots(u64::MAX, &[(0, RootKind::Stack, 0), (1, RootKind::Stack, 1)]));
    }
    events.extend([free(0, 1), free(1, 0), free(2, 0)]);
    let found = figures(&events);
    assert_eq!((found.live.peak_bytes, found.at_most.peak_bytes), (u64::MAX, u64::MAX));
}
