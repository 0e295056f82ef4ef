//! Threads that die while they record an event, which no test can bring about at will: the words that they leave are
//! written by hand.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::PATIENCE;
use crate::layout::{SHARED, gate};
use crate::word::{ALLOC, LAP, note, note_word, tagged};
use crate::{Drained, Flags, Options, RingEvent, Rings, Shared, Sink, Tap, ThreadWord};

thread_local! {
    static WORD: Cell<usize> = const { Cell::new(0) };
}

struct Word;

impl ThreadWord for Word {
    fn get() -> usize {
        WORD.get()
    }
    fn set(word: usize) {
        WORD.set(word);
    }
}

/// Addresses of events, as they arrive.
#[derive(Default)]
struct Addresses(Vec<u64>);

impl Sink for Addresses {
    fn event(&mut self, _thread: u32, event: RingEvent<'_>) {
        if let RingEvent::Alloc { address, .. } | RingEvent::Free { address, .. } = event {
            self.0.push(address);
        }
    }
    fn thread(&mut self, _thread: u32, _tid: i32) {}
}

/// The environment is shared by all tests.
static ENVIRONMENT: Mutex<()> = Mutex::new(());

/// A thread that runs the jobs it is sent.
struct Worker(Sender<Box<dyn FnOnce() + Send>>, Receiver<()>);

impl Worker {
    fn new() -> Worker {
        let (jobs, todo) = channel::<Box<dyn FnOnce() + Send>>();
        let (sender, done) = channel();
        std::thread::spawn(move || {
            for job in todo {
                job();
                let _ = sender.send(());
            }
        });
        Worker(jobs, done)
    }

    fn run(&self, job: impl FnOnce() + Send + 'static) {
        self.0.send(Box::new(job)).expect("the thread is there");
        self.1.recv().expect("the job is done");
    }
}

/// A file, the tap of this process, its rings, and the first thread.
fn fixture(flags: Flags) -> (Shared, Tap, &'static Rings<Word>, Worker) {
    let _environment = ENVIRONMENT.lock();
    let options =
        Options { flags, rings: 8, ring_log2: 8, block_log2: 6, processes: 4, ..Options::default() };
    let mut shared = Shared::create(&options).expect("a file can be made");
    // SAFETY: the tests of this program change and read the environment only here.
    unsafe { std::env::set_var("HEAPTOLL_RECORD", shared.path()) };
    let rings: &'static Rings<Word> = Box::leak(Box::new(Rings::new()));
    let first = Worker::new();
    first.run(|| assert!(rings.attach()));
    let arrival = shared.arrivals().remove(0);
    let tap = Tap::new(&shared, arrival.index);
    (shared, tap, rings, first)
}

fn drain_until(tap: &mut Tap, sink: &mut Addresses, count: usize, patience: Duration) -> Drained {
    let begin = Instant::now();
    let mut all = Drained::default();
    while sink.0.len() < count && begin.elapsed() < patience {
        let drained = tap.drain(1000, sink);
        tap.check().expect("sound");
        all.words += drained.words;
        all.missing += drained.missing;
    }
    all
}

fn emit(rings: &'static Rings<Word>, blocks: std::ops::Range<usize>) {
    for block in blocks {
        rings.thread().expect("attached").alloc(block * 8, 24, 24);
    }
}

#[test]
fn a_number_whose_thread_died_is_skipped() {
    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let mut sink = Addresses::default();
    let process = tap.map.process(tap.process);
    let lost = || process.sequence.0.fetch_add(1, Ordering::AcqRel);
    std::thread::spawn(move || emit(rings, 1..4)).join().expect("recorded");
    lost();
    lost();
    std::thread::spawn(move || emit(rings, 4..7)).join().expect("recorded");
    let begin = Instant::now();
    let all = drain_until(&mut tap, &mut sink, 6, Duration::from_secs(10));
    assert_eq!(sink.0, [8, 16, 24, 32, 40, 48]);
    assert_eq!(all.missing, 2);
    assert!(begin.elapsed() >= Duration::from_millis(15), "a thread had no time to write");
}

