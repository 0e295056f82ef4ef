//! What reaches the manager, seen by a manager that keeps a log.

use std::path::Path;

use heaptoll_replay::job::{Pass, Touch};
use heaptoll_replay::program::Order;
use heaptoll_replay::start::Stack;
use heaptoll_trace::{Event, EventKind};

use crate::fixture::{job, manager, outcome, program, trace};

/// Sizes from here on are logged, as in the checker's source.
const TAGGED: u64 = 100_000;
const LOG_BYTES: u64 = 16 + 16 * (1 << 20);

fn checker(folder: &Path) -> Stack {
    let stack = manager(folder, "checker", include_str!("checker.c"));
    let log = folder.join("log");
    std::fs::File::create(&log).and_then(|file| file.set_len(LOG_BYTES)).expect("a log");
    Stack { environment: vec![("CHECKER_LOG".into(), log.display().to_string())], ..stack }
}

/// The logged calls, and how many others there were.
fn log(folder: &Path) -> (Vec<(u64, u64)>, u64) {
    let bytes = std::fs::read(folder.join("log")).expect("the log");
    let word = |at: usize| u64::from_ne_bytes(bytes[8 * at..][..8].try_into().expect("8 bytes"));
    let calls = (1..=word(0) as usize).map(|entry| (word(2 * entry), word(2 * entry + 1)));
    (calls.collect(), word(1))
}

/// A trace whose sizes distinguish its objects, and the log it must leave.
fn tagged(seed: u64, events: usize, threads: u32) -> (Vec<Event>, Vec<(u64, u64)>) {
    let mut events = trace(seed, events, threads, 1);
    let mut sizes = vec![0; events.len()];
    let mut expected = Vec::new();
    for (number, event) in events.iter_mut().enumerate() {
        let slot = event.slot as usize;
        if event.kind.frees() {
            expected.push((5, sizes[slot]));
            continue;
        }
        event.size = TAGGED + number as u64;
        sizes[slot] = event.size;
        let code = match event.kind {
            EventKind::Calloc => 1,
            EventKind::Aligned if event.align_log2 >= 3 => 2,
            EventKind::Realloc => 4,
            _ => 0,
        };
        expected.push((code, event.size));
    }
    (events, expected)
}

#[test]
fn exact_order_is_the_recorded_order_over_any_threads() {
    for (seed, threads) in [(1, 1), (2, 2), (3, 5), (4, 40)] {
        let folder = tempfile::tempdir().expect("a folder");
        let stack = checker(folder.path());
        let (events, expected) = tagged(seed, 3000, threads);
        let program = program(&events, Order::Exact);
        assert_eq!(program.index.streams.len(), threads as usize);
        outcome(&stack, &program, &job(&program, Pass::Throughput, Touch::None));
        let (calls, others) = log(folder.path());
        assert_eq!(calls, expected, "{threads} threads");
        assert!(
            others < 60 + 4 * u64::from(threads),
            "malloc served {others} calls in addition to the trace"
        );
    }
}

#[test]
fn per_thread_every_call_is_made_once_and_every_block_freed_once() {
    for seed in 0..4 {
        let folder = tempfile::tempdir().expect("a folder");
        let stack = checker(folder.path());
        let (events, mut expected) = tagged(seed, 4000, 2 + seed as u32);
        let program = program(&events, Order::PerThread);
        outcome(&stack, &program, &job(&program, Pass::Throughput, Touch::All));
        let (mut calls, _) = log(folder.path());
        // An object's own calls are in order: its sizes are its own, and a second free would have been an abort.
        expected.sort_unstable();
        calls.sort_unstable();
        assert_eq!(calls, expected);
    }
}

#[test]
fn what_a_trace_leaves_is_freed_between_repetitions() {
    let folder = tempfile::tempdir().expect("a folder");
    let stack = checker(folder.path());
    let (events, expected) = tagged(9, 2000, 3);
    let program = program(&events, Order::Exact);
    assert!(program.facts.left_objects > 10);
    let job = heaptoll_replay::job::Job { repetitions: 3, ..job(&program, Pass::Memory, Touch::Write) };
    let found = outcome(&stack, &program, &job);
    let (calls, _) = log(folder.path());
    let whole = expected.len() + program.facts.left_objects as usize;
    assert_eq!(calls.len(), 3 * whole);
    for repetition in calls.chunks(whole) {
        assert_eq!(repetition[..expected.len()], expected);
        assert!(repetition[expected.len()..].iter().all(|(kind, _)| *kind == 5));
    }
    assert_eq!(found.repetitions.len(), 3);
    assert_eq!(
        found.max_live_bytes, program.facts.max_live_bytes,
        "each repetition begins with nothing alive"
    );
}
