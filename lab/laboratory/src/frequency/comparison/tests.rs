use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};

use super::*;
use heaptoll_experiment::testing::programs as testing;

fn study(experiment: &Experiment) -> Frequency {
    figures(&swept(experiment))
}

const M: u64 = 1 << 20;

fn period(every: u64, reclaim: u64) -> Period {
    Period { every_bytes: every * M, reclaim }
}

fn stacks() -> Vec<String> {
    let all = [(8, 1), (16, 1), (32, 1), (8, 4), (8, 16), (16, 16), (32, 16)];
    all.map(|(every, reclaim)| format!("sweep,every={every}M,reclaim={reclaim},markers=1/m")).into()
}

/// Runs of 1 s of mutator and as many pauses of 10 ms as `every` gives of 800 MiB; `mutator` gives the mutator's time
/// at a period.
fn experiment(programs: &[&str], mutator: impl Fn(Period) -> f64) -> Experiment {
    let all = stacks();
    let mut made = testing::experiment(programs, &all, 8);
    for repetition in 0..8u32 {
        for program in programs {
            for stack in &all {
                let (_, at) = part(stack).expect("a period");
                let count = 800 * M / at.every_bytes;
                let pauses_ns = count * 10_000_000;
                let wobble = 1.0 + 1e-4 * f64::from((repetition * 5 + stack.len() as u32) % 7);
                let own = mutator(at) * (1.0 + 0.05 * f64::from(repetition)) * wobble;
                let mut row = testing::row(program, stack, repetition, own + pauses_ns as f64 / 1e9, 1000);
                row.collections = testing::collections(count, pauses_ns);
                row.collector_cpu_ns = Some(pauses_ns);
                made.observations.push(row);
            }
        }
    }
    made
}

#[test]
fn stacks_are_read_as_collectors_and_periods() {
    assert_eq!(
        part("sweep,every=8M,reclaim=4,markers=1,sweep=eager,free=honour/mimalloc3"),
        Some(("sweep,free=honour/mimalloc3".into(), period(8, 4)))
    );
    assert_eq!(part("tithe-collect,every=32M"), Some(("tithe-collect".into(), period(32, 1))));
    assert_eq!(part("sweep,every=8M,markers=2/m"), Some(("sweep,markers=2/m".into(), period(8, 1))));
    assert_eq!(part("tithe-collect"), None);
    assert_eq!(part("quarantine=2M/mimalloc3"), None);
}

#[test]
fn pauses_are_no_part_of_the_mutators_time() {
    let found = study(&experiment(&["a"], |_| 1.0));
    let study = &found.programs[0];
    assert!(study.often_enough && found.means.is_empty());
    let medians = study.settings[0].medians.expect("recorded");
    assert_eq!((medians.collections, medians.pauses_s), (100.0, 1.0));
    for ratio in &study.ratios {
        let [wall, cpu] = [ratio.mutator_wall, ratio.mutator_cpu].map(|it| it.expect("pairs"));
        assert!(!wall.differs && !cpu.differs && (wall.ratio - 1.0).abs() < 1e-3, "{ratio:?}");
    }
    // With pauses, rarer collections are of course cheaper.
    let rarer = study.ratios.iter().find(|ratio| ratio.question == Question::Collections).expect("one");
    assert!(rarer.wall.is_some_and(|wall| wall.differs && wall.ratio < 0.9));
}

#[test]
fn a_mutator_that_gains_by_rare_reclamation_is_seen_to() {
    let found = study(&experiment(&["a", "b"], |at| if at.reclaim == 16 { 0.9 } else { 1.0 }));
    for ratio in found.programs.iter().flat_map(|study| &study.ratios) {
        let gains = ratio.question == Question::Reclamations && ratio.period.reclaim == 16;
        let wall = ratio.mutator_wall.expect("pairs");
        assert_eq!(wall.differs, gains, "{ratio:?}");
    }
    let mean = |question, at| {
        let same = |mean: &&Mean| mean.ratio.question == question && mean.ratio.period == at;
        found.means.iter().find(same).expect("a mean")
    };
    let gained = mean(Question::Reclamations, period(8, 16));
    assert_eq!(gained.programs, 2);
    assert!(gained.ratio.mutator_wall.is_some_and(|wall| wall.differs && (wall.ratio - 0.9).abs() < 1e-3));
}

#[test]
fn a_program_that_hardly_collects_is_in_no_mean() {
    let mut made = experiment(&["a", "b", "c"], |_| 1.0);
    for row in made.observations.iter_mut().filter(|row| row.program == "c") {
        row.collections = testing::collections(1, 10_000_000);
    }
    let found = study(&made);
    assert!(found.programs.iter().all(|study| study.often_enough == (study.program != "c")));
    assert!(!found.means.is_empty() && found.means.iter().all(|mean| mean.programs == 2));
}

#[test]
fn without_statistics_there_is_no_mutator_time() {
    let mut made = experiment(&["a"], |_| 1.0);
    for row in &mut made.observations {
        row.collections = None;
        row.collector_cpu_ns = None;
    }
    let study = &study(&made).programs[0];
    assert!(!study.often_enough && study.settings.iter().all(|setting| setting.medians.is_none()));
    assert!(study.ratios.iter().all(|ratio| ratio.mutator_wall.is_none() && ratio.mutator_cpu.is_none()));
}

#[test]
fn the_papers_three_experiments_come_of_its_seven_settings() {
    let periods: Vec<Period> = stacks().iter().filter_map(|stack| Some(part(stack)?.1)).collect();
    let all = comparisons(&periods);
    let of = |question| {
        all.iter().filter(|(other, ..)| *other == question).map(|(_, at, _)| *at).collect::<Vec<_>>()
    };
    assert_eq!(of(Question::Collections), [period(16, 1), period(32, 1)]);
    assert_eq!(of(Question::Identifications), [period(16, 16), period(32, 16)]);
    assert_eq!(of(Question::Reclamations), [period(8, 4), period(8, 16)]);
}

proptest! {
    // Each case computes thousands of permutations.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn comparisons_are_of_periods_that_there_are(
        raw in prop::collection::vec((1u64..4, 1u64..4), 0..10),
    ) {
        let periods: Vec<Period> = raw.iter().map(|(every, reclaim)| period(*every, *reclaim)).collect();
        for (question, at, over) in comparisons(&periods) {
            prop_assert!(periods.contains(&at) && periods.contains(&over) && at != over);
            match question {
                Question::Reclamations => prop_assert_eq!(at.every_bytes, over.every_bytes),
                _ => prop_assert_eq!(at.reclaim, over.reclaim),
            }
        }
    }

    #[test]
    fn pauses_of_any_length_leave_the_mutator_alone(pause_ns in 0u64..5_000_000_000, swap in any::<bool>()) {
        let mut made = experiment(&["a"], |at| if swap && at.every_bytes > 8 * M { 1.2 } else { 1.0 });
        let before = study(&made).programs[0].ratios.clone();
        for row in &mut made.observations {
            row.wall_s += pause_ns as f64 / 1e9;
            let recorded = row.collections.as_mut().expect("recorded");
            recorded.pause_total_ns += pause_ns;
        }
        for (after, before) in study(&made).programs[0].ratios.iter().zip(before) {
            let ratio = |it: &Ratio| it.mutator_wall.expect("pairs").ratio;
            prop_assert!((ratio(after) - ratio(&before)).abs() < 1e-6);
        }
    }
}
