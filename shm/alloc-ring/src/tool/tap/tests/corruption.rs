//! A corrupted program may overwrite any part of the file, at any time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::layout::Header;
use crate::tool::map::Map;
use crate::word::{prefix, prefix_word};

/// Far beyond what a loaded machine takes.
const LIMIT: Duration = Duration::from_secs(180);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Overwrites a word of the file: in the header, the process table, the directory, or the rings, often with a plausible
/// value.
fn scribble(map: &Map, random: &mut Random) {
    let geometry = map.geometry;
    let parts = [
        0..size_of::<Header>(),
        0..geometry.entry_group(0).end,
        geometry.directory()..geometry.execs(),
        geometry.execs()..geometry.first_ring(),
        geometry.first_ring()..geometry.bytes(geometry.rings),
    ];
    let part = &parts[(random.next() % 5) as usize];
    let at = part.start + (random.next() as usize % part.len()) / 4 * 4;
    let value = match random.next() % 4 {
        0 => 0,
        1 => 1,
        2 => u32::MAX,
        _ => random.next() as u32,
    };
    // SAFETY: `at` lies in one of `parts`, all of which lie in the mapping; the tool reserved the tables, and
    // `scribble_while_threads_emit` the rings.
    unsafe { (*map.base.add(at).cast::<AtomicU32>()).store(value, Ordering::Relaxed) };
}

#[test]
fn overwriting_the_file_neither_hangs_nor_kills_a_process() {
    scribble_while_threads_emit(1..=4);
}

#[test]
#[ignore = "slow: waits of seconds for numbers that are missing"]
fn overwriting_the_file_in_many_ways_neither_hangs_nor_kills_a_process() {
    scribble_while_threads_emit(5..=100);
}

/// Two threads record, one scribbles, and this one reads: with each seed all come to an end.
fn scribble_while_threads_emit(seeds: std::ops::RangeInclusive<u64>) {
    for seed in seeds {
        let (mut shared, mut tap, rings, _first) =
            fixture(Flags { latency: seed % 3 == 0, ..Flags::default() });
        for ring in 0..8 {
            tap.map.reserve(tap.map.geometry.blocks(ring, 0..4)).expect("there is memory");
        }
        let map = Arc::clone(&tap.map);
        let done = Arc::new(AtomicUsize::new(0));
        let scribbled = Arc::new(AtomicBool::new(false));
        let mut sink = Addresses::default();
        for _ in 0..2 {
            let done = Arc::clone(&done);
            std::thread::spawn(move || {
                for block in 1..2000usize {
                    if let Some(mut producer) = rings.thread() {
                        producer.alloc(block * 8, 24, 24);
                    }
                    if let Some(mut producer) = rings.thread() {
                        producer.free(block * 8, false);
                    }
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let still = Arc::clone(&scribbled);
        std::thread::spawn(move || {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for n in 0..2000 {
                scribble(&map, &mut random);
                if n % 16 == 0 {
                    std::thread::yield_now();
                }
            }
            still.store(true, Ordering::SeqCst);
        });
        let begin = Instant::now();
        while done.load(Ordering::SeqCst) < 2 || !scribbled.load(Ordering::SeqCst) {
            shared.tick();
            shared.arrivals();
            shared.unregistered(false);
            tap.drain(usize::MAX, &mut sink);
            sink.0.clear();
            assert!(begin.elapsed() < LIMIT, "seed {seed}: a thread of the program makes no progress");
        }
        tap.end(&mut sink);
    }
}

/// Records events on the first thread while the tap is drained; returns whether the thread came to its end.
fn goes_on(
    shared: &Shared,
    tap: &mut Tap,
    rings: &'static Rings<Word>,
    first: Worker,
    limit: Duration,
) -> bool {
    let done = Arc::new(AtomicBool::new(false));
    let emitted = Arc::clone(&done);
    let worker = std::thread::spawn(move || {
        first.run(move || emit(rings, 1..2000));
        emitted.store(true, Ordering::SeqCst);
    });
    let mut sink = Addresses::default();
    let begin = Instant::now();
    while !done.load(Ordering::SeqCst) && begin.elapsed() < limit {
        shared.tick();
        tap.drain(1000, &mut sink);
    }
    let done = done.load(Ordering::SeqCst);
    if done {
        worker.join().expect("recorded");
    }
    done
}

#[test]
fn a_word_that_was_wiped_before_it_was_read_does_not_hold_its_thread_up_for_ever() {
    let (shared, mut tap, rings, first) = fixture(Flags::default());
    first.run(move || emit(rings, 1..10));
    let ring = (0..8).find(|&ring| tap.map.control(ring).owner.0.id.load(Ordering::Relaxed) != 0);
    let words = tap.map.words(ring.expect("the thread has a ring"));
    // SAFETY: the fourth word of the thread's ring, whose first blocks have memory.
    unsafe { (*words.add(3)).store(0, Ordering::Relaxed) };
    assert!(goes_on(&shared, &mut tap, rings, first, LIMIT));
}

#[test]
fn a_number_that_no_thread_has_taken_does_not_hold_its_thread_up_for_ever() {
    let (shared, mut tap, rings, first) = fixture(Flags::default());
    first.run(move || emit(rings, 1..10));
    let ring = (0..8).find(|&ring| tap.map.control(ring).owner.0.id.load(Ordering::Relaxed) != 0);
    let words = tap.map.words(ring.expect("the thread has a ring"));
    // SAFETY: the fourth word of the thread's ring, whose first blocks have memory.
    unsafe { (*words.add(3)).store(LAP | prefix_word(prefix::SEQ, 1 << 40), Ordering::Relaxed) };
    assert!(goes_on(&shared, &mut tap, rings, first, LIMIT));
}

#[test]
fn a_pause_that_the_tool_did_not_request_ends() {
    let (shared, mut tap, rings, first) = fixture(Flags::default());
    tap.map.process(tap.process).gate.0.fetch_or(gate::PAUSE, Ordering::AcqRel);
    assert!(goes_on(&shared, &mut tap, rings, first, LIMIT));
}

#[test]
fn a_progress_that_the_reader_did_not_make_blocks_no_thread() {
    for taken in [7, u32::MAX, 1 << 31] {
        let (shared, mut tap, rings, first) = fixture(Flags::default());
        first.run(move || emit(rings, 1..10));
        for ring in 0..8 {
            tap.map.control(ring).consumer.0.taken.store(taken, Ordering::Relaxed);
        }
        assert!(goes_on(&shared, &mut tap, rings, first, LIMIT), "taken {taken}");
    }
}

#[test]
fn an_overwritten_header_leads_no_thread_out_of_the_mapping() {
    let (shared, mut tap, rings, first) = fixture(Flags::default());
    let header = tap.map.header();
    for (word, value) in [
        (&header.processes, 1 << 20),
        (&header.rings, 1 << 13),
        (&header.ring_log2, 24),
        (&header.block_log2, 23),
        (&header.budget, u32::MAX),
        (&header.registry.0.process_hint, u32::MAX),
        (&header.registry.0.ring_hint, u32::MAX),
    ] {
        word.store(value, Ordering::Relaxed);
    }
    let second = Worker::new();
    second.run(move || emit(rings, 1..2));
    assert!(goes_on(&shared, &mut tap, rings, first, LIMIT));
}
