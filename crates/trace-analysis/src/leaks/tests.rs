//! Rows of made-up traces.

use heaptoll_callsites::WholeFrame;
use heaptoll_trace::graph::{AllocationKind, Event, FreeCause, RootKind};
use heaptoll_trace::{EventKind, Frame, Site, Sites};

use super::*;
use crate::stacks::CallSites;

/// Site 1 is `f`, 2 is `g`, 3 is `f` by way of the standard library, so that it reads as 1 does.
fn sites() -> Sites {
    let frame = |function: &str| Frame { function: function.into(), ..Frame::default() };
    Sites {
        sites: [vec![], vec![0], vec![1], vec![2, 0]].map(|frames| Site { frames }).into(),
        frames: ["f", "g", "std::a"].map(frame).into(),
    }
}

fn allocate(object: u64, site: u32, size: u64) -> Event {
    Event::Allocate { object, size, site, thread: 0, kind: AllocationKind::Plain, align_log2: 0 }
}

fn figures(events: &[Event], suppress: &dyn Fn(&[WholeFrame]) -> bool) -> LeakFigures {
    let mut leaks = GraphLeaks::default();
    leaks.events(events, 0, false);
    let sites = sites();
    let mut call_sites = CallSites::new(&sites, 3);
    leaks.finish(0).figures(By { call_sites: Some(&mut call_sites), suppress })
}

fn some() -> Vec<Event> {
    let edge = |from, to| Event::Edge { from, offset: 0, to, to_offset: 0 };
    vec![
        allocate(0, 1, 10),
        allocate(1, 3, 20),
        allocate(2, 2, 1000),
        allocate(3, 2, 50),
        allocate(4, 1, 100),
        Event::Free { object: 4, thread: 0, cause: FreeCause::Free, last_touch: None },
        edge(0, 2),
        Event::RootsBegin { clock_bytes: 1180 },
        Event::Root { object: 3, offset: 0, kind: RootKind::Stack },
        Event::RootsEnd { whole: true },
        Event::Kept { object: 3, last_touch: None },
    ]
}

#[test]
fn what_is_lost_with_an_object_counts_at_its_site_and_stacks_that_read_alike_are_one_row() {
    let found = figures(&some(), LEAVE_NONE_OUT);
    let sum = |objects, bytes| Sum { objects, bytes };
    assert_eq!(found.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["f", "g"]);
    let [f, g] = &found.rows[..] else { panic!("two rows") };
    assert_eq!((f.stacks, f.kinds.definite, f.led, f.lost()), (2, sum(2, 30), sum(1, 1000), sum(3, 1030)));
    assert_eq!((g.kinds.indirect, g.kinds.reachable, g.led), (sum(1, 1000), sum(1, 50), sum(0, 0)));
    assert_eq!((found.kinds.definite, found.kinds.never_freed()), (sum(2, 30), sum(4, 1080)));
    assert_eq!((found.allocated, found.clock_bytes, found.is_short), (sum(5, 1180), 1180, true));
    // Made after 1030 of 1180 bytes: not before the second half.
    assert_eq!(found.kinds.idle, sum(0, 0));
}

#[test]
fn what_is_not_touched_in_the_second_half_is_idle() {
    let mut events = some();
    events.insert(5, allocate(5, 1, 2000));
    for event in &mut events {
        if let Event::RootsBegin { clock_bytes } = event {
            *clock_bytes += 2000;
        }
    }
    let found = figures(&events, LEAVE_NONE_OUT);
    let row = found.rows.iter().find(|row| row.name == "g").expect("g");
    assert_eq!((row.kinds.idle.bytes, row.kinds.untouched.bytes), (50, 50));
    assert!(row.idle_share.is_some_and(|share| (0.6..1.0).contains(&share)), "{row:?}");
}

#[test]
fn suppressed_stacks_are_summed_up_and_in_no_row() {
    let is_f = |stack: &[WholeFrame]| stack.iter().any(|frame| frame.function == "f");
    let found = figures(&some(), &is_f);
    assert_eq!(found.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["g"]);
    assert_eq!((found.suppressed.stacks, found.suppressed.kinds.definite.objects), (2, 2));
    assert_eq!(found.kinds.definite.objects, 0);
}

#[test]
fn a_site_that_grows_is_found_among_those_that_do_not() {
    let mut events = Vec::new();
    for object in 0..3000_u64 {
        let site = [1, 2][object as usize % 2];
        events.push(allocate(object, site, 32));
        if site == 2 && object > 200 {
            events.push(Event::Free { object, thread: 0, cause: FreeCause::Free, last_touch: None });
        }
    }
    let found = figures(&events, LEAVE_NONE_OUT);
    assert_eq!(found.growing.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["f"]);
    let slope = found.growing[0].rise.per_mib;
    // Half of what is allocated.
    assert!((480_000.0..570_000.0).contains(&slope.value) && slope.low > 0.0, "{slope:?}");
    assert_eq!(found.growing[0].rise.per_s, None);
    assert!(found.rise_of_all.is_some());
}

