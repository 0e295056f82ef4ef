//! Collections by what was handed out, those that only mark, and those that sweep at once: `TITHE_EVERY`,
//! `TITHE_RECLAIM`, `TITHE_SWEEP`.

use super::*;

fn every(bytes: usize) -> Settings {
    Settings { mode: Mode::Collect, every: Some(bytes), poison: true, ..Settings::new() }
}

fn collections(bench: &Bench) -> u64 {
    bench.heap.collection.lock().statistics.collections
}

#[test]
fn every_byte_means_a_collection_for_each_block_but_the_first() {
    let bench = Bench::with(&every(1), 1);
    for count in 0..100 {
        bench.allocate([16, 200, 5000, 100_000][count % 4]);
        assert_eq!(collections(&bench), count as u64);
    }
    bench.audit();
}

#[test]
fn collections_come_as_often_as_the_bytes_say() {
    for (period, bytes) in [(1000, 16), (64 << 10, 48), (64 << 10, 1000), (64 << 10, 5000), (256 << 10, LAST)]
    {
        let bench = Bench::with(&every(period), 1);
        let block = bench.usable(bench.allocate(bytes));
        let blocks = 100 * period / block;
        for _ in 1..blocks {
            bench.allocate(bytes);
        }
        let came = collections(&bench);
        assert!(
            (97..=101).contains(&came),
            "{came} collections for 100 times {period} bytes in blocks of {bytes}"
        );
        bench.audit();
    }
}

#[test]
fn what_is_freed_does_not_put_a_collection_off() {
    let bench = Bench::with(&Settings { mode: Mode::Hybrid, ..every(1 << 20) }, 1);
    for _ in 0..50 {
        let block = bench.allocate(200_000);
        assert_eq!(bench.free(block), Ok(()));
    }
    assert_eq!(collections(&bench), 9);
}

#[test]
fn a_collection_that_is_asked_for_begins_the_count_anew() {
    let bench = Bench::with(&every(1 << 20), 1);
    for _ in 0..9 {
        bench.allocate(99_999);
    }
    bench.collect();
    for _ in 0..10 {
        bench.allocate(99_999);
    }
    assert_eq!(collections(&bench), 1);
    bench.allocate(99_999);
    bench.allocate(99_999);
    assert_eq!(collections(&bench), 2);
}

#[test]
fn of_k_collections_one_reclaims_and_the_others_only_mark() {
    for (eager, mode) in [(false, Mode::Collect), (true, Mode::Collect), (true, Mode::Hybrid)] {
        let settings = Settings { reclaim: 3, eager, mode, ..every(1 << 40) };
        let bench = Bench::with(&settings, 2);
        let mut roots = std::vec![0_usize; 4];
        bench.add_roots(&roots);
        for round in 0..9 {
            let dead = [16, 700, 5000, 100_000].map(|bytes| bench.allocate_clear(bytes, false));
            for (root, bytes) in roots.iter_mut().zip([16, 700, 5000, 100_000]) {
                *root = bench.allocate_clear(bytes, false);
            }
            let before = bench.heap.live_bytes();
            assert_eq!(bench.heap.collect(Reason::Budget), Ok(()));
            bench.check();
            let reclaims = round % 3 == 2;
            assert_eq!(dead.map(|block| bench.is_taken(block)), [!reclaims; 4], "round {round}");
            assert_eq!(bench.heap.live_bytes() < before, reclaims, "round {round}");
            bench.audit();
        }
        let statistics = bench.heap.collection.lock().statistics;
        assert_eq!(statistics.collections, 9);
    }
}

#[test]
fn one_that_is_asked_for_or_that_memory_is_wanted_of_reclaims_whatever_its_number() {
    for reason in [Reason::Called, Reason::Memory] {
        let bench = Bench::with(&Settings { reclaim: 1000, ..every(1 << 40) }, 1);
        let dead = bench.allocate(100);
        assert_eq!(bench.heap.collect(Reason::Budget), Ok(()));
        assert!(bench.is_taken(dead));
        assert_eq!(bench.heap.collect(reason), Ok(()));
        assert!(!bench.is_taken(dead));
        bench.audit();
    }
}

#[test]
fn after_an_eager_sweep_nothing_waits_and_the_lowest_blocks_come_first() {
    let bench = Bench::with(&Settings { eager: true, ..every(1 << 40) }, 1);
    let first = bench.allocate(64);
    for _ in 0..5000 {
        bench.allocate(64);
        bench.allocate(3000);
        bench.allocate(40_000);
    }
    bench.heap.give_back(bench.cache(0));
    assert_eq!(bench.heap.collect(Reason::Budget), Ok(()));
    assert!(bench.heap.swept.load(Ordering::Relaxed));
    assert_eq!(bench.heap.units.lock().used_bytes(&bench.heap.room), 0);
    assert_eq!(bench.heap.teller.slot().used_bytes.load(Ordering::Relaxed), 0);
    bench.check();
    // One block in each of many spans.
    let mut roots = std::vec![0_usize; 64];
    bench.add_roots(&roots);
    let blocks: std::vec::Vec<usize> = (0..64 * 256).map(|_| bench.allocate(63)).collect();
    for (root, blocks) in roots.iter_mut().zip(blocks.chunks(256)) {
        *root = blocks[100];
    }
    bench.heap.give_back(bench.cache(0));
    assert_eq!(bench.heap.collect(Reason::Budget), Ok(()));
    let span = |address: usize| bench.heap.room.unit_of(address);
    let lowest = roots.iter().copied().min().expect("64 roots");
    assert_eq!(span(bench.allocate(63)), span(lowest), "{first:#x}");
    bench.audit();
}

#[test]
fn collections_tell_what_processor_time_they_took() {
    let bench = Bench::with(&Settings { eager: true, ..every(1 << 40) }, 1);
    let mut roots = std::vec![0_usize];
    bench.add_roots(&roots);
    for _ in 0..100_000 {
        let node = bench.allocate_clear(48, false);
        set_word(node, roots[0]);
        roots[0] = node;
    }
    let start = heaptoll_floor::thread_cpu_ns();
    bench.collect();
    let took = heaptoll_floor::thread_cpu_ns() - start;
    let told = bench.heap.teller.slot().collector_cpu_ns.load(Ordering::Relaxed);
    assert!(told <= took && told > took / 2, "{told} of {took} ns");
}
