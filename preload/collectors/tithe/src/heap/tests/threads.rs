//! Threads with a cache each on one heap.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::thread;
use std::vec::Vec;

use super::*;

const THREADS: usize = 4;
const ROUNDS: usize = 4000;

/// The pointer that threads share, to a heap that outlives them.
#[derive(Clone, Copy)]
struct Shared(*const Heap);

// SAFETY: the heap is safe to share, and `run` joins the threads before it ends.
unsafe impl Send for Shared {}

impl Shared {
    fn heap(&self) -> &'static Heap {
        // SAFETY: `run` keeps the heap until it has joined the threads.
        unsafe { &*self.0 }
    }
}

/// The next number of a simple generator.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

fn fill(block: usize, bytes: usize) {
    set_word(block, bytes);
    set_word(block + bytes / 8 * 8 - 8, bytes ^ block);
}

fn verify(block: usize) {
    let bytes = word(block);
    assert!((16..300_000).contains(&bytes), "{bytes} in {block:#x}");
    assert_eq!(if bytes < 24 { bytes ^ block } else { word(block + bytes / 8 * 8 - 8) }, bytes ^ block);
}

fn size(state: &mut u64) -> usize {
    match next(state) % 20 {
        0 => 24 + next(state) % 200_000,
        1..4 => 24 + next(state) % 20_000,
        _ => 24 + next(state) % 500,
    }
}

/// Allocates, and has other threads free half of it.
fn work(heap: &Heap, number: usize, to: &mpsc::SyncSender<usize>, from: &mpsc::Receiver<usize>) {
    // SAFETY: `open_cache` has just opened this cache for this thread alone.
    let mut cache = unsafe { &mut *heap.open_cache(number as i32 + 1).expect("a cache") };
    let mut state = number as u64 + 99;
    let mut own = Vec::new();
    for round in 0..ROUNDS {
        let bytes = size(&mut state);
        let block = heap.allocate(cache, bytes, round % 5 == 0) as usize;
        assert!(block != 0 && block.is_multiple_of(16));
        fill(block, bytes);
        if next(&mut state).is_multiple_of(2) {
            own.push(block);
        } else if let Err(mpsc::TrySendError::Full(block) | mpsc::TrySendError::Disconnected(block)) =
            to.try_send(block)
        {
            own.push(block);
        }
        while let Ok(block) = from.try_recv() {
            verify(block);
            // SAFETY: a live block that the other thread has sent and no longer uses.
            assert_eq!(unsafe { heap.free(cache, block as *mut u8) }, Ok(()));
        }
        if own.len() > 200 {
            let block = own.swap_remove(next(&mut state) % own.len());
            verify(block);
            // SAFETY: a live block that only this thread has.
            assert_eq!(unsafe { heap.free(cache, block as *mut u8) }, Ok(()));
        }
        if round % 1000 == 999 {
            // As if the thread ended and another one started.
            // SAFETY: the cache of this thread, which does not use it again.
            unsafe { heap.close_cache(cache) };
            // SAFETY: `open_cache` has just opened this cache for this thread alone.
            cache = unsafe { &mut *heap.open_cache(number as i32 + 1).expect("a cache") };
            assert_eq!(heap.check(), Ok(()));
        }
    }
    for block in own {
        verify(block);
        // SAFETY: a live block that only this thread has.
        assert_eq!(unsafe { heap.free(cache, block as *mut u8) }, Ok(()));
    }
    // SAFETY: the cache of this thread, which does not use it again.
    unsafe { heap.close_cache(cache) };
}

fn run(mode: Mode, fail_every: u64) -> HeapFixture {
    let fixture = HeapFixture::new(mode, 0);
    fixture.heap.units.lock().memory.heap.fail_every(fail_every);
    let shared = Shared(&raw const *fixture.heap);
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::sync_channel(500)).unzip();
    let threads: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(number, receiver)| {
            let sender = senders[(number + 1) % THREADS].clone();
            thread::spawn(move || {
                let heap = shared.heap();
                work(heap, number, &sender, &receiver);
                receiver
            })
        })
        .collect();
    drop(senders);
    // Join all before a failure of one can drop the heap under the others.
    let joined: Vec<_> = threads.into_iter().map(thread::JoinHandle::join).collect();
    let rests: Vec<_> = joined.into_iter().map(|rest| rest.expect("no thread fails")).collect();
    fixture.check();
    // Blocks that no thread has received.
    let cache = fixture.heap.open_cache(1).expect("a cache");
    for block in rests.iter().flat_map(|rest| rest.try_iter()) {
        verify(block);
        // SAFETY: a live block that no other thread has, and a cache of this thread.
        assert_eq!(unsafe { fixture.heap.free(&mut *cache, block as *mut u8) }, Ok(()));
    }
    // SAFETY: the cache of this thread, which does not use it again.
    unsafe { fixture.heap.close_cache(cache) };
    fixture
}

