//! The decisions about increments, simulated.

extern crate std;

use std::vec::Vec;

use super::*;

const MS: u64 = 1_000_000;

fn increments(pause_ms: u64) -> Increments {
    Increments { pause_ns: Some(pause_ms * MS), ..Increments::new() }
}

#[test]
fn without_a_pause_collections_are_whole_and_use_their_budget() {
    let increments = Increments::new();
    assert!(!increments.is_needed(1 << 40));
    assert_eq!(increments.trigger(100 << 20), 100 << 20);
}

#[test]
fn a_collection_is_incremental_where_it_would_take_longer_than_the_pause() {
    let mut increments = increments(5);
    increments.rate = 1000;
    let most = (5 * MS / 100 * MARKING_PERCENT) as usize;
    assert!(!increments.is_needed(most) && increments.is_needed(most + 1000));
    assert_eq!(increments.trigger(100_000), 50_000);
    // It turns out that marking is slower.
    (0..20).for_each(|_| increments.measure(1_000_000, 10 * MS));
    assert!(increments.is_needed(400_000));
}

/// Marks `work` bytes in increments of a millisecond each; returns what the program allocates before each further one.
fn simulate(work: usize, allowance: usize, per_increment: usize) -> Vec<usize> {
    let mut increments = increments(1);
    increments.begin(0, work, allowance);
    let (mut steps, mut allocated) = (Vec::new(), 0);
    while increments.marked < work {
        increments.marked += per_increment;
        let step = increments.end_increment(per_increment, MS, MS, allocated);
        steps.push(step);
        allocated += step;
    }
    steps
}

#[test]
fn increments_spread_over_what_may_be_allocated() {
    let steps = simulate(100 << 20, 50 << 20, 1 << 20);
    assert_eq!(steps.len(), 100);
    let allocated: usize = steps.iter().sum();
    assert!(allocated <= 50 << 20 && allocated > 40 << 20, "{allocated}");
    assert!(steps.iter().all(|step| (400 << 10..800 << 10).contains(step)), "{steps:?}");
}

#[test]
fn a_program_that_has_used_its_allowance_gets_the_least_between_increments() {
    let steps = simulate(100 << 20, 1 << 20, 1 << 20);
    assert!(steps.iter().all(|&step| step == STEP), "{steps:?}");
}

#[test]
fn passes_are_interrupted_until_there_were_too_many() {
    let mut increments = increments(5);
    increments.begin(0, 10 << 20, 10 << 20);
    for _ in 0..PASSES {
        increments.begin_pass();
        assert!(increments.is_interrupted());
    }
    increments.end(4 * MS);
    assert!(increments.warning().is_none());
    increments.begin_pass();
    assert!(!increments.is_interrupted());
    increments.end(4 * MS);
    assert!(increments.warning().is_none(), "no longer than allowed");
    increments.end(90 * MS);
    let line = increments.warning().expect("a pause that was too long");
    assert!(
        std::string::String::from_utf8_lossy(line.as_bytes()).contains("a pause took 90000 microseconds")
    );
    increments.end(90 * MS);
    assert!(increments.warning().is_none(), "once");
}

#[test]
fn what_was_measured_outlasts_a_collection() {
    let mut increments = increments(5);
    increments.measure(10 << 20, MS);
    let rate = increments.rate;
    increments.begin(0, 1, 1);
    increments.marked = 7;
    increments.end(1);
    increments.forget();
    increments.begin(0, 1, 1);
    assert_eq!((increments.rate, increments.marked, increments.count), (rate, 0, 0));
}

/// Roots are read at once, in each pass.
#[test]
fn a_collection_is_whole_where_its_roots_take_longer_than_the_pause_and_than_the_heap() {
    let of = |live, roots| Increments { rate: 1000, roots, ..increments(5) }.is_needed(live);
    let (long, short) = (500_000_000, 1_000_000);
    assert!(!of(short, long));
    assert!(of(long, short) && of(long + 1, long));
}

#[test]
fn a_pass_that_has_read_many_roots_has_time_to_read_what_was_written() {
    let increments = increments(5);
    let deadline = increments.deadline(100 * MS);
    assert_eq!(increments.deadline_after_roots(deadline, 101 * MS), deadline);
    assert_eq!(increments.deadline_after_roots(deadline, 300 * MS), increments.deadline(300 * MS));
}

#[test]
fn a_program_is_overdrawn_that_has_allocated_more_than_its_allowance() {
    let mut increments = increments(5);
    assert!(!increments.is_overdrawn(isize::MAX));
    increments.begin(0, 10 << 20, 1 << 20);
    assert!(!increments.is_overdrawn(1 << 20) && !increments.is_overdrawn(-5));
    assert!(increments.is_overdrawn((1 << 20) + 1));
    increments.forget();
    assert!(!increments.is_overdrawn(isize::MAX));
}

#[test]
fn without_records_of_writes_collections_are_whole_from_then_on() {
    let mut increments = increments(5);
    assert!(increments.is_needed(1 << 40));
    increments.disable();
    assert!(!increments.is_needed(1 << 40));
    assert_eq!(increments.trigger(100 << 20), 100 << 20);
}
