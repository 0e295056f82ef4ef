//! Which collections are young, and after which forecast.

extern crate std;

use super::*;

const DUE: Facts = Facts { due: true, pressure: false, live: 10 << 20, units: 1000 };

fn after_full(live: usize) -> Generations {
    let mut generations = Generations { enabled: true, forecast: Forecast::Few, ..Generations::new() };
    generations.on_full(0, live, 1000);
    generations
}

#[test]
fn the_first_collection_with_a_forecast_is_full_and_the_next_young() {
    let generations = Generations { enabled: true, forecast: Forecast::Few, ..Generations::new() };
    assert_eq!(generations.choose(&DUE), Generation::Full);
    assert_eq!(after_full(10 << 20).choose(&DUE), Generation::Young);
    assert_eq!(Generations::new().choose(&DUE), Generation::Unaged);
}

#[test]
fn small_heaps_have_no_ages() {
    let small = Facts { live: LIVE_MIN / 2 - 1, ..DUE };
    assert_eq!(after_full(LIVE_MIN / 2 - 1).choose(&small), Generation::Unaged);
    let unaged = Generations { aged: false, ..after_full(LIVE_MIN - 1) };
    assert_eq!(unaged.choose(&Facts { live: LIVE_MIN - 1, ..DUE }), Generation::Unaged);
    let checked = Generations { check: true, ..after_full(LIVE_MIN - 1) };
    assert_eq!(checked.choose(&small), Generation::Young);
}

/// Collections without ages until a forecast is made of so many pages, and it.
fn forecast(generations: &mut Generations, pages: usize, written: usize) -> usize {
    let mut unaged = 0;
    while !generations.is_sampling() {
        assert_eq!(generations.choose(&DUE), Generation::Unaged);
        generations.on_unaged();
        unaged += 1;
        if generations.is_sampling_due(DUE.live) {
            generations.on_sampling();
        }
    }
    generations.samples.clear();
    (0..pages).for_each(|page| generations.samples.push(page * PAGE).expect("memory"));
    generations.on_samples(written);
    unaged
}

#[test]
fn there_are_ages_where_fewer_than_a_third_of_the_pages_were_written() {
    for (pages, written, chosen) in [
        (16, 5, Generation::Full),
        (16, 6, Generation::Unaged),
        (17, 5, Generation::Full),
        (1, 0, Generation::Full),
        (0, 0, Generation::Unaged),
    ] {
        let mut generations = Generations { enabled: true, ..Generations::new() };
        assert!(!generations.is_sampling_due(LIVE_MIN - 1));
        assert_eq!(forecast(&mut generations, pages, written), 1);
        assert_eq!(generations.choose(&DUE), chosen, "{written} of {pages}");
    }
}

#[test]
fn a_program_that_writes_everywhere_is_sampled_ever_more_rarely() {
    let mut generations = Generations { enabled: true, ..Generations::new() };
    let unaged: std::vec::Vec<usize> = (0..7).map(|_| forecast(&mut generations, 16, 16)).collect();
    assert_eq!(unaged, [1, 1, 2, 4, 8, 16, 32]);
}

#[test]
fn a_heap_without_dense_spans_has_no_ages_and_is_examined_ever_more_rarely() {
    let mut generations = after_full(10 << 20);
    generations.on_sparse();
    assert!(!generations.is_aged());
    let mut checked = Generations { check: true, ..after_full(10 << 20) };
    checked.on_sparse();
    assert_eq!(checked.choose(&DUE), Generation::Young);
    let unaged: std::vec::Vec<usize> = (0..6)
        .map(|_| {
            let mut unaged = 0;
            while !generations.is_sampling_due(DUE.live) {
                assert_eq!(generations.choose(&DUE), Generation::Unaged);
                generations.on_unaged();
                unaged += 1;
            }
            generations.on_sparse();
            unaged
        })
        .collect();
    assert_eq!(unaged, [1, 2, 4, 8, 16, 32]);
}

