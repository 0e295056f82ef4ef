//! What these tests share: synthetic traces, managers made of C, drivers.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptoll_replay::flatten::{Flattening, flatten};
use heaptoll_replay::job::{Job, Outcome, Pass, Touch};
use heaptoll_replay::program::{Order, Program};
use heaptoll_replay::source::Calls;
use heaptoll_replay::start::{Ended, Stack, Starter};
use heaptoll_trace::{Event, EventKind};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// An event of nothing.
pub const EVENT: Event = Event {
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

/// A legal trace: random calls of `threads` threads, objects freed by any thread, some never.
pub fn trace(seed: u64, events: usize, threads: u32, largest: u64) -> Vec<Event> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut live: Vec<u32> = Vec::new();
    let mut free: Vec<u32> = Vec::new();
    let mut slots = 0;
    let mut thread = 0;
    (0..events)
        .map(|_| {
            if rng.random_ratio(1, 4) {
                thread = rng.random_range(0..threads);
            }
            let size = match rng.random_range(0..100) {
                0 => 0,
                1..90 => rng.random_range(1..=largest.min(512)),
                _ => rng.random_range(1..=largest),
            };
            let choice = rng.random_range(0..100);
            if live.is_empty() || choice < 48 && live.len() < 20_000 {
                let slot = free.pop().unwrap_or_else(|| {
                    slots += 1;
                    slots - 1
                });
                live.push(slot);
                let (kind, align_log2) = match rng.random_range(0..10) {
                    0 => (EventKind::Calloc, 0),
                    1 => (EventKind::Aligned, rng.random_range(0..13)),
                    2 => (EventKind::New, 0),
                    _ => (EventKind::Malloc, 0),
                };
                return Event { kind, align_log2, thread, slot, size, ..EVENT };
            }
            // Mostly what was made last, as programs do.
            let back = rng.random_range(0..live.len().min(if choice % 8 == 0 { usize::MAX } else { 16 }));
            let at = live.len() - 1 - back;
            if choice < 58 {
                return Event {
                    kind: EventKind::Realloc,
                    thread,
                    slot: live[at],
                    size: size.max(1),
                    ..EVENT
                };
            }
            let slot = live.remove(at);
            free.push(slot);
            let kind = [EventKind::Free, EventKind::Delete, EventKind::ReallocFree][choice % 3];
            Event { kind, thread, slot, ..EVENT }
        })
        .collect()
}

/// Flattens events.
pub fn program(events: &[Event], order: Order) -> Program {
    let how = Flattening { order, mark_every: 100, ..Flattening::default() };
    flatten(vec![Box::new(Calls::new(events))], &how).expect("a program")
}

/// The C library's own.
pub fn glibc() -> Stack {
    Stack { name: "glibc".into(), preload: vec![], environment: vec![] }
}

/// A manager from C source.
pub fn manager(folder: &Path, name: &str, source: &str) -> Stack {
    let (code, object) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
    std::fs::write(&code, source).expect("writes");
    let compiled = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-w", "-shared", "-fPIC", "-pthread", "-o"])
        .args([&object, &code])
        .output()
        .expect("cc runs");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    Stack { name: name.into(), preload: vec![object], environment: vec![] }
}

/// A job on a program.
pub fn job(program: &Program, pass: Pass, touch: Touch) -> Job {
    let index = program.index.clone();
    Job { pass, touch, repetitions: 1, checkpoints: 200, null: false, ledger: None, index }
}

/// Runs one driver.
pub fn run(stack: &Stack, program: &Program, job: &Job) -> Ended {
    let interrupt = AtomicBool::new(false);
    let starter = Starter {
        driver: PathBuf::from(env!("CARGO_BIN_EXE_heaptoll-replay")),
        interrupt: &interrupt,
        timeout: Duration::from_secs(60),
    };
    starter.run(stack, program, job, 0).expect("a driver")
}

/// Runs one driver that must come to its end.
#[track_caller]
pub fn outcome(stack: &Stack, program: &Program, job: &Job) -> Outcome {
    match run(stack, program, job) {
        Ended::Done(outcome, _) => *outcome,
        other => panic!("{other:?}"),
    }
}