#[test]
fn a_number_whose_thread_lives_is_waited_for() {
    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let mut sink = Addresses::default();
    let (sender, receiver) = channel::<()>();
    let waiter = std::thread::spawn(move || {
        emit(rings, 1..2);
        let _ = receiver.recv();
    });
    drain_until(&mut tap, &mut sink, 1, Duration::from_secs(10));
    // To the reader, the waiter has taken a number and is about to write.
    tap.map.process(tap.process).sequence.0.fetch_add(1, Ordering::AcqRel);
    let busy = |busy| {
        for ring in 0..8 {
            let owner = &tap.map.control(ring).owner.0;
            if owner.thread.load(Ordering::Relaxed) == 1 && owner.id.load(Ordering::Relaxed) != 0 {
                owner.busy.store(busy, Ordering::Release);
            }
        }
    };
    busy(1);
    std::thread::spawn(move || emit(rings, 2..4)).join().expect("recorded");
    let all = drain_until(&mut tap, &mut sink, 2, Duration::from_millis(200));
    assert_eq!((sink.0.len(), all.missing), (1, 0));
    drop(sender);
    waiter.join().expect("ends");
    // Now it is busy and dead.
    let all = drain_until(&mut tap, &mut sink, 3, Duration::from_secs(10));
    assert_eq!((sink.0.as_slice(), all.missing), ([8, 16, 24].as_slice(), 1));
}

/// The first thread records a free without a number, then the second gets the block, both after the reader has read the
/// first ring and before it reads the second.
#[test]
fn an_event_without_a_number_comes_before_the_one_that_depends_on_it() {
    struct Interleaver {
        first: Worker,
        second: Worker,
        rings: &'static Rings<Word>,
        gate: &'static std::sync::atomic::AtomicU32,
        received: Vec<&'static str>,
    }

    impl Sink for Interleaver {
        fn event(&mut self, _thread: u32, event: RingEvent<'_>) {
            match event {
                RingEvent::SiteDefinition { .. } => {
                    let rings = self.rings;
                    // As if the first thread had read the gate before the second registered.
                    self.gate.fetch_and(!gate::SEQUENCED, Ordering::AcqRel);
                    self.first.run(|| rings.thread().expect("attached").free(800, false));
                    self.gate.fetch_or(gate::SEQUENCED, Ordering::AcqRel);
                    self.second.run(|| rings.thread().expect("attached").alloc(800, 24, 24));
                }
                RingEvent::Alloc { .. } => self.received.push("alloc"),
                RingEvent::Free { .. } => self.received.push("free"),
                _ => {}
            }
        }
        fn thread(&mut self, _thread: u32, _tid: i32) {}
    }

    for others in 0..3 {
        let (_shared, mut tap, rings, first) = fixture(Flags::default());
        let second = Worker::new();
        second.run(|| rings.thread().expect("attached").define_site(1, &[2]));
        for _ in 0..others {
            std::thread::spawn(|| assert!(rings.thread().is_some())).join().expect("registered");
        }
        // SAFETY: the file stays mapped as long as `tap`, which outlives the sink that gets the reference.
        let gate = unsafe { &*std::ptr::from_ref(&tap.map.process(tap.process).gate.0) };
        let mut sink = Interleaver { first, second, rings, gate, received: Vec::new() };
        for _ in 0..10 {
            tap.drain(1000, &mut sink);
        }
        assert_eq!(sink.received, ["free", "alloc"]);
    }
}

/// The same with latencies: the reader has the free, but not its latency.
#[test]
fn a_free_without_a_number_that_waits_for_its_latency_comes_before_the_one_that_depends_on_it() {
    let flags = Flags { latency: true, ..Flags::default() };
    let (_shared, mut tap, rings, first) = fixture(flags);
    let mut sink = Addresses::default();
    let second = Worker::new();
    second.run(|| assert!(rings.thread().is_some()));
    let gate = &tap.map.process(tap.process).gate.0;
    // As if the first thread had read the gate before the second registered.
    gate.fetch_and(!gate::SEQUENCED, Ordering::AcqRel);
    first.run(|| rings.thread().expect("attached").free(800, false));
    gate.fetch_or(gate::SEQUENCED, Ordering::AcqRel);
    second.run(|| rings.thread().expect("attached").alloc(1600, 24, 24));
    drain_until(&mut tap, &mut sink, 1, Duration::from_millis(100));
    assert_eq!(sink.0, []);
    first.run(|| rings.thread().expect("attached").took(5));
    drain_until(&mut tap, &mut sink, 2, Duration::from_secs(10));
    assert_eq!(sink.0, [800, 1600]);
}

