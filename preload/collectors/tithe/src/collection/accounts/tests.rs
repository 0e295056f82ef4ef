//! Which time counts: the processor's in a program with one thread, and else what elapsed.

extern crate std;

use std::boxed::Box;

use super::*;

#[test]
fn of_elapsed_time_and_processor_time_the_smaller_counts() {
    assert_eq!(own_time(100, 1000, 1030, true), 30);
    assert_eq!(own_time(100, 1000, 1300, true), 100);
}

#[test]
fn elapsed_time_counts_where_the_clock_went_back_or_cannot_be_read() {
    assert_eq!(own_time(100, 1000, 10, true), 100);
    assert_eq!(own_time(100, u64::MAX, 10, true), 100, "as in the child of a fork");
    assert_eq!(own_time(100, 0, 0, true), 100);
}

#[test]
fn elapsed_time_counts_where_there_are_several_threads() {
    assert_eq!(own_time(100, 1000, 1030, false), 100);
}

/// The increments may have waited for a processor far longer than they had one.
#[test]
fn of_earlier_increments_the_time_counts_that_they_had_a_processor() {
    let heap = Box::new(Heap::new());
    let mut collector = Collector::new();
    collector.began_cpu_ns = thread_cpu_ns();
    (collector.increments.total_ns, collector.increments.own_ns) = (1_000_000_000, 30_000);
    let progress = Progress {
        number: 1,
        reason: crate::log::Reason::Budget,
        times: Times { started: 1000, stopped: 2000, marked: 5000, ..Times::default() },
        mutator_ns: 80_000,
        allocated: 0,
        before: 0,
        threads: 1,
        reclaims: true,
    };
    let found = Found {
        live: 0,
        roots: 0,
        markers: 1,
        generation: Generation::Incremental,
        old: 0,
        reread: 0,
        guarded: None,
        written: 0,
    };
    let cycle = heap.cycle(&collector, &progress, &found, 0);
    assert_eq!(cycle.mutator_ns, 50_000);
    assert!((30_000..=34_000).contains(&cycle.mark_ns), "{}", cycle.mark_ns);
    let whole = Found { generation: Generation::Full, ..found };
    let cycle = heap.cycle(&collector, &progress, &whole, 0);
    assert!(cycle.mutator_ns == 80_000 && cycle.mark_ns <= 4000, "{}", cycle.mark_ns);
}