#[test]
fn what_the_c_library_keeps_is_in_no_row_and_does_not_count_as_growth() {
    let mut sites = sites();
    sites.frames[0].function = "_dl_allocate_tls".into();
    sites.frames[0].object = "/lib64/ld-linux-x86-64.so.2".into();
    sites.sites[1].frames = vec![0, 1];
    let found = |events: &[Event]| {
        let mut leaks = GraphLeaks::default();
        leaks.events(events, 0, false);
        let mut call_sites = CallSites::new(&sites, 3);
        leaks.finish(0).figures(By { call_sites: Some(&mut call_sites), suppress: LEAVE_NONE_OUT })
    };
    let some = found(&some());
    let kept: Vec<_> = some
        .kept
        .iter()
        .map(|site| (site.caller.as_str(), site.name.as_str(), site.kinds.definite))
        .collect();
    assert_eq!(kept[0], ("_dl_allocate_tls", "g", Sum { objects: 1, bytes: 10 }));
    assert!(some.rows.iter().all(|row| row.kinds.definite.bytes != 10), "{:?}", some.rows);
    assert_eq!(some.kinds.never_freed().plus(some.kept_by_library()), Sum { objects: 4, bytes: 1080 });
    let freed = {
        let mut leaks = GraphLeaks::default();
        leaks.events(&[allocate(0, 1, 32), allocate(1, 1, 5)], 0, false);
        let cause = FreeCause::Free;
        leaks.events_after_exit(&[Event::Free { object: 0, thread: 0, cause, last_touch: None }]);
        let mut call_sites = CallSites::new(&sites, 3);
        leaks.finish(0).figures(By { call_sites: Some(&mut call_sites), suppress: LEAVE_NONE_OUT })
    };
    // Before, the sum had what the library freed after exit, and its rows did not.
    assert_eq!(freed.kept_by_library(), Sum { objects: 1, bytes: 5 });
    assert_eq!(freed.kept.iter().map(|site| site.kinds.never_freed().objects).collect::<Vec<_>>(), [1]);
    let threads = found(&(0..3000).map(|object| allocate(object, 1, 32)).collect::<Vec<_>>());
    assert_eq!(
        (threads.kept_by_library().objects, threads.growing.len(), threads.rise_of_all),
        (3000, 0, None)
    );
}

/// Before, what `main` freed before it returned was gone when growth was judged.
#[test]
fn growth_is_judged_before_the_last_frees() {
    let made = (0..3000).map(|object| allocate(object, 1, 32));
    let freed =
        (0..3000).map(|object| Event::Free { object, thread: 0, cause: FreeCause::Free, last_touch: None });
    let found = figures(&made.clone().chain(freed.clone()).collect::<Vec<_>>(), LEAVE_NONE_OUT);
    assert_eq!((found.growing.len(), found.growing[0].at_end.objects), (1, 3000));
    assert_eq!((found.freed_last.objects, found.kinds.never_freed().objects), (3000, 0));
    // A run too short to show growth said that 3005 objects were freed at its end, and not whose.
    let f = FreedLast { name: "f".into(), freed: Sum { objects: 3000, bytes: 96_000 } };
    assert_eq!(found.freed_last_sites, [f]);
    // In phases: each frees what it has made.
    let phases = made.chain(freed).collect::<Vec<_>>().repeat(3);
    let found = figures(&phases, LEAVE_NONE_OUT);
    assert_eq!((found.growing.len(), found.rise_of_all, found.freed_last.objects), (0, None, 3000));
    assert_eq!(found.freed_last_sites.len(), 1, "the last phase");
}

#[test]
fn where_no_call_site_grows_but_all_do_those_are_named_that_hold_most() {
    // `g` makes what `f` has made before; so each grows at another time.
    let events: Vec<Event> =
        (0..3000).map(|object| allocate(object, 1 + (object >= 1400) as u32, 32)).collect();
    let found = figures(&events, LEAVE_NONE_OUT);
    assert_eq!((found.growing.len(), found.rise_of_all.is_some()), (0, true));
    let most: Vec<_> = found.grown_most.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(most, ["g", "f"]);
    let is_g = |stack: &[WholeFrame]| stack.iter().any(|frame| frame.function == "g");
    assert_eq!(figures(&events, &is_g).rise_of_all, None, "suppressed");
}