#[test]
fn an_event_whose_number_was_skipped_is_delivered_late() {
    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let mut sink = Addresses::default();
    std::thread::spawn(move || emit(rings, 1..3)).join().expect("recorded");
    drain_until(&mut tap, &mut sink, 2, Duration::from_secs(10));
    // As if numbers up to 10 had been skipped.
    tap.merge.skip_to(10);
    std::thread::spawn(move || emit(rings, 3..12)).join().expect("recorded");
    drain_until(&mut tap, &mut sink, 11, Duration::from_secs(10));
    assert_eq!(sink.0, (1..12).map(|block| block * 8).collect::<Vec<u64>>());
}

#[test]
fn events_that_arrive_after_they_were_skipped_are_not_lost() {
    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let mut sink = Addresses::default();
    std::thread::spawn(move || emit(rings, 1..3)).join().expect("recorded");
    drain_until(&mut tap, &mut sink, 2, Duration::from_secs(10));
    // As if numbers up to 10 had been skipped one after the other, more than there are threads.
    for number in 3..=10 {
        tap.merge.skip_to(number);
    }
    assert!(tap.losses().damaged > 0);
    std::thread::spawn(move || emit(rings, 3..12)).join().expect("recorded");
    drain_until(&mut tap, &mut sink, 11, Duration::from_secs(10));
    assert_eq!(tap.losses(), crate::Losses::default());
}

/// Under load each drain may find a number missing, each time another.
#[test]
fn a_number_is_not_skipped_for_the_time_that_others_were_missing() {
    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let mut sink = Addresses::default();
    std::thread::spawn(move || emit(rings, 1..2)).join().expect("recorded");
    drain_until(&mut tap, &mut sink, 1, Duration::from_secs(10));
    // The thread that took it is about to write, and one before it has been missing for long.
    tap.map.process(tap.process).sequence.0.fetch_add(1, Ordering::AcqRel);
    let long_ago = Instant::now().checked_sub(PATIENCE * 2).expect("the machine runs for longer");
    tap.stuck = Some((0, long_ago));
    std::thread::spawn(move || emit(rings, 2..3)).join().expect("recorded");
    let drained = tap.drain(1000, &mut sink);
    assert!(drained.blocked);
    assert_eq!((sink.0.len(), drained.missing), (1, 0));
}

#[test]
fn a_free_whose_thread_died_before_its_latency_is_given() {
    let flags = Flags { latency: true, ..Flags::default() };
    let (_shared, mut tap, rings, _first) = fixture(flags);
    let mut sink = Addresses::default();
    std::thread::spawn(move || {
        emit(rings, 1..2);
        rings.thread().expect("attached").free(800, false);
    })
    .join()
    .expect("recorded");
    std::thread::spawn(move || emit(rings, 2..4)).join().expect("recorded");
    drain_until(&mut tap, &mut sink, 4, Duration::from_secs(10));
    assert_eq!(sink.0, [8, 800, 16, 24]);
}

#[test]
fn latencies_that_are_there_are_given_when_no_reader_waits_for_them_any_more() {
    #[derive(Default)]
    struct Latencies(Vec<u32>);

    impl Sink for Latencies {
        fn event(&mut self, _thread: u32, event: RingEvent<'_>) {
            if let RingEvent::Free { latency_ns, .. } = event {
                self.0.push(latency_ns);
            }
        }
        fn thread(&mut self, _thread: u32, _tid: i32) {}
    }

    let flags = Flags { latency: true, ..Flags::default() };
    let (_shared, mut tap, rings, first) = fixture(flags);
    let mut sink = Latencies::default();
    tap.drain(1, &mut sink);
    first.run(|| {
        for ns in 1..=60 {
            rings.thread().expect("attached").free(800, false);
            rings.thread().expect("attached").took(ns);
        }
    });
    tap.adopt(&mut sink);
    // As for a thread, or a process, that has ended.
    tap.merge.stop_waiting();
    for _ in 0..10 {
        tap.drain(1000, &mut sink);
    }
    assert_eq!(sink.0, (1..=60).collect::<Vec<u32>>());
}

