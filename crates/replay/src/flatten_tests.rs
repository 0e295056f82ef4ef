//! Programs are run by a small machine that is independent of flattening, with threads chosen at random.

use std::collections::HashMap;

use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::source::Calls;

const EVENT: Event = Event {
    kind: EventKind::Malloc,
    moved: false,
    align_log2: 0,
    thread: 0,
    slot: 0,
    site: 0,
    size: 0,
    usable: 0,
    time_ns: 0,
    latency_ns: 0,
};

/// A legal trace in which every size occurs once, so that sizes name objects.
fn trace(seed: u64, events: usize, threads: u32) -> Vec<Event> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut live, mut free, mut slots, mut thread) = (Vec::new(), Vec::new(), 0, 0);
    (0..events)
        .map(|number| {
            if rng.random_ratio(1, 3) {
                thread = rng.random_range(0..threads);
            }
            // Some sizes need a second word.
            let size = number as u64 + if rng.random_ratio(1, 20) { 1 << 40 } else { 1 };
            if live.is_empty() || rng.random_ratio(11, 20) {
                let slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
                live.push(slot);
                let kind = [EventKind::Malloc, EventKind::Calloc, EventKind::Aligned, EventKind::New]
                    [rng.random_range(0..4)];
                return Event { kind, align_log2: 6, thread, slot, size, ..EVENT };
            }
            let at = rng.random_range(0..live.len());
            if rng.random_ratio(1, 5) {
                return Event { kind: EventKind::Realloc, thread, slot: live[at], size, ..EVENT };
            }
            let slot = live.swap_remove(at);
            free.push(slot);
            Event { kind: EventKind::Free, thread, slot, ..EVENT }
        })
        .collect()
}

/// What a call does: its thread, the size that it requests, the object that it is given.
type Done = (usize, Option<u64>, Option<u64>);

/// What the trace does.
fn recorded(events: &[Event]) -> Vec<Done> {
    let (mut numbers, mut objects) = (HashMap::new(), HashMap::new());
    let mut number = |thread| {
        let next = numbers.len();
        *numbers.entry(thread).or_insert(next)
    };
    let done = |event: &Event| {
        let thread = number(event.thread);
        if event.kind.frees() {
            return (thread, None, objects.remove(&event.slot));
        }
        (thread, Some(event.size), objects.insert(event.slot, event.size))
    };
    events.iter().map(done).collect()
}

/// What a program does when whichever thread can go on may go on. Panics when none can.
fn replayed(program: &Program, seed: u64) -> Vec<Done> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let streams: Vec<Vec<u64>> =
        program.index.streams.iter().map(|extents| program.words(extents).expect("reads")).collect();
    let slots = program.index.slots as usize;
    let (mut blocks, mut generations) = (vec![None; slots], vec![0u64; slots]);
    let mut at = vec![0; streams.len()];
    let mut started = vec![false; streams.len()];
    started[0] = true;
    let (mut turn, mut done) = (0, Vec::new());
    loop {
        let ready = |thread: &usize| {
            started[*thread]
                && match Operation::read(&streams[*thread][at[*thread]..]) {
                    None => false,
                    Some((Operation::Wait { slot, generation }, _)) => {
                        generations[slot as usize] == generation
                    }
                    Some((Operation::Turn { run }, _)) => run == turn,
                    Some(_) => true,
                }
        };
        let able: Vec<usize> = (0..streams.len()).filter(ready).collect();
        if able.is_empty() {
            let over = (0..streams.len()).all(|thread| at[thread] == streams[thread].len());
            assert!(over, "no thread can go on: at {at:?}");
            return done;
        }
        let thread = able[rng.random_range(0..able.len())];
        let Some((operation, took)) = Operation::read(&streams[thread][at[thread]..]) else { continue };
        at[thread] += took;
        let mut call = |slot: u32, size: Option<u64>| {
            generations[slot as usize] += 1;
            let old = std::mem::replace(&mut blocks[slot as usize], size);
            done.push((thread, size, old));
            old
        };
        match operation {
            Operation::Malloc { slot, size }
            | Operation::Calloc { slot, size }
            | Operation::Aligned { slot, size, .. } => {
                assert_eq!(call(slot, Some(size)), None, "an object in a slot that is in use");
            }
            Operation::Realloc { slot, size } => assert!(call(slot, Some(size)).is_some()),
            Operation::Free { slot } => assert!(call(slot, None).is_some()),
            Operation::Pass { last, .. } => {
                turn += 1;
                assert_eq!(last, at[thread] == streams[thread].len() && thread != program_end(program));
            }
            Operation::Start { thread } => {
                assert!(!std::mem::replace(&mut started[thread as usize], true), "started twice");
            }
            Operation::Wait { .. } | Operation::Turn { .. } | Operation::Mark => {}
        }
    }
}

/// The thread that makes the last call: it passes nothing on at the end.
fn program_end(program: &Program) -> usize {
    let ends = |extents: &Vec<Extent>| {
        let words = program.words(extents).expect("reads");
        let (mut rest, mut last) = (&words[..], None);
        while let Some((operation, took)) = Operation::read(rest) {
            (last, rest) = (Some(operation), &rest[took..]);
        }
        !matches!(last, Some(Operation::Pass { .. }))
    };
    program.index.streams.iter().position(ends).unwrap_or(usize::MAX)
}

