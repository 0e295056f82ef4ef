//! Events come out as threads recorded them, in an order that is possible in the process.

mod common;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heaptoll_alloc_ring::word::KIND_EXIT;
use heaptoll_alloc_ring::{Flags, Options, Tap};
use proptest::prelude::*;

use common::{Event, Fixture, Received, tiny};

/// Mostly plausible addresses; sometimes any.
fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (1u64..1 << 44).prop_map(|eighth| eighth * 8),
        1 => 1u64..u64::MAX,
        1 => (1u64 << 47)..(1 << 56),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0u64..200, 4 => 2000u64..2100, 2 => 65500u64..65600, 1 => 0u64..1 << 50]
}

/// The usable size for a requested size: mostly the same for the same size.
fn usable(size: u64, odd: u8) -> u64 {
    match odd {
        0 => 0,
        1 => size + 70_000,
        2 => size + 1,
        _ => (size + 23) / 16 * 16 - 8,
    }
}

fn site() -> impl Strategy<Value = u32> {
    prop_oneof![6 => Just(0u32), 1 => any::<u32>()]
}

fn event(latency: bool) -> impl Strategy<Value = Event> {
    let ns = move || {
        if latency { prop_oneof![Just(0u32), any::<u32>()].boxed() } else { Just(0u32).boxed() }
    };
    prop_oneof![
        10 => (address(), size(), 0u8..20).prop_map(|(address, size, odd)| Event::Alloc {
            address, size, usable: usable(size, odd), kind: 0, align_log2: 0, site: 0, latency_ns: 0
        }),
        4 => (address(), size(), 0u8..20, 0u8..16, 0u8..64, site(), ns()).prop_map(
            |(address, size, odd, kind, align_log2, site, latency_ns)| Event::Alloc {
                address, size, usable: usable(size, odd), kind, align_log2: if odd < 10 { 0 } else { align_log2 },
                site, latency_ns
            }
        ),
        10 => (address(), any::<bool>(), ns()).prop_map(|(address, delete, latency_ns)| Event::Free {
            address, delete, latency_ns
        }),
        2 => address().prop_map(|address| Event::ResizeBegin { address }),
        2 => (prop_oneof![address(), Just(0u64)], size(), 0u8..20, site(), ns()).prop_map(
            |(address, size, odd, site, latency_ns)| Event::ResizeEnd {
                address, size, usable: usable(size, odd), site, latency_ns
            }
        ),
        1 => Just(Event::ExitBegins),
        1 => (0..KIND_EXIT, size(), site(), ns()).prop_map(|(kind, size, site, latency_ns)| Event::Failed {
            kind, size, site, latency_ns
        }),
        1 => (any::<u32>(), proptest::collection::vec(0u64..1 << 57, 0..60)).prop_map(|(site, frames)| {
            Event::Definition { site, frames }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn events_of_one_thread_come_out_word_for_word(
        latency in any::<bool>(),
        event_time in any::<bool>(),
        ring_log2 in 7u32..10,
        events in proptest::collection::vec(event(true), 1..600),
        budgets in proptest::collection::vec(1usize..300, 1..20),
        ticks in 1usize..100,
    ) {
        let flags = Flags { latency, event_time, ..Flags::default() };
        let mut fixture = Fixture::new(&Options { flags, ..tiny(ring_log2, 4) });
        let mut received = Received::default();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for event in &events {
                    event.emit(fixture.rings.thread().expect("attached"), latency);
                }
                done.store(true, Ordering::Release);
            });
            let mut tap = None;
            for (turn, budget) in budgets.iter().cycle().enumerate() {
                let last = done.load(Ordering::Acquire);
                if tap.is_none() {
                    tap = fixture.shared.arrivals().first().map(|arrival| Tap::new(&fixture.shared, arrival.index));
                }
                let Some(tap) = &mut tap else { continue };
                let drained = tap.drain(*budget, &mut received);
                tap.check().expect("sound");
                assert_eq!(drained.missing, 0);
                assert!(!drained.blocked);
                if turn % ticks == 0 {
                    fixture.shared.tick();
                }
                if last && drained.idle {
                    break;
                }
            }
        });
        let expected: Vec<Event> = events.into_iter().map(|event| without(event, latency)).collect();
        let notes_only = expected.iter().all(|event| matches!(event, Event::Definition { .. }));
        let got: Vec<Event> = received.events.into_iter().map(|(_, event)| event).collect();
        prop_assert_eq!(got, expected);
        prop_assert!(received.times.windows(2).all(|two| two[0].1 <= two[1].1));
        prop_assert!(notes_only || !received.times.is_empty());
    }
}

/// The event as it comes out: a free's latency is recorded only when it is wanted.
fn without(event: Event, latency: bool) -> Event {
    match event {
        Event::Free { address, delete, .. } if !latency => Event::Free { address, delete, latency_ns: 0 },
        other => other,
    }
}

