//! The cost of a producer and a consumer: one thread records mallocs and frees, another drains.
//!
//! `cargo run --release -p heaptoll-alloc-ring --features tool --example ring_throughput [EVENTS] [THREADS]`
//!
//! First in turns (bursts into an empty ring, and draining full rings), then both at once.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heaptoll_alloc_ring::{Options, RingEvent, Rings, Shared, Sink, Tap, ThreadWord};

thread_local! {
    static WORD: Cell<usize> = const { Cell::new(0) };
}

struct Word;

impl ThreadWord for Word {
    #[inline(always)]
    fn get() -> usize {
        WORD.get()
    }
    #[inline(always)]
    fn set(word: usize) {
        WORD.set(word);
    }
}

static RINGS: Rings<Word> = Rings::new();

/// A checksum, by which a lost event is noticed. One sum, because several would cost more than what is measured.
#[derive(Default)]
struct Checksum(u64);

impl Sink for Checksum {
    #[inline(always)]
    fn event(&mut self, _thread: u32, event: RingEvent<'_>) {
        match event {
            RingEvent::Alloc { address, size, usable, .. } => {
                self.0 = self.0.wrapping_add(address + size + (usable << 20));
            }
            RingEvent::Free { address, .. } => self.0 = self.0.wrapping_sub(address),
            _ => {}
        }
    }
    fn thread(&mut self, _thread: u32, _tid: i32) {}
}

fn emit(pairs: u64, base: usize) {
    for n in 0..pairs as usize {
        let block = base + (n & 1023) * 64;
        if let Some(mut producer) = RINGS.thread() {
            producer.alloc(black_box(block), 24, 24);
        }
        if let Some(mut producer) = RINGS.thread() {
            producer.free(black_box(block), false);
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let Some(Ok(events)) = arguments.next().or(Some(Ok(40_000_000))) else { return usage() };
    let Some(Ok(threads)) = arguments.next().or(Some(Ok(1))) else { return usage() };
    let mut shared = match Shared::create(&Options::default()) {
        Ok(shared) => shared,
        Err(error) => return eprintln!("ring_throughput: {error}"),
    };
    // SAFETY: no other thread runs yet that could read the environment.
    unsafe { std::env::set_var("HEAPTOLL_RECORD", shared.path()) };
    assert!(RINGS.attach());
    let arrival = shared.arrivals().remove(0);
    let mut tap = Tap::new(&shared, arrival.index);
    let mut sum = Checksum::default();

    // In turns: the cost of each while the other does nothing. 120,000 words are nearly a ring. The machine may be
    // busy: the best round shows the cost of the code, the median its cost here.
    in_turns("in turns", events, 60_000, &mut tap, &mut sum);
    if threads > 1 {
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(RINGS.attach()));
        });
        in_turns("in turns, with numbers", events, 30_000, &mut tap, &mut sum);
    }

    // At once: the first thread records, or others do while it waits.
    let done = AtomicBool::new(false);
    sum.0 = 0;
    std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            let mut busy = Duration::ZERO;
            let mut drains = 0u64;
            loop {
                let last = done.load(Ordering::Acquire);
                shared.tick();
                let begin = cpu();
                let now = tap.drain(usize::MAX, &mut sum);
                busy += cpu() - begin;
                drains += 1;
                if last && now.idle {
                    return (busy, drains);
                }
                shared.wait(Duration::from_millis(1));
            }
        });
        let begin = Instant::now();
        let emitting_cpu = if threads == 1 {
            let begin = cpu();
            emit(events / 2, 1 << 20);
            cpu() - begin
        } else {
            std::thread::scope(|scope| {
                let emitting: Vec<_> = (0..threads)
                    .map(|thread| {
                        scope.spawn(move || {
                            let begin = cpu();
                            emit(events / 2 / threads, (1 << 20) + thread as usize * (1 << 20));
                            cpu() - begin
                        })
                    })
                    .collect();
                emitting.into_iter().filter_map(|thread| thread.join().ok()).sum()
            })
        };
        let elapsed = begin.elapsed();
        done.store(true, Ordering::Release);
        if let Ok((busy, drains)) = consumer.join() {
            println!(
                "at once, {threads} threads: recorded in {:.2} ns an event ({:.2} of CPU), drained in {:.2} of CPU, \
                 {drains} drains",
                elapsed.as_secs_f64() * 1e9 / events as f64,
                emitting_cpu.as_secs_f64() * 1e9 / events as f64,
                busy.as_secs_f64() * 1e9 / events as f64,
            );
        }
    });
    let right = sum.0 == events / 2 / threads * threads * (24 + (24 << 20));
    println!("{}", if right { "all came out" } else { "something was lost or invented" });
}

/// CPU time of the calling thread.
fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime writes to `time`, a local variable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn in_turns(how: &str, events: u64, pairs: u64, tap: &mut Tap, sum: &mut Checksum) {
    let (mut elapsed, mut drained) = (Vec::new(), Vec::new());
    for _ in 0..(events / pairs / 2).max(1) {
        let begin = Instant::now();
        emit(pairs, 1 << 20);
        elapsed.push(begin.elapsed());
        let begin = Instant::now();
        tap.drain(usize::MAX, sum);
        drained.push(begin.elapsed());
    }
    let (elapsed, drained) = (figures(elapsed, pairs), figures(drained, pairs));
    println!("{how}: recorded in {elapsed} ns an event, drained in {drained}");
}

fn figures(mut rounds: Vec<Duration>, pairs: u64) -> String {
    rounds.sort();
    let ns = |time: Duration| time.as_secs_f64() * 1e9 / (2 * pairs) as f64;
    format!("{:.2} (median {:.2})", ns(rounds[0]), ns(rounds[rounds.len() / 2]))
}

fn usage() {
    eprintln!("usage: ring_throughput [EVENTS] [THREADS]");
}