#[test]
fn rings_of_threads_that_ended_are_used_again() {
    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let mut sink = Addresses::default();
    for thread in 0..50 {
        std::thread::spawn(move || emit(rings, thread + 1..thread + 2)).join().expect("recorded");
        drain_until(&mut tap, &mut sink, thread + 1, Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(10));
        tap.drain(1000, &mut sink);
    }
    assert_eq!(sink.0.len(), 50);
    assert!(tap.merge.readers().count() <= 8);
    let shared_ring = (0..1).any(|ring| tap.map.control(ring).owner.0.id.load(Ordering::Relaxed) != 0);
    assert!(!shared_ring, "threads shared a ring while others had become free");
}

#[test]
fn corrupted_words_do_not_lead_a_reader_astray() {
    let (_shared, mut tap, rings, _first) = fixture(Flags { latency: true, ..Flags::default() });
    let mut sink = Addresses::default();
    std::thread::spawn(move || emit(rings, 1..2)).join().expect("recorded");
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..200 {
        for ring in 0..8 {
            for n in 0..tap.map.geometry.ring_words() {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // SAFETY: `n` is below the words of a ring, and rings of this size are within the memory of the file.
                unsafe { (*tap.map.words(ring).add(n)).store(random, Ordering::Relaxed) };
            }
            tap.map.control(ring).owner.0.next.store(random as u32, Ordering::Relaxed);
        }
        let process = tap.map.process(tap.process);
        process.newest.0.store(random as u32 % 12, Ordering::Relaxed);
        process.gate.0.store(gate::VALID, Ordering::Relaxed);
        for _ in 0..20 {
            tap.drain(1000, &mut sink);
        }
    }
    assert!(tap.merge.readers().count() <= 8);
    tap.end(&mut sink);
}

/// A list of new rings that is circular, or that names rings of other processes, must not make readers without end.
#[test]
fn a_ring_is_read_once_and_by_its_process_only() {
    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let mut sink = Addresses::default();
    std::thread::spawn(move || emit(rings, 1..2)).join().expect("recorded");
    let foreign = 7;
    tap.map.control(foreign).owner.0.id.store(9 << 32 | 1, Ordering::Relaxed);
    for ring in 0..8 {
        tap.map.control(ring).owner.0.next.store((ring as u32 + 1) % 8 + 1, Ordering::Relaxed);
    }
    for _ in 0..100 {
        tap.map.process(tap.process).newest.0.store(1, Ordering::Relaxed);
        tap.drain(1000, &mut sink);
        tap.check().expect("sound");
    }
    assert_eq!(tap.merge.readers().count(), 2);
    tap.map.control(foreign).owner.0.id.store(0, Ordering::Relaxed);
}

/// A sink allocates an entry for each thread up to the number that it receives.
#[test]
fn a_corrupted_word_makes_no_thread() {
    #[derive(Default)]
    struct Threads(Vec<u32>);

    impl Sink for Threads {
        fn event(&mut self, thread: u32, _event: RingEvent<'_>) {
            self.0.push(thread);
        }
        fn thread(&mut self, thread: u32, _tid: i32) {
            self.0.push(thread);
        }
    }

    let (_shared, mut tap, rings, _first) = fixture(Flags::default());
    let crowd: Vec<Worker> = (0..9).map(|_| Worker::new()).collect();
    for worker in &crowd {
        worker.run(move || emit(rings, 1..2));
    }
    // The first ring is the one that threads share.
    assert_eq!(tap.map.control(0).owner.0.thread.load(Ordering::Relaxed), SHARED);
    let mut sink = Threads::default();
    tap.drain(1000, &mut sink);
    let end = (0..tap.map.geometry.ring_words())
        // SAFETY: `n` is below the words of a ring.
        .find(|&n| unsafe { (*tap.map.words(0).add(n)).load(Ordering::Relaxed) } == 0)
        .expect("there is space");
    let corrupted = [note_word(note::THREAD, 1 << 47), tagged(ALLOC, 5)];
    for (n, word) in corrupted.into_iter().enumerate() {
        // SAFETY: the ring has two free words from `end` on, since the nine workers wrote far fewer words than it has.
        unsafe { (*tap.map.words(0).add(end + n)).store(LAP | word, Ordering::Relaxed) };
    }
    assert_eq!(tap.drain(1000, &mut sink).words, 2);
    assert!(sink.0.iter().all(|&thread| thread < 10), "{:?}", sink.0);
}

mod corruption;
mod execs;
mod memory;