/// A manager of one size, so that addresses pass between threads as fast as possible.
#[derive(Default)]
struct Manager {
    free: Mutex<(Vec<u64>, u64)>,
}

impl Manager {
    fn malloc(&self) -> u64 {
        let mut free = self.free.lock().unwrap();
        if let Some(block) = free.0.pop() {
            return block;
        }
        free.1 += 1;
        free.1 * 64
    }

    fn free(&self, block: u64) {
        self.free.lock().unwrap().0.push(block);
    }
}

fn alloc(address: u64) -> Event {
    Event::Alloc { address, size: 48, usable: 56, kind: 0, align_log2: 0, site: 0, latency_ns: 0 }
}

fn free(address: u64) -> Event {
    Event::Free { address, delete: false, latency_ns: 0 }
}

/// Checks that no block is allocated twice without being freed in between, or freed without being allocated.
fn assert_possible(events: &[(u32, Event)]) {
    let mut live = HashMap::new();
    for (n, (thread, event)) in events.iter().enumerate() {
        match *event {
            Event::Alloc { address, .. } => {
                if let Some(before) = live.insert(address, (n, thread)) {
                    panic!("event {n}: {address:#x} allocated to {thread}, but it is live since {before:?}");
                }
            }
            Event::Free { address, .. } => {
                assert!(
                    live.remove(&address).is_some(),
                    "event {n}: {address:#x} freed by {thread}, not live"
                );
            }
            _ => {}
        }
    }
}

/// Starts `threads` threads one after the other while earlier ones work, and drains meanwhile.
fn run_threads(options: &Options, threads: usize, pairs: usize, budget: usize) -> Received {
    let mut fixture = Fixture::new(options);
    let manager = Manager::default();
    let mut received = Received::default();
    let done = AtomicBool::new(false);
    let rings = fixture.rings;
    std::thread::scope(|scope| {
        let manager = &manager;
        let done = &done;
        scope.spawn(move || {
            std::thread::scope(|scope| {
                let work = move || {
                    let mut mine = Vec::new();
                    for n in 0..pairs {
                        let block = manager.malloc();
                        alloc(block).emit(rings.thread().expect("attached"), false);
                        mine.push(block);
                        if n % 3 != 0 || mine.len() > 5 {
                            let block = mine.swap_remove(n % mine.len());
                            free(block).emit(rings.thread().expect("attached"), false);
                            manager.free(block);
                        }
                    }
                    for block in mine {
                        free(block).emit(rings.thread().expect("attached"), false);
                        manager.free(block);
                    }
                };
                for n in 0..threads {
                    scope.spawn(work);
                    if n % 2 == 0 {
                        std::thread::sleep(Duration::from_micros(300));
                    }
                }
            });
            done.store(true, Ordering::Release);
        });
        let mut tap: Option<Tap> = None;
        let begin = std::time::Instant::now();
        loop {
            assert!(begin.elapsed() < Duration::from_secs(120), "stuck: {} events", received.events.len());
            let last = done.load(Ordering::Acquire);
            if tap.is_none() {
                tap =
                    fixture.shared.arrivals().first().map(|arrival| Tap::new(&fixture.shared, arrival.index));
            }
            let Some(tap) = &mut tap else { continue };
            let drained = tap.drain(budget, &mut received);
            tap.check().expect("sound");
            fixture.shared.tick();
            if last && drained.idle {
                break;
            }
        }
    });
    assert_eq!(fixture.shared.left_out().threads, 0);
    received
}

#[test]
fn events_of_threads_come_out_in_a_possible_order() {
    for round in 0..20 {
        let received = run_threads(&tiny(7 + round % 3, 64), 2 + round as usize % 5, 3000, 100_000);
        assert_eq!(received.events.len(), (2 + round as usize % 5) * 6000);
        assert_possible(&received.events);
    }
}

#[test]
fn events_of_threads_that_share_a_ring_come_out_in_a_possible_order() {
    for budget in [7, 1000, 100_000] {
        // Two rings, one of which is for threads to share.
        let received = run_threads(&tiny(8, 2), 9, 1000, budget);
        assert_eq!(received.events.len(), 9 * 2000);
        assert_possible(&received.events);
        assert_eq!(received.threads.len(), 9);
    }
}