fn program(events: &[Event], how: Flattening) -> Program {
    flatten(vec![Box::new(Calls::new(events))], &how).expect("a program")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn exact_order_has_one_way_to_go(seed: u64, events in 1usize..400, threads in 1u32..9) {
        let events = trace(seed, events, threads);
        let program = program(&events, Flattening { mark_every: 7, ..Flattening::default() });
        prop_assert_eq!(replayed(&program, seed), recorded(&events));
        prop_assert_eq!(program.facts.calls, events.len() as u64);
    }

    #[test]
    fn per_thread_any_way_to_go_does_the_same(seed: u64, events in 1usize..400, threads in 1u32..9) {
        let events = trace(seed, events, threads);
        let how = Flattening { order: Order::PerThread, mark_every: 7, ..Flattening::default() };
        let program = program(&events, how);
        let expected = recorded(&events);
        for way in 0..4 {
            let done = replayed(&program, way);
            for thread in 0..threads as usize {
                let own = |all: &[Done]| all.iter().filter(|one| one.0 == thread).copied().collect::<Vec<_>>();
                prop_assert_eq!(own(&done), own(&expected));
            }
        }
    }

    #[test]
    fn marks_are_where_they_were_wanted_and_slots_are_the_traces(
        seed: u64,
        events in 1usize..400,
        threads in 1u32..5,
        wanted in prop::collection::btree_set(1_u64..500, 0..9),
    ) {
        let events = trace(seed, events, threads);
        let wanted: Vec<u64> = wanted.into_iter().collect();
        let how = Flattening { mark_after: Some(wanted.clone()), ..Flattening::default() };
        let program = program(&events, how);
        prop_assert_eq!(replayed(&program, seed), recorded(&events));
        let there: Vec<u64> = wanted.into_iter().filter(|after| *after <= events.len() as u64).collect();
        prop_assert_eq!(&program.marked_after, &there);
        prop_assert_eq!(program.index.marks, there.len() as u64);
        // With one thread the stream has the calls in order.
        if program.index.streams.len() == 1 {
            let words = program.words(&program.index.streams[0]).expect("reads");
            let (mut rest, mut calls, mut marks) = (words.as_slice(), 0, Vec::new());
            while let Some((operation, took)) = Operation::read(rest) {
                rest = &rest[took..];
                let slot = match operation {
                    Operation::Mark => {
                        marks.push(calls as u64);
                        continue;
                    }
                    Operation::Malloc { slot, .. } | Operation::Calloc { slot, .. } => slot,
                    Operation::Aligned { slot, .. } | Operation::Realloc { slot, .. } => slot,
                    Operation::Free { slot } => slot,
                    other => panic!("{other:?} of one thread"),
                };
                prop_assert_eq!(slot, events[calls].slot);
                calls += 1;
            }
            prop_assert_eq!(marks, there);
        }
    }

    #[test]
    fn what_lies_on_disk_is_what_would_lie_in_memory(seed: u64, most_in_memory in 0u64..20_000) {
        let events = trace(seed, 1000, 3);
        let (small, large) = (
            program(&events, Flattening { most_in_memory, ..Flattening::default() }),
            program(&events, Flattening::default()),
        );
        prop_assert_eq!(&small.index, &large.index);
        for extents in &small.index.streams {
            prop_assert_eq!(small.words(extents).expect("reads"), large.words(extents).expect("reads"));
        }
    }
}

/// One thread makes what another frees: its slots must come back to it, or the table would grow with every object.
#[test]
fn slots_that_only_another_thread_frees_are_used_again() {
    let events: Vec<Event> = (0..200_000)
        .map(|number| match number % 2 {
            0 => Event { thread: 0, size: number + 1, ..EVENT },
            _ => Event { kind: EventKind::Free, thread: 1, ..EVENT },
        })
        .collect();
    let how = Flattening { order: Order::PerThread, ..Flattening::default() };
    let program = program(&events, how);
    assert!(u64::from(program.index.slots) <= SPARE_SLOTS + 2, "{} slots", program.index.slots);
    assert!(program.index.generations);
    assert_eq!(replayed(&program, 1).len(), 200_000);
}

#[test]
fn copies_begin_one_after_another_and_keep_their_objects_apart() {
    let events = trace(5, 300, 2);
    let how = Flattening { copies: 3, lag: 50, ..Flattening::default() };
    let program = flatten((0..3).map(|_| Box::new(Calls::new(&events)) as Box<dyn Source>).collect(), &how);
    let program = program.expect("a program");
    let done = replayed(&program, 1);
    assert_eq!(done.len(), 900);
    assert_eq!(done[..50], recorded(&events)[..50], "the first is alone until then");
    assert_eq!(program.index.streams.len(), 2, "threads are those of one copy");
}

#[test]
fn what_a_hole_swallowed_is_counted() {
    let slot = |kind, slot| Event { kind, slot, size: 8, ..EVENT };
    let events = [
        slot(EventKind::Free, 0),
        slot(EventKind::Realloc, 3),
        slot(EventKind::Malloc, 1),
        slot(EventKind::Malloc, 1),
        slot(EventKind::Failed, 0),
        slot(EventKind::Foreign, 0),
    ];
    let program = program(&events, Flattening::default());
    let facts = &program.facts;
    assert_eq!((facts.unknown, facts.overtaken, facts.failed, facts.foreign), (2, 1, 1, 1));
    assert_eq!((facts.calls, facts.frees, facts.max_live_bytes, facts.left_objects), (3, 1, 8, 1));
    assert_eq!(replayed(&program, 1).len(), 3);
}
