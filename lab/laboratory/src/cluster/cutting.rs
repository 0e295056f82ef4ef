//! Cutting an experiment into shards: whole repetitions of one program, as many as take the time that a shard may.

use heaptoll_experiment::shards::Part;

use super::plan::PlannedShard;

/// How long the parts of a program take.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramTime {
    /// The program.
    pub program: String,
    /// All of a repetition (of a round, where stacks take turns): every stack in every phase, s.
    pub repetition_s: f64,
    /// The warm-ups of a shard, s.
    pub warmup_s: f64,
}

/// The shards of an experiment of so many repetitions, for each class of machines those of the whole experiment. The
/// warm-ups of a program are numbered through, `warmup` a shard.
pub fn cut(
    programs: &[ProgramTime],
    classes: &[&str],
    repetitions: u32,
    warmup: u32,
    shard_s: f64,
) -> Vec<PlannedShard> {
    let mut shards = Vec::new();
    let mut warmups: Vec<u32> = vec![0; programs.len()];
    for (class, name) in (0..).zip(classes) {
        let class_first = class * repetitions;
        for (time, warmups) in programs.iter().zip(&mut warmups) {
            let mut first = class_first;
            for length in lengths(repetitions, fitting(time, shard_s)) {
                let part = Part {
                    program: time.program.clone(),
                    class: (*name).to_owned(),
                    first,
                    repetitions: length,
                    class_first,
                    first_warmup: *warmups,
                    counts: false,
                };
                first += length;
                *warmups += warmup;
                let estimated_s = time.warmup_s + f64::from(length) * time.repetition_s;
                shards.push(PlannedShard { part, estimated_s });
            }
        }
    }
    shards
}

/// The shards of a gate that count its programs, each with the time that it takes, s: one of each program for each class.
pub fn counts(programs: &[(&str, f64)], classes: &[&str], repetitions: u32) -> Vec<PlannedShard> {
    let of_class = |(class, name): (u32, &&str)| {
        let class_first = class * repetitions;
        let shard = |(program, estimated_s): &(&str, f64)| {
            let (program, class) = ((*program).to_owned(), (*name).to_owned());
            let part =
                Part { program, class, first: class_first, class_first, counts: true, ..Part::default() };
            PlannedShard { part, estimated_s: *estimated_s }
        };
        programs.iter().map(shard).collect::<Vec<_>>()
    };
    (0..).zip(classes).flat_map(of_class).collect()
}

/// How many repetitions a shard has, at most: one at least, however long it takes.
fn fitting(time: &ProgramTime, shard_s: f64) -> u32 {
    let left = (shard_s - time.warmup_s).max(0.0);
    // A cast of what is too large is the largest number.
    (left / time.repetition_s.max(1e-9)).max(1.0) as u32
}

/// `repetitions` in the fewest parts of `most` at most, which differ by one at most.
fn lengths(repetitions: u32, most: u32) -> Vec<u32> {
    let parts = repetitions.div_ceil(most.max(1)).max(1);
    (0..parts).map(|part| repetitions / parts + u32::from(part < repetitions % parts)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    fn time(program: &str, repetition_s: f64, warmup_s: f64) -> ProgramTime {
        ProgramTime { program: program.into(), repetition_s, warmup_s }
    }

    #[test]
    fn a_shard_takes_the_time_that_it_may() {
        let shards = cut(&[time("p", 60.0, 30.0)], &["a"], 10, 1, 330.0);
        assert_eq!(shards.iter().map(|shard| shard.part.repetitions).collect::<Vec<_>>(), [5, 5]);
        assert_eq!(shards.iter().map(|shard| shard.part.first_warmup).collect::<Vec<_>>(), [0, 1]);
        assert!((shards[0].estimated_s - 330.0).abs() < 1e-9);
    }

    #[test]
    fn each_program_of_a_gate_is_counted_once_for_each_class() {
        let shards = counts(&[("p", 2.0), ("q", 3.0)], &["a", "b"], 7);
        let found: Vec<_> = shards
            .iter()
            .map(|shard| (shard.part.class.as_str(), shard.part.program.as_str(), shard.part.class_first))
            .collect();
        assert_eq!(found, [("a", "p", 0), ("a", "q", 0), ("b", "p", 7), ("b", "q", 7)]);
        assert!(shards.iter().all(|shard| shard.part.counts && shard.part.repetitions == 0));
    }

    #[test]
    fn a_repetition_is_never_cut() {
        let shards = cut(&[time("p", 900.0, 300.0)], &["a"], 3, 1, 60.0);
        assert_eq!(shards.len(), 3);
        assert_eq!(cut(&[time("p", 0.0, 0.0)], &["a"], 10_000, 1, 60.0).len(), 1);
    }

    proptest! {
        #[test]
        fn each_class_has_each_repetition_of_each_program_once(
            times in prop::collection::vec((0.001f64..100.0, 0.0f64..20.0), 1..5),
            classes in 1usize..4, repetitions in 1u32..60, warmup in 0u32..3, shard_s in 1.0f64..600.0,
        ) {
            let programs: Vec<ProgramTime> = times
                .iter()
                .enumerate()
                .map(|(number, (each, warm))| time(&format!("p{number}"), *each, *warm))
                .collect();
            let names = ["a", "b", "c"];
            let shards = cut(&programs, &names[..classes], repetitions, warmup, shard_s);
            for program in &programs {
                let own: Vec<&Part> =
                    shards.iter().map(|shard| &shard.part).filter(|part| part.program == program.program).collect();
                for (number, class) in (0..).zip(&names[..classes]) {
                    let of_class = own.iter().filter(|part| part.class == *class);
                    let found: Vec<u32> =
                        of_class.flat_map(|part| part.first..part.first + part.repetitions).collect();
                    let all: Vec<u32> = (number * repetitions..(number + 1) * repetitions).collect();
                    prop_assert_eq!(found, all);
                }
                let warmups: Vec<u32> =
                    own.iter().flat_map(|part| part.first_warmup..part.first_warmup + warmup).collect();
                prop_assert_eq!(warmups, (0..own.len() as u32 * warmup).collect::<Vec<u32>>());
            }
            prop_assert!(shards.iter().all(|shard| shard.part.repetitions > 0));
        }
    }
}