#[test]
fn a_size_too_large_for_its_word_is_not_recorded_as_zero() {
    let mut fixture = Fixture::new(&tiny(8, 4));
    let rings = fixture.rings;
    let mut received = Received::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let huge = 1usize << 60;
            rings.thread().expect("attached").resize_begin(64);
            // A realloc that fails leaves the block; one to 0 bytes frees it.
            rings.thread().expect("attached").resize_end(0, huge, 0);
            rings.thread().expect("attached").alloc_long(128, huge, 0, 1, 0);
            rings.thread().expect("attached").failed(0, huge);
        });
    });
    let arrival = fixture.shared.arrivals().remove(0);
    Tap::new(&fixture.shared, arrival.index).drain(1000, &mut received);
    let sizes: Vec<u64> = received
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::ResizeEnd { size, .. } | Event::Alloc { size, .. } | Event::Failed { size, .. } => {
                Some(*size)
            }
            _ => None,
        })
        .collect();
    assert_eq!(sizes, [(1 << 60) - 1; 3]);
}

#[test]
fn each_thread_keeps_its_order() {
    let mut fixture = Fixture::new(&tiny(9, 64));
    let rings = fixture.rings;
    let done = AtomicBool::new(false);
    let mut received = Received::default();
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            std::thread::scope(|scope| {
                for thread in 0..12u64 {
                    scope.spawn(move || {
                        for n in 1..=2000u64 {
                            alloc((thread << 32 | n) * 16).emit(rings.thread().expect("attached"), false);
                        }
                    });
                }
            });
            done.store(true, Ordering::Release);
        });
        let mut tap = None;
        loop {
            let last = done.load(Ordering::Acquire);
            if tap.is_none() {
                tap =
                    fixture.shared.arrivals().first().map(|arrival| Tap::new(&fixture.shared, arrival.index));
            }
            let Some(tap) = &mut tap else { continue };
            if tap.drain(333, &mut received).idle && last {
                break;
            }
            tap.check().expect("sound");
        }
    });
    let mut last: HashMap<u64, u64> = HashMap::new();
    for (_, event) in &received.events {
        let Event::Alloc { address, .. } = event else { panic!("{event:?} was never recorded") };
        let (thread, n) = ((address / 16) >> 32, (address / 16) & 0xffff_ffff);
        assert_eq!(last.insert(thread, n).unwrap_or(0) + 1, n);
    }
    assert!(last.values().all(|&n| n == 2000) && last.len() == 12);
}

#[test]
fn a_pause_stops_all_threads_and_ends() {
    let mut fixture = Fixture::new(&tiny(12, 16));
    let rings = fixture.rings;
    let stop = AtomicBool::new(false);
    let mut received = Received::default();
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    alloc((thread + 1) << 20).emit(rings.thread().expect("attached"), false);
                }
            });
        }
        while fixture.shared.arrivals().is_empty() {}
        let mut tap = Tap::new(&fixture.shared, 0);
        for _ in 0..20 {
            for _ in 0..20 {
                tap.drain(100_000, &mut received);
            }
            let paused = fixture.shared.pause();
            // A thread that is recording an event completes it, when the machine lets it run; none begins another. So
            // events stop, and at most one event per thread arrives after that.
            let mut still = received.events.len();
            let mut since = std::time::Instant::now();
            let begin = since;
            while since.elapsed() < Duration::from_millis(35) {
                tap.drain(1_000_000, &mut received);
                if received.events.len() != still {
                    (still, since) = (received.events.len(), std::time::Instant::now());
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "a pause stops no thread");
            }
            std::thread::sleep(Duration::from_millis(5));
            tap.drain(1_000_000, &mut received);
            assert!(received.events.len() <= still + 3, "threads begin events in a pause");
            drop(paused);
            let begin = std::time::Instant::now();
            while received.events.len() <= still + 3 {
                tap.drain(1_000_000, &mut received);
                assert!(begin.elapsed() < Duration::from_secs(20), "no thread resumes after a pause");
            }
        }
        stop.store(true, Ordering::Relaxed);
        drop(tap);
        // A thread that waits for space in its ring must be released.
        drop(fixture);
    });
}

#[test]
fn facts_are_answered_also_in_a_pause() {
    fn facts(bytes: &mut [u8; 1024]) -> usize {
        bytes[1..6].copy_from_slice(b"facts");
        6
    }
    let mut fixture = Fixture::new(&tiny(12, 16));
    let rings = fixture.rings;
    rings.answer_with(facts);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                alloc(1 << 20).emit(rings.thread().expect("attached"), false);
            }
        });
        while fixture.shared.arrivals().is_empty() {}
        let mut tap = Tap::new(&fixture.shared, 0);
        let mut received = Received::default();
        for (options, pause) in [(0, false), (3, true), (b'w', false), (0, true)] {
            let paused = pause.then(|| fixture.shared.pause());
            let request = tap.request_facts(options);
            let begin = std::time::Instant::now();
            let answer = loop {
                tap.drain(1_000_000, &mut received);
                if let Some(answer) = tap.facts(request) {
                    break answer;
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "no answer");
            };
            assert_eq!((answer[0], &answer[1..]), (options, &b"facts"[..]));
            drop(paused);
        }
        stop.store(true, Ordering::Relaxed);
        drop(tap);
        drop(fixture);
    });
}