/// Before, the site of the waves was named, which keeps nothing.
#[test]
fn where_all_grow_beneath_waves_the_site_that_keeps_is_named() {
    let mut events = Vec::new();
    let mut object = 0;
    let mut add = |events: &mut Vec<Event>, site, size| {
        events.push(allocate(object, site, size));
        object += 1;
        object - 1
    };
    let free = |object| Event::Free { object, thread: 0, cause: FreeCause::Free, last_touch: None };
    for _ in 0..9 {
        let wave: Vec<u64> = (0..500).map(|_| add(&mut events, 1, 1000)).collect();
        events.extend(wave.into_iter().map(free));
        add(&mut events, 2, 5000);
    }
    // The last wave goes on.
    for _ in 0..250 {
        add(&mut events, 1, 1000);
    }
    let found = figures(&events, LEAVE_NONE_OUT);
    assert!(found.growing.is_empty() && found.rise_of_all.is_some(), "{:?}", found.growing);
    let most: Vec<_> = found.grown_most.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(most, ["g"]);
}

#[test]
fn what_is_freed_after_exit_was_live_and_grew_and_is_summed_up_apart() {
    let object = |object: u64| allocate(object, 1, 32);
    let free = |object| Event::Free { object, thread: 0, cause: FreeCause::Free, last_touch: None };
    let mut leaks = GraphLeaks::default();
    leaks.events(&(0..3000).map(object).collect::<Vec<_>>(), 0, false);
    let root = Event::Root { object: 2999, offset: 0, kind: RootKind::Static };
    leaks.events(
        &[Event::RootsBegin { clock_bytes: 96_000 }, root, Event::RootsEnd { whole: true }],
        0,
        false,
    );
    let after = [allocate(3000, 2, 1 << 20), free(3000), free(2999), free(7)];
    leaks.events_after_exit(&after);
    leaks.events_after_exit(&[Event::Kept { object: 8, last_touch: None }]);
    let sites = sites();
    let mut call_sites = CallSites::new(&sites, 3);
    let found = leaks.finish(0).figures(By { call_sites: Some(&mut call_sites), suppress: LEAVE_NONE_OUT });
    let kinds = &found.kinds;
    assert_eq!(
        (kinds.reachable.objects, kinds.definite.objects, kinds.freed_after_exit.objects),
        (1, 2999, 2)
    );
    assert_eq!((kinds.live_at_exit().objects, kinds.never_freed().objects), (3000, 2998));
    assert_eq!((found.allocated.objects, found.clock_bytes, found.goes_on), (3000, 96_000, false));
    assert_eq!((found.growing.len(), found.growing[0].at_end.objects), (1, 3000));
    assert_eq!(found.rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["f"]);
}

fn plain(kind: EventKind, slot: u32, size: u64) -> heaptoll_trace::Event {
    heaptoll_trace::Event {
        kind,
        moved: false,
        align_log2: 0,
        thread: 0,
        slot,
        site: 1,
        size,
        usable: 0,
        time_ns: 0,
        latency_ns: 0,
    }
}

/// `trace stat` counted 1430 objects of a program, and `leaks` 1441: each realloc was one more.
#[test]
fn an_object_that_is_resized_is_one_object_in_traces_of_both_kinds() {
    let resized = |object, size| {
        let kind = AllocationKind::Resized;
        let before =
            Event::Free { object: object - 1, thread: 0, cause: FreeCause::Resized, last_touch: None };
        [Event::Allocate { object, size, site: 1, thread: 0, kind, align_log2: 0 }, before]
    };
    let graph = [allocate(0, 1, 10)].into_iter().chain(resized(1, 30)).chain(resized(2, 5));
    let mut leaks = NeverFreedOf::default();
    let realloc = |size| plain(EventKind::Realloc, 0, size);
    leaks.events(&[plain(EventKind::Malloc, 0, 10), realloc(30), realloc(5)]);
    let by = By { call_sites: None, suppress: LEAVE_NONE_OUT };
    let of_plain = leaks.finish(0).figures(by).allocated;
    assert_eq!(of_plain, Sum { objects: 1, bytes: 30 });
    assert_eq!(figures(&graph.collect::<Vec<_>>(), LEAVE_NONE_OUT).allocated, of_plain);
}

#[test]
fn in_a_plain_trace_as_well() {
    let made = |slot| plain(EventKind::Malloc, slot, 32);
    let freed = |slot| plain(EventKind::Free, slot, 32);
    let mut leaks = NeverFreedOf::default();
    leaks.events(&[made(0), made(1), made(2), freed(2)]);
    // Slots are used again: what is made after exit is no leak, freed or not.
    leaks.events_after_exit(&[made(2), made(3), freed(1), freed(2), made(1)]);
    let found = leaks.finish(0).figures(By { call_sites: None, suppress: LEAVE_NONE_OUT });
    let kinds = &found.kinds;
    assert_eq!((kinds.unjudged.objects, kinds.freed_after_exit.objects), (2, 1));
    assert_eq!((kinds.never_freed().objects, found.allocated.objects, found.misfits), (1, 3, 0));
}
