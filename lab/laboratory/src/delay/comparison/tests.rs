use heaptoll_experiment::observation::Outcome;
use heaptoll_statistics::Interval;
use proptest::prelude::{ProptestConfig, prop, prop_assert, prop_assert_eq, proptest};

use super::*;
use heaptoll_experiment::testing::programs as testing;

fn study(experiment: &Experiment) -> Delay {
    figures(&swept(experiment))
}

const SIZES: [&str; 4] = ["1B", "4K", "2M", "64M"];

fn stacks(manager: &str) -> Vec<String> {
    let delayed = SIZES.iter().map(|size| format!("quarantine={size}/{manager}"));
    std::iter::once(manager.to_string()).chain(delayed).collect()
}

/// CPU seconds by stack: 1 without a layer, 1.02 at one byte, and `factor` a step of size from there on. Every
/// repetition has noise of its own, which all stacks share.
fn experiment(programs: &[&str], managers: &[&str], factor: f64) -> Experiment {
    let all: Vec<String> = managers.iter().flat_map(|manager| stacks(manager)).collect();
    let mut made = testing::experiment(programs, &all, 8);
    for repetition in 0..8 {
        let noise = 1.0 + 0.1 * f64::from(repetition % 3) + 0.001 * f64::from(repetition);
        for program in programs {
            for stack in &all {
                let step = SIZES.iter().position(|size| stack.contains(&format!("={size}/")));
                let wobble = 1.0 + 1e-4 * f64::from((repetition * 7 + stack.len() as u32) % 5);
                let cpu = step.map_or(1.0, |step| 1.02 * factor.powi(step as i32)) * noise * wobble;
                let rss = 1000 + 500 * step.unwrap_or(0) as u64;
                let mut row = testing::row(program, stack, repetition, cpu, rss);
                row.held_high_bytes = step.map(|step| 1 << step);
                made.observations.push(row);
            }
        }
    }
    made
}

#[test]
fn stacks_are_read_as_sizes_in_front_of_managers() {
    assert_eq!(part("mimalloc3"), Some(("mimalloc3".into(), None)));
    assert_eq!(part("quarantine=64K/mimalloc3"), Some(("mimalloc3".into(), Some(65536))));
    assert_eq!(part("quarantine=1B,evict=random/jemalloc"), Some(("jemalloc, evict=random".into(), Some(1))));
    assert_eq!(part("record/mimalloc3"), None);
    assert_eq!(part("forward/quarantine=1B/mimalloc3"), None);
}

#[test]
fn ratios_are_to_one_byte_and_the_layer_has_its_own() {
    let found = study(&experiment(&["a"], &["m"], 1.05));
    assert_eq!((found.sizes_bytes.as_slice(), found.means.len()), (&[1, 4096, 2 << 20, 64 << 20][..], 0));
    let curve = &found.curves[0];
    let near = |interval: Option<Interval>, ratio: f64| {
        interval.is_some_and(|found| (found.ratio / ratio - 1.0).abs() < 1e-3 && found.differs)
    };
    assert!(near(curve.layer.cpu, 1.02), "{:?}", curve.layer);
    assert_eq!(curve.points[0].over_no_delay, Ratios::default());
    for (step, point) in curve.points.iter().enumerate().skip(1) {
        assert!(near(point.over_no_delay.cpu, 1.05f64.powi(step as i32)), "{point:?}");
        assert!(near(point.over_no_delay.wall, 1.05f64.powi(step as i32)), "{point:?}");
        assert!(near(point.over_no_delay.peak_rss, 1.0 + 0.5 * step as f64), "{point:?}");
    }
    assert!(curve.plain.is_some_and(|plain| plain.peak_rss_kib == 1000.0 && plain.held_high_bytes.is_none()));
    assert_eq!(curve.points[3].medians.and_then(|medians| medians.held_high_bytes), Some(8.0));
}

#[test]
fn a_mean_of_three_programs_has_an_interval_over_programs_and_one_of_two_has_none() {
    let mean = |programs: &[&str]| {
        let found = study(&experiment(programs, &["m"], 1.05));
        let of_size = found.means.into_iter().find(|mean| mean.size_bytes == Some(2 << 20));
        of_size.expect("a mean").between_programs
    };
    let of_three = mean(&["a", "b", "c"]).cpu.expect("three are a sample");
    assert!((of_three.ratio / 1.05f64.powi(2) - 1.0).abs() < 1e-3 && of_three.differs, "{of_three:?}");
    assert_eq!(of_three.pairs, 3);
    assert_eq!(mean(&["a", "b"]), Ratios::default());
}

#[test]
fn managers_are_compared_with_themselves_alone() {
    let mut made = experiment(&["a"], &["m", "other"], 1.1);
    // Ten times slower altogether: nothing of it may show.
    for row in made.observations.iter_mut().filter(|row| row.stack.ends_with("other")) {
        row.user_s *= 10.0;
    }
    let found = study(&made);
    let ratio = |curve: &Curve| curve.points[1].over_no_delay.cpu.expect("pairs").ratio;
    assert_eq!(found.managers, ["m", "other"]);
    assert!((ratio(&found.curves[0]) - ratio(&found.curves[1])).abs() < 1e-3);
}

#[test]
fn a_stack_that_always_fails_is_a_gap_and_no_figure() {
    let mut made = experiment(&["a", "b"], &["m"], 1.1);
    for row in made.observations.iter_mut().filter(|row| row.program == "a" && row.stack.contains("=2M/")) {
        row.outcome = Outcome::Signal(11);
    }
    let found = study(&made);
    let point = &found.curves[0].points[2];
    assert_eq!((point.good, point.medians, point.over_no_delay), (0, None, Ratios::default()));
    let mean = |size| found.means.iter().find(|mean| mean.size_bytes == Some(size)).expect("a mean").programs;
    assert_eq!((mean(2 << 20), mean(4096)), (1, 2));
}

#[test]
fn equal_sizes_are_one() {
    let found = study(&experiment(&["a", "b"], &["m"], 1.0));
    let claimed = |ratios: &Ratios| ratios.cpu.is_some_and(|interval| interval.differs);
    assert!(found.curves.iter().flat_map(|curve| &curve.points).all(|point| !claimed(&point.over_no_delay)));
    assert!(found.means.iter().filter(|mean| mean.size_bytes.is_some()).all(|mean| !claimed(&mean.ratios)));
}

proptest! {
    // Each case computes thousands of permutations.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_order_of_rows_does_not_matter(factor in 0.8f64..1.3, turned in 0usize..80) {
        let mut made = experiment(&["a", "b"], &["m"], factor);
        let first = study(&made);
        made.observations.rotate_left(turned);
        prop_assert_eq!(study(&made), first);
    }

    #[test]
    fn the_mean_lies_between_the_programs(factors in prop::collection::vec(0.8f64..1.3, 3)) {
        let mut made = experiment(&["a", "b", "c"], &["m"], 1.0);
        for (program, factor) in ["a", "b", "c"].iter().zip(&factors) {
            for row in made.observations.iter_mut().filter(|row| row.program == *program) {
                if row.stack.contains("=2M/") {
                    row.user_s *= factor;
                }
            }
        }
        let found = study(&made);
        let mean = found.means.iter().find(|mean| mean.size_bytes == Some(2 << 20)).expect("a mean");
        let ratio = mean.ratios.cpu.expect("pairs").ratio;
        let (low, high) = factors.iter().fold((9.0f64, 0.0f64), |(low, high), f| (low.min(*f), high.max(*f)));
        prop_assert!(low * 0.999 < ratio && ratio < high * 1.001);
    }
}
