//! A file system without memory, simulated by a truncated file: an access to a page after its end raises SIGBUS, too.

use std::fs::File;

use super::*;

/// Truncates the file after the first `rings` rings and `blocks` blocks of the next.
fn cut(shared: &Shared, rings: usize, blocks: u32) {
    let end = shared.map.geometry.blocks(rings, 0..blocks).end;
    let file = File::options().write(true).open(shared.path()).expect("it is there");
    file.set_len(end.next_multiple_of(4096) as u64).expect("it can be truncated");
}

/// A file of large blocks, so that each has pages of its own, and this process's rings.
fn large(memory: u64) -> (Shared, &'static Rings<Word>) {
    large_with(8, memory)
}

fn large_with(rings: usize, memory: u64) -> (Shared, &'static Rings<Word>) {
    let _environment = ENVIRONMENT.lock();
    let options = Options { rings, ring_log2: 12, block_log2: 9, processes: 4, memory, ..Options::default() };
    let shared = Shared::create(&options).expect("a file can be made");
    // SAFETY: the tests of this program change and read the environment only here.
    unsafe { std::env::set_var("HEAPTOLL_RECORD", shared.path()) };
    let rings: &'static Rings<Word> = Box::leak(Box::new(Rings::new()));
    let first = Worker::new();
    first.run(|| assert!(rings.attach()));
    (shared, rings)
}

fn emit_until_read(shared: &mut Shared, rings: &'static Rings<Word>, events: usize) -> Addresses {
    let arrival = shared.arrivals().remove(0);
    let mut tap = Tap::new(shared, arrival.index);
    let worker = std::thread::spawn(move || emit(rings, 1..events + 1));
    let mut sink = Addresses::default();
    while !worker.is_finished() {
        tap.drain(1000, &mut sink);
    }
    worker.join().expect("recorded");
    while tap.drain(1000, &mut sink).words > 0 {}
    sink
}

#[test]
fn a_ring_that_can_not_grow_goes_round_and_loses_nothing() {
    let (mut shared, rings) = large(8 << 15);
    // The first ring is for threads to share, the second is the first thread's.
    cut(&shared, 2, 2);
    let sink = emit_until_read(&mut shared, rings, 20_000);
    assert_eq!(sink.0, (1..=20_000).map(|block| block * 8).collect::<Vec<u64>>());
    let reach = shared.map.control(2).consumer.0.reach.load(Ordering::Relaxed);
    assert_eq!(shared.map.geometry.reach(reach), Some((2, true)));
    assert_eq!(
        shared.map.header().registry.0.blocks.load(Ordering::Relaxed),
        4,
        "refused blocks are not counted"
    );
}

#[test]
fn a_ring_grows_while_there_is_memory() {
    let (mut shared, rings) = large(8 << 15);
    let sink = emit_until_read(&mut shared, rings, 20_000);
    assert_eq!(sink.0.len(), 20_000);
    let reach = shared.map.control(2).consumer.0.reach.load(Ordering::Relaxed);
    assert_eq!(shared.map.geometry.reach(reach), Some((8, true)));
}

#[test]
fn a_thread_without_memory_is_left_out_and_goes_on() {
    let (mut shared, rings) = large(8 << 15);
    // No memory for a ring of the thread's own, nor for one that threads share.
    cut(&shared, 0, 0);
    for _ in 0..3 {
        let unrecorded = std::thread::spawn(move || (0..100).all(|_| rings.thread().is_none()));
        assert!(unrecorded.join().expect("it goes on"));
    }
    assert_eq!(shared.left_out().threads, 3);
    let arrival = shared.arrivals().remove(0);
    assert_eq!(shared.map.process(arrival.index).threads_left_out.load(Ordering::Relaxed), 3);
}

#[test]
fn threads_beyond_the_memory_share_a_ring() {
    // Memory for 16 blocks: first blocks for 7 threads, of which one is there, and the shared ring.
    let (mut shared, rings) = large(16 << 12);
    let arrival = shared.arrivals().remove(0);
    let mut tap = Tap::new(&shared, arrival.index);
    let mut sink = Addresses::default();
    let crowd: Vec<Worker> = (0..12).map(|_| Worker::new()).collect();
    for worker in &crowd {
        worker.run(move || emit(rings, 1..20));
    }
    while tap.drain(1000, &mut sink).words > 0 {}
    assert_eq!(sink.0.len(), 12 * 19);
    assert!(shared.map.header().registry.0.blocks.load(Ordering::Relaxed) <= 16);
    assert_eq!(shared.left_out().threads, 0);
}

/// The tool is suspended while rings grow and fill, and then finds that the process has ended.
#[test]
fn what_rings_have_grown_by_since_the_last_drain_is_given_at_the_end() {
    let (mut shared, rings) = large_with(32, 32 << 15);
    let arrival = shared.arrivals().remove(0);
    let mut tap = Tap::new(&shared, arrival.index);
    let mut sink = Addresses::default();
    let workers: Vec<Worker> = (0..5).map(|_| Worker::new()).collect();
    for worker in &workers {
        worker.run(move || emit(rings, 1..2));
    }
    tap.drain(1000, &mut sink);
    assert_eq!(tap.merge.reach(), 6 * 2 * 512, "rings begin with two blocks");
    // Two words each: the rings of 4096 words are almost full.
    for worker in &workers {
        worker.run(move || emit(rings, 2..2000));
    }
    tap.end(&mut sink);
    assert_eq!(sink.0.len(), 5 * 1999);
    assert_eq!(tap.losses(), crate::Losses::default());
}

/// The reader finds no memory for the pages by which a ring has grown, and the thread has ended.
#[test]
fn a_ring_whose_pages_could_not_be_reached_leaves_a_loss() {
    for at_the_end in [false, true] {
        let (mut shared, rings) = large(8 << 15);
        let arrival = shared.arrivals().remove(0);
        let mut tap = Tap::new(&shared, arrival.index);
        let mut sink = Addresses::default();
        let worker = Worker::new();
        worker.run(move || emit(rings, 1..2));
        tap.drain(1000, &mut sink);
        // Two words each: the ring of two blocks becomes one of four.
        worker.run(move || emit(rings, 2..800));
        drop(worker);
        cut(&shared, 2, 2);
        let begun = Instant::now();
        while !tap.losses().unread && !at_the_end && begun.elapsed() < Duration::from_secs(120) {
            tap.drain(1000, &mut sink);
        }
        tap.end(&mut sink);
        assert!(tap.losses().unread, "at the end: {at_the_end}, {:?}", tap.losses());
        assert!((500..=512).contains(&sink.0.len()), "{}", sink.0.len());
    }
}