#[test]
fn few_pages_of_a_large_heap_are_sampled() {
    for live in [LIVE_MIN, 10 << 20, 1 << 30, 1 << 40] {
        let step = Generations::sampling_step(live);
        assert!(step % 2 == 1 && live / PAGE / step <= SAMPLES_MAX + 1, "{step}");
    }
}

#[test]
fn a_collection_that_was_requested_is_full() {
    assert_eq!(after_full(10 << 20).choose(&Facts { due: false, ..DUE }), Generation::Full);
}

#[test]
fn under_memory_pressure_there_are_no_ages() {
    let pressure = Facts { due: false, pressure: true, ..DUE };
    assert_eq!(after_full(10 << 20).choose(&pressure), Generation::Unaged);
}

#[test]
fn a_heap_that_has_grown_beyond_what_was_recorded_is_collected_in_full() {
    let generations = after_full(10 << 20);
    assert_eq!(generations.choose(&Facts { units: 1000 + AHEAD, ..DUE }), Generation::Young);
    assert_eq!(generations.choose(&Facts { units: 1001 + AHEAD, ..DUE }), Generation::Full);
}

#[test]
fn a_collection_that_does_not_end_leaves_no_ages() {
    let mut generations = after_full(10 << 20);
    generations.begin();
    assert_eq!(generations.choose(&DUE), Generation::Full);
}

#[test]
fn old_garbage_is_bounded_and_growth_of_live_blocks_is_not_punished() {
    let mut generations = after_full(100 << 20);
    assert_eq!(generations.choose(&Facts { live: 130 << 20, ..DUE }), Generation::Young);
    assert_eq!(generations.choose(&Facts { live: 131 << 20, ..DUE }), Generation::Full);
    generations.on_full(131 << 20, 131 << 20, 1000);
    assert_eq!(generations.choose(&Facts { live: 200 << 20, ..DUE }), Generation::Young, "all was live");
    generations.on_full(209 << 20, 120 << 20, 1000);
    assert_eq!(generations.choose(&Facts { live: 160 << 20, ..DUE }), Generation::Full, "most was garbage");
}

#[test]
fn a_program_that_writes_everywhere_has_ever_fewer_young_collections() {
    let mut generations = after_full(10 << 20);
    let mut runs = std::vec::Vec::new();
    for _ in 0..7 {
        generations.on_young(9 << 20, 7 << 20, 0);
        runs.push(forecast(&mut generations, 16, 0));
        assert_eq!(generations.choose(&DUE), Generation::Full);
        generations.on_full(10 << 20, 10 << 20, 1000);
    }
    assert_eq!(runs, [1, 2, 4, 8, 16, 32, 32]);
    generations.on_young(9 << 20, 4 << 20, 0);
    assert_eq!(generations.choose(&DUE), Generation::Young);
}

#[test]
fn a_first_write_to_a_page_counts_as_reading_it() {
    for (read, written, chosen) in
        [(3, 1, Generation::Young), (3, 2, Generation::Unaged), (0, 5, Generation::Unaged)]
    {
        let mut generations = after_full(10 << 20);
        generations.on_young(9 << 20, read << 20, written << 20);
        assert_eq!(generations.choose(&DUE), chosen, "{read} MB read, {written} MB written");
    }
}

#[test]
fn a_kernel_without_records_is_not_tried_again() {
    let mut generations = after_full(10 << 20);
    generations.on_untracked(Untracked::Mapping);
    assert_eq!(generations.choose(&DUE), Generation::Unaged);
    assert_eq!(forecast(&mut generations, 16, 0), 1);
    assert_eq!(generations.choose(&DUE), Generation::Full);
    generations.on_untracked(Untracked::Kernel(1));
    assert_eq!(generations.choose(&DUE), Generation::Unaged);
    assert!(!generations.enabled);
}
