//! The sums of profiles against those of `stat`, and times within a trace.

use heaptoll_trace::{Event, EventKind, Frame, Site};

use super::*;
use crate::stacks::CallSites;
use crate::stat::Stat;
use crate::subject;

fn event(kind: EventKind, slot: u32, size: u64, site: u32, time_ns: u64) -> Event {
    Event {
        kind,
        moved: false,
        align_log2: 0,
        thread: 0,
        slot,
        site,
        size,
        usable: size,
        time_ns,
        latency_ns: 0,
    }
}

fn sites(count: usize) -> Sites {
    Sites {
        sites: (0..count).map(|site| Site { frames: vec![site as u32, 0] }).collect(),
        frames: (0..count)
            .map(|frame| Frame { function: format!("f{frame}"), offset: frame as u64, ..Frame::default() })
            .collect(),
    }
}

fn of(events: &[Event], window: Window) -> Profile {
    let mut sums = StackSums::new(window, true);
    sums.events(events);
    sums.finish(&Header::default(), &sites(9), 0).0
}

/// The values of a stack by the name of its innermost function.
fn values_of(profile: &Profile, name: &str) -> Vec<u64> {
    let found = profile
        .stacks()
        .find(|stack| profile.frames_of(stack.call).next().is_some_and(|frame| frame.name() == name));
    found.map_or(Vec::new(), |stack| stack.values.to_vec())
}

/// Events of three sites that a simple generator makes: allocations, frees and resizes.
fn random_events(count: u64) -> Vec<Event> {
    let mut seed = 7_u64;
    let mut next = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut live = [false; 64];
    let mut events = Vec::new();
    for time in 0..count {
        let (slot, size, site) = (next(64) as usize, next(1000), 1 + next(8) as u32);
        let kind = match (live[slot], next(3)) {
            (false, _) => EventKind::Malloc,
            (true, 0) => EventKind::Realloc,
            (true, _) => EventKind::Free,
        };
        live[slot] = kind != EventKind::Free;
        events.push(event(kind, slot as u32, if live[slot] { size } else { 0 }, site, time * 1_000_000));
    }
    events
}

#[test]
fn the_sums_are_those_of_stat_to_the_unit() {
    let events = random_events(20_000);
    let mut stat = Stat::new(false, true);
    stat.events(&events);
    let sites = sites(9);
    let figures = stat.figures(subject::Subject::default(), &[], &mut CallSites::new(&sites, 1));
    let profile = of(&events, Window::default());
    assert_eq!(figures.sites.len(), profile.stacks().len());
    for site in &figures.sites {
        let values = values_of(&profile, &format!("f{}", site.site));
        let expected = [
            site.objects,
            site.bytes,
            site.at_exit.objects,
            site.at_exit.bytes,
            site.at_peak.objects,
            site.at_peak.bytes,
        ];
        assert_eq!(values[..6], expected, "site {}", site.site);
        assert!(values[7] >= values[5] && values[7] >= values[3], "the stack's own maximum");
    }
    assert_eq!(profile.total(Measure::PeakBytes), figures.peak.live_bytes);
    assert_eq!(profile.subject.peak_ns, figures.peak.time_ns);
    let lives = &profile.lives.as_ref().expect("requested").lives;
    let sum = |alive: bool| -> u64 {
        lives.iter().filter(|life| !alive || life.died.is_none()).map(|life| life.bytes).sum()
    };
    assert_eq!((sum(false), sum(true)), (figures.bytes, figures.at_exit.bytes));
    assert_eq!(lives.iter().map(|life| life.objects).sum::<u64>(), figures.objects);
}

#[test]
fn between_two_times_counts_what_happens_there() {
    let events = [
        event(EventKind::Malloc, 0, 100, 1, 0), // before; grows by 50 within
        event(EventKind::Malloc, 1, 10, 2, 5),  // before, freed within: counts nowhere
        event(EventKind::Malloc, 2, 7, 3, 10),  // within, freed within
        event(EventKind::Realloc, 0, 150, 4, 11),
        event(EventKind::Free, 1, 0, 0, 12),
        event(EventKind::Malloc, 3, 20, 3, 13), // within, freed after
        event(EventKind::Free, 2, 0, 0, 15),
        event(EventKind::Free, 3, 0, 0, 20), // after
        event(EventKind::Malloc, 1, 1000, 5, 21),
    ];
    let profile = of(&events, Window { from_ns: 10, to_ns: 20 });
    assert_eq!(values_of(&profile, "f1")[..6], [0, 50, 0, 50, 0, 50], "growth for the allocating stack");
    // Live at the peak: 50 + 7 + 20.
    assert_eq!(values_of(&profile, "f3"), [2, 27, 1, 20, 2, 27, 2, 27, 5 + 2]);
    assert_eq!(profile.stacks().len(), 2);
    assert_eq!((profile.subject.from_ns, profile.subject.to_ns, profile.subject.peak_ns), (10, 15, 13));
    let before = of(&events, Window { from_ns: 0, to_ns: 10 });
    assert_eq!(before.total(Measure::EndBytes), 110);
}

#[test]
fn events_of_a_damaged_trace_do_no_harm() {
    let profile = of(
        &[
            event(EventKind::Free, 7, 0, 0, 0),
            event(EventKind::Realloc, 7, 9, 0, 0),
            event(EventKind::Malloc, 1, u64::MAX, 1, 0),
            event(EventKind::Malloc, 1, 5, u32::MAX, 1),
            event(EventKind::Malloc, 2, 6, 77, 1),
        ],
        Window::default(),
    );
    assert_eq!(profile.total(Measure::AllocatedObjects), 3);
    assert_eq!(values_of(&profile, "[further call stacks]")[..4], [1, 5, 1, 5]);
    assert_eq!(values_of(&profile, "[not recorded]")[..4], [1, 6, 1, 6], "a site that is not described");
}
