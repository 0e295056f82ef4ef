//! Whatever threads tell comes out the same, in an order that the process could have seen.

mod common;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heaptoll_ring::{Flags, Options, Tap};
use proptest::prelude::*;

use common::{Event, Heard, Stage, tiny};

/// Addresses as they are, mostly; sometimes any.
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

/// What a manager makes of a size: mostly the same for the same size.
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
        1 => (0u8..16, size(), site(), ns()).prop_map(|(kind, size, site, latency_ns)| Event::Failed {
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
    fn one_thread_is_heard_word_for_word(
        latency in any::<bool>(),
        event_time in any::<bool>(),
        ring_log2 in 7u32..10,
        events in proptest::collection::vec(event(true), 1..600),
        budgets in proptest::collection::vec(1usize..300, 1..20),
        ticks in 1usize..100,
    ) {
        let flags = Flags { latency, event_time, ..Flags::default() };
        let mut stage = Stage::new(&Options { flags, ..tiny(ring_log2, 4) });
        let mut heard = Heard::default();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for event in &events {
                    event.tell(stage.rings.thread().expect("attached"), latency);
                }
                done.store(true, Ordering::Release);
            });
            let mut tap = None;
            for (turn, budget) in budgets.iter().cycle().enumerate() {
                let last = done.load(Ordering::Acquire);
                if tap.is_none() {
                    tap = stage.shared.arrivals().first().map(|arrival| Tap::new(&stage.shared, arrival.index));
                }
                let Some(tap) = &mut tap else { continue };
                let drained = tap.drain(*budget, &mut heard);
                tap.check().expect("sound");
                assert_eq!(drained.missing, 0);
                assert!(!drained.blocked);
                if turn % ticks == 0 {
                    stage.shared.tick();
                }
                if last && drained.idle {
                    break;
                }
            }
        });
        let expected: Vec<Event> = events.into_iter().map(|event| without(event, latency)).collect();
        let notes_only = expected.iter().all(|event| matches!(event, Event::Definition { .. }));
        let got: Vec<Event> = heard.events.into_iter().map(|(_, event)| event).collect();
        prop_assert_eq!(got, expected);
        prop_assert!(heard.times.windows(2).all(|two| two[0].1 <= two[1].1));
        prop_assert!(notes_only || !heard.times.is_empty());
    }
}

/// A free's latency is only told when it is wanted.
fn without(event: Event, latency: bool) -> Event {
    match event {
        Event::Free { address, delete, .. } if !latency => Event::Free { address, delete, latency_ns: 0 },
        other => other,
    }
}

/// A manager of two sizes, so that addresses pass from thread to thread as fast as can be.
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