#[test]
fn blocks_go_from_thread_to_thread() {
    for mode in [Mode::Explicit, Mode::Hybrid] {
        let fixture = run(mode, 0);
        fixture.audit();
        assert_eq!((fixture.heap.live_bytes(), fixture.census().live_bytes), (0, 0));
        // Of two threads that initialise a span of one class at once, one may reserve all its blocks in the other's:
        // its own then stays in the list, without taken blocks.
        let reservation = &fixture.heap.reservation;
        let of_spans = |unit: &usize| (1..SPAN_CLASSES).contains(&usize::from(reservation.span_class(*unit)));
        let kept = (0..reservation.units()).filter(of_spans).inspect(|&unit| {
            // SAFETY: the first unit of a span; the other threads have been joined.
            let span = unsafe { &*reservation.span(reservation.first(unit)) };
            assert_eq!(
                span.free, CLASS[span.span_class as usize].blocks,
                "a span without live blocks is whole"
            );
        });
        let kept = kept.count();
        assert!(kept <= 2 * THREADS, "{kept} units wait");
        let free = fixture.heap.units.lock().free_bytes();
        assert_eq!(free + kept * UNIT, reservation.units() * UNIT);
    }
}

/// Replaces blocks of two threads at random, each by a block of the same thread, which ends now and then. Returns on how
/// many lines of the processor's cache blocks of both lie, and on how many there are blocks.
fn replace_in_turn(mode: Mode) -> (usize, usize) {
    let fixture = HeapFixture::new(mode, 3);
    let mut state = 7;
    let new = |cache: usize, state: &mut u64| {
        let bytes = 8 + next(state) % 249;
        (fixture.heap.allocate(fixture.cache(cache), bytes, false) as usize, bytes)
    };
    let mut blocks: [Vec<(usize, usize)>; 2] =
        core::array::from_fn(|_| (0..500).map(|_| new(0, &mut state)).collect());
    for _ in 0..20 {
        for _ in 0..2000 {
            for (thread, own) in blocks.iter_mut().enumerate() {
                let at = next(&mut state) % own.len();
                // SAFETY: a live block that nothing uses.
                let freed = unsafe { fixture.heap.free(fixture.cache(thread + 1), own[at].0 as *mut u8) };
                assert_eq!(freed, Ok(()));
                own[at] = new(thread + 1, &mut state);
            }
        }
        [1, 2].into_iter().for_each(|cache| fixture.heap.flush_all(fixture.cache(cache)));
        fixture.check();
    }
    let mut threads_of_lines = BTreeMap::new();
    for (thread, own) in blocks.iter().enumerate() {
        for &(address, bytes) in own {
            for line in address / 64..=(address + bytes - 1) / 64 {
                *threads_of_lines.entry(line).or_insert(0) |= 1 << thread;
            }
        }
    }
    let shared = threads_of_lines.values().filter(|&&threads| threads == 3).count();
    (shared, threads_of_lines.len())
}

#[test]
fn blocks_of_two_threads_lie_on_one_line_of_the_cache_rarely() {
    for mode in [Mode::Explicit, Mode::Hybrid] {
        let (shared, all) = replace_in_turn(mode);
        assert!(shared * 10 < all, "{shared} of {all} lines");
    }
}

#[test]
fn caches_are_used_again() {
    let fixture = run(Mode::Explicit, 0);
    let mut count = 0;
    fixture.heap.caches.lock().each(|cache| {
        count += 1;
        // SAFETY: caches are never unmapped, and their threads have been joined.
        assert!((1..SPAN_CLASSES).all(|span_class| unsafe { (*cache).length(span_class) } == 0));
    });
    assert!(count <= THREADS, "{count} caches for {THREADS} threads at a time");
}
