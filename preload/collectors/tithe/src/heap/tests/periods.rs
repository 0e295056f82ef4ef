//! Collections by allocated bytes, those that only mark, and those that sweep at once: `TITHE_EVERY`, `TITHE_RECLAIM`,
//! `TITHE_SWEEP`.

use super::*;

fn every(bytes: usize) -> Settings {
    Settings { mode: Mode::Collect, every: Some(bytes), poison: true, ..Settings::new() }
}

fn collections(fixture: &HeapFixture) -> u64 {
    fixture.heap.collector.lock().statistics.collections
}

#[test]
fn every_byte_means_a_collection_for_each_block_but_the_first() {
    let fixture = HeapFixture::with(&every(1), 1);
    for count in 0..100 {
        fixture.allocate([16, 200, 5000, 100_000][count % 4]);
        assert_eq!(collections(&fixture), count as u64);
    }
    fixture.audit();
}

#[test]
fn collections_are_as_frequent_as_the_period_requires() {
    for (period, bytes) in [(1000, 16), (64 << 10, 48), (64 << 10, 1000), (64 << 10, 5000), (256 << 10, LAST)]
    {
        let fixture = HeapFixture::with(&every(period), 1);
        let block = fixture.usable(fixture.allocate(bytes));
        let blocks = 100 * period / block;
        for _ in 1..blocks {
            fixture.allocate(bytes);
        }
        let came = collections(&fixture);
        assert!(
            (97..=101).contains(&came),
            "{came} collections for 100 times {period} bytes in blocks of {bytes}"
        );
        fixture.audit();
    }
}

#[test]
fn what_is_freed_does_not_put_a_collection_off() {
    let fixture = HeapFixture::with(&Settings { mode: Mode::Hybrid, ..every(1 << 20) }, 1);
    for _ in 0..50 {
        let block = fixture.allocate(200_000);
        assert_eq!(fixture.free(block), Ok(()));
    }
    assert_eq!(collections(&fixture), 9);
}

#[test]
fn a_requested_collection_restarts_the_period() {
    let fixture = HeapFixture::with(&every(1 << 20), 1);
    for _ in 0..9 {
        fixture.allocate(99_999);
    }
    fixture.collect();
    for _ in 0..10 {
        fixture.allocate(99_999);
    }
    assert_eq!(collections(&fixture), 1);
    fixture.allocate(99_999);
    fixture.allocate(99_999);
    assert_eq!(collections(&fixture), 2);
}

#[test]
fn of_k_collections_one_reclaims_and_the_others_only_mark() {
    for (eager, mode) in [(false, Mode::Collect), (true, Mode::Collect), (true, Mode::Hybrid)] {
        let settings = Settings { reclaim: 3, eager, mode, ..every(1 << 40) };
        let fixture = HeapFixture::with(&settings, 2);
        let mut roots = std::vec![0_usize; 4];
        fixture.add_roots(&roots);
        for round in 0..9 {
            let dead = [16, 700, 5000, 100_000].map(|bytes| fixture.allocate_clear(bytes, false));
            for (root, bytes) in roots.iter_mut().zip([16, 700, 5000, 100_000]) {
                *root = fixture.allocate_clear(bytes, false);
            }
            let before = fixture.heap.live_bytes();
            assert_eq!(fixture.heap.collect(Reason::Budget), Ok(()));
            fixture.check();
            let reclaims = round % 3 == 2;
            assert_eq!(dead.map(|block| fixture.is_taken(block)), [!reclaims; 4], "round {round}");
            assert_eq!(fixture.heap.live_bytes() < before, reclaims, "round {round}");
            fixture.audit();
        }
        let statistics = fixture.heap.collector.lock().statistics;
        assert_eq!(statistics.collections, 9);
    }
}

#[test]
fn a_collection_requested_or_on_memory_pressure_always_reclaims() {
    for reason in [Reason::Called, Reason::Memory] {
        let fixture = HeapFixture::with(&Settings { reclaim: 1000, ..every(1 << 40) }, 1);
        let dead = fixture.allocate(100);
        assert_eq!(fixture.heap.collect(Reason::Budget), Ok(()));
        assert!(fixture.is_taken(dead));
        assert_eq!(fixture.heap.collect(reason), Ok(()));
        assert!(!fixture.is_taken(dead));
        fixture.audit();
    }
}

#[test]
fn after_an_eager_sweep_nothing_waits_and_the_lowest_blocks_come_first() {
    let fixture = HeapFixture::with(&Settings { eager: true, ..every(1 << 40) }, 1);
    let first = fixture.allocate(64);
    for _ in 0..5000 {
        fixture.allocate(64);
        fixture.allocate(3000);
        fixture.allocate(40_000);
    }
    fixture.heap.flush_all(fixture.cache(0));
    assert_eq!(fixture.heap.collect(Reason::Budget), Ok(()));
    assert!(fixture.heap.swept.load(Ordering::Relaxed));
    assert_eq!(fixture.heap.units.lock().used_bytes(&fixture.heap.reservation), 0);
    assert_eq!(fixture.heap.reporter.slot().used_bytes.load(Ordering::Relaxed), 0);
    fixture.check();
    // One block in each of many spans.
    let mut roots = std::vec![0_usize; 64];
    fixture.add_roots(&roots);
    let blocks: std::vec::Vec<usize> = (0..64 * 256).map(|_| fixture.allocate(63)).collect();
    for (root, blocks) in roots.iter_mut().zip(blocks.chunks(256)) {
        *root = blocks[100];
    }
    fixture.heap.flush_all(fixture.cache(0));
    assert_eq!(fixture.heap.collect(Reason::Budget), Ok(()));
    let span = |address: usize| fixture.heap.reservation.unit_of(address);
    let lowest = roots.iter().copied().min().expect("64 roots");
    assert_eq!(span(fixture.allocate(63)), span(lowest), "{first:#x}");
    fixture.audit();
}

#[test]
fn collections_report_the_processor_time_they_took() {
    let fixture = HeapFixture::with(&Settings { eager: true, ..every(1 << 40) }, 1);
    let mut roots = std::vec![0_usize];
    fixture.add_roots(&roots);
    for _ in 0..100_000 {
        let node = fixture.allocate_clear(48, false);
        set_word(node, roots[0]);
        roots[0] = node;
    }
    let start = heaptoll_runtime::thread_cpu_ns();
    fixture.collect();
    let took = heaptoll_runtime::thread_cpu_ns() - start;
    let reported = fixture.heap.reporter.slot().collector_cpu_ns.load(Ordering::Relaxed);
    assert!(reported <= took && reported > took / 2, "{reported} of {took} ns");
}