/// No block is given twice without being given back in between, or given back without being given.
fn assert_possible(events: &[(u32, Event)]) {
    let mut live = HashMap::new();
    for (n, (thread, event)) in events.iter().enumerate() {
        match *event {
            Event::Alloc { address, .. } => {
                if let Some(before) = live.insert(address, (n, thread)) {
                    panic!("event {n}: {address:#x} given to {thread}, but it is live since {before:?}");
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

/// `threads` threads begin one after the other while those before them work; drained meanwhile.
fn run_threads(options: &Options, threads: usize, pairs: usize, budget: usize) -> Heard {
    let mut stage = Stage::new(options);
    let manager = Manager::default();
    let mut heard = Heard::default();
    let done = AtomicBool::new(false);
    let rings = stage.rings;
    std::thread::scope(|scope| {
        let manager = &manager;
        let done = &done;
        scope.spawn(move || {
            std::thread::scope(|scope| {
                let work = move || {
                    let mut mine = Vec::new();
                    for n in 0..pairs {
                        let block = manager.malloc();
                        alloc(block).tell(rings.thread().expect("attached"), false);
                        mine.push(block);
                        if n % 3 != 0 || mine.len() > 5 {
                            let block = mine.swap_remove(n % mine.len());
                            free(block).tell(rings.thread().expect("attached"), false);
                            manager.free(block);
                        }
                    }
                    for block in mine {
                        free(block).tell(rings.thread().expect("attached"), false);
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
            assert!(begin.elapsed() < Duration::from_secs(120), "stuck: {} events", heard.events.len());
            let last = done.load(Ordering::Acquire);
            if tap.is_none() {
                tap = stage.shared.arrivals().first().map(|arrival| Tap::new(&stage.shared, arrival.index));
            }
            let Some(tap) = &mut tap else { continue };
            let drained = tap.drain(budget, &mut heard);
            tap.check().expect("sound");
            stage.shared.tick();
            if last && drained.idle {
                break;
            }
        }
    });
    assert_eq!(stage.shared.left_out().threads, 0);
    heard
}

#[test]
fn threads_come_out_in_an_order_that_can_have_been() {
    for round in 0..20 {
        let heard = run_threads(&tiny(7 + round % 3, 64), 2 + round as usize % 5, 3000, 100_000);
        assert_eq!(heard.events.len(), (2 + round as usize % 5) * 6000);
        assert_possible(&heard.events);
    }
}

#[test]
fn threads_that_share_a_ring_come_out_in_an_order_that_can_have_been() {
    for budget in [7, 1000, 100_000] {
        // Two rings: one is for threads to share.
        let heard = run_threads(&tiny(8, 2), 9, 1000, budget);
        assert_eq!(heard.events.len(), 9 * 2000);
        assert_possible(&heard.events);
        assert_eq!(heard.threads.len(), 9);
    }
}

#[test]
fn a_size_that_no_word_has_room_for_is_not_told_as_zero() {
    let mut stage = Stage::new(&tiny(8, 4));
    let rings = stage.rings;
    let mut heard = Heard::default();
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
    let arrival = stage.shared.arrivals().remove(0);
    Tap::new(&stage.shared, arrival.index).drain(1000, &mut heard);
    let sizes: Vec<u64> = heard
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
    let mut stage = Stage::new(&tiny(9, 64));
    let rings = stage.rings;
    let done = AtomicBool::new(false);
    let mut heard = Heard::default();
    std::thread::scope(|scope| {
        let done = &done;
        scope.spawn(move || {
            std::thread::scope(|scope| {
                for thread in 0..12u64 {
                    scope.spawn(move || {
                        for n in 1..=2000u64 {
                            alloc((thread << 32 | n) * 16).tell(rings.thread().expect("attached"), false);
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
                tap = stage.shared.arrivals().first().map(|arrival| Tap::new(&stage.shared, arrival.index));
            }
            let Some(tap) = &mut tap else { continue };
            if tap.drain(333, &mut heard).idle && last {
                break;
            }
            tap.check().expect("sound");
        }
    });
    let mut last: HashMap<u64, u64> = HashMap::new();
    for (_, event) in &heard.events {
        let Event::Alloc { address, .. } = event else { panic!("{event:?} was never told") };
        let (thread, n) = ((address / 16) >> 32, (address / 16) & 0xffff_ffff);
        assert_eq!(last.insert(thread, n).unwrap_or(0) + 1, n);
    }
    assert!(last.values().all(|&n| n == 2000) && last.len() == 12);
}

#[test]
fn a_pause_stops_all_threads_and_ends() {
    let mut stage = Stage::new(&tiny(12, 16));
    let rings = stage.rings;
    let stop = AtomicBool::new(false);
    let mut heard = Heard::default();
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    alloc((thread + 1) << 20).tell(rings.thread().expect("attached"), false);
                }
            });
        }
        while stage.shared.arrivals().is_empty() {}
        let mut tap = Tap::new(&stage.shared, 0);
        for _ in 0..20 {
            for _ in 0..20 {
                tap.drain(100_000, &mut heard);
            }
            let paused = stage.shared.pause();
            // A thread in the midst of an event tells it to the end, when the machine lets it run; none begins another.
            // So the pause comes to rest, and at most one event a thread comes after the rest.
            let mut still = heard.events.len();
            let mut since = std::time::Instant::now();
            let begin = since;
            while since.elapsed() < Duration::from_millis(35) {
                tap.drain(1_000_000, &mut heard);
                if heard.events.len() != still {
                    (still, since) = (heard.events.len(), std::time::Instant::now());
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "a pause stops nobody");
            }
            std::thread::sleep(Duration::from_millis(5));
            tap.drain(1_000_000, &mut heard);
            assert!(heard.events.len() <= still + 3, "threads begin events in a pause");
            drop(paused);
            let begin = std::time::Instant::now();
            while heard.events.len() <= still + 3 {
                tap.drain(1_000_000, &mut heard);
                assert!(begin.elapsed() < Duration::from_secs(20), "nobody goes on after a pause");
            }
        }
        stop.store(true, Ordering::Relaxed);
        drop(tap);
        // Who waits for room in its ring must be let go.
        drop(stage);
    });
}

#[test]
fn facts_are_answered_also_in_a_pause() {
    fn facts(bytes: &mut [u8; 1024]) -> usize {
        bytes[1..6].copy_from_slice(b"facts");
        6
    }
    let mut stage = Stage::new(&tiny(12, 16));
    let rings = stage.rings;
    rings.answer_with(facts);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                alloc(1 << 20).tell(rings.thread().expect("attached"), false);
            }
        });
        while stage.shared.arrivals().is_empty() {}
        let mut tap = Tap::new(&stage.shared, 0);
        let mut heard = Heard::default();
        for (wishes, pause) in [(0, false), (3, true), (b'w', false), (0, true)] {
            let paused = pause.then(|| stage.shared.pause());
            let asked = tap.ask(wishes);
            let begin = std::time::Instant::now();
            let answer = loop {
                tap.drain(1_000_000, &mut heard);
                if let Some(answer) = tap.answer(asked) {
                    break answer;
                }
                assert!(begin.elapsed() < Duration::from_secs(20), "no answer");
            };
            assert_eq!((answer[0], &answer[1..]), (wishes, &b"facts"[..]));
            drop(paused);
        }
        stop.store(true, Ordering::Relaxed);
        drop(tap);
        drop(stage);
    });
}
