//! CPU seconds of a program's stacks by repetition, for comparisons of any two of them and of programs with each other.
//!
//! Seconds of runs at once are longer than those of runs alone, by what company costs, and seconds of stacks that run
//! apart are of runs alone. So a stack's seconds in lockstep are its paired ratio to the baseline times one level that all
//! have in common in that repetition: the median over the stacks of their seconds alone over that ratio. Between any two
//! stacks the ratio is then that of their pairs at once; the level is that of runs alone, and rests on all of the
//! repetition's runs alone and not on the baseline's only. Programs of one block have one level in common, so that
//! between them the ratio is that of runs at once, too.

use crate::company;
use crate::comparison::Metric;
use crate::experiment::Experiment;
use crate::side::{Side, Sides};
use crate::verdict;
use heaptoll_statistics::median;

/// CPU seconds of one stack on one program, start-up taken off.
#[derive(Debug, Clone, PartialEq)]
pub struct Seconds {
    /// The stack.
    pub stack: String,
    /// By repetition (by round, where stacks take turns), at the level of runs alone: to be compared with those of any
    /// other stack. `None` where a run is missing.
    pub cpu_s: Vec<Option<f64>>,
    /// The same of its runs alone only. `None` where the program did not run in lockstep: there are no others.
    pub alone_s: Option<Vec<Option<f64>>>,
}

/// One program's seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramSeconds {
    /// In the order of its stacks.
    pub stacks: Vec<Seconds>,
    /// Which of its runs were not in lockstep, where the experiment is, and what company does to the others: sentences.
    pub notes: Vec<String>,
}

/// The seconds of a program in so many repetitions. A stack that company contradicts has those of its runs alone, as in
/// the tables. Call [`crate::compare::judge_outputs`] first.
pub fn cpu_seconds(experiment: &Experiment, program: &str, repetitions: u32) -> ProgramSeconds {
    let mut notes = verdict::apart(experiment, program);
    let at_once = experiment.at_once_with(program);
    let mut block: Vec<Sides> = at_once.iter().map(|name| Sides::of(experiment, name)).collect();
    for (sides, name) in block.iter_mut().zip(&at_once) {
        let company = company::settle(experiment, sides, experiment.repetitions());
        notes.extend(company.doubts.into_iter().filter(|_| *name == program));
    }
    let base = |sides| Sides::find(sides, &experiment.baseline).filter(|base| base.is_together());
    let base = block.iter().find_map(base);
    let levels = base.map(|base| levels(&block, base, repetitions)).unwrap_or_default();
    let paired = |side: &Side| -> Option<Vec<Option<f64>>> {
        let base = base.filter(|base| side.runs_in_lockstep_with(base))?;
        let ratios = side.log_ratios(base, Metric::Cpu, repetitions);
        Some(ratios.iter().zip(&levels).map(|(ratio, level)| Some(((*ratio)? + (*level)?).exp())).collect())
    };
    let own = block.iter().zip(&at_once).filter(|(_, name)| **name == program);
    let stacks = own.flat_map(|(sides, _)| &sides.all).map(|side| {
        let by_itself = || (0..repetitions).map(|round| side.value_in(Metric::Cpu, round)).collect();
        let alone = || (0..repetitions).map(|round| side.cpu_alone_in(round).first().copied()).collect();
        Seconds {
            stack: side.stack.to_owned(),
            cpu_s: paired(side).unwrap_or_else(by_itself),
            alone_s: base.map(|_| alone()),
        }
    });
    ProgramSeconds { stacks: stacks.collect(), notes }
}

/// The logarithm of the seconds that stand for the baseline, by repetition. One run alone that met a neighbour does not
/// move a median of several.
fn levels(block: &[Sides], base: &Side, repetitions: u32) -> Vec<Option<f64>> {
    let together: Vec<(&Side, Vec<Option<f64>>)> = block
        .iter()
        .flat_map(|sides| &sides.all)
        .filter(|side| side.runs_in_lockstep_with(base))
        .map(|side| (side, side.log_ratios(base, Metric::Cpu, repetitions)))
        .collect();
    let level = |round: u32| {
        let of = |(side, ratios): &(&Side, Vec<Option<f64>>)| -> Vec<f64> {
            let Some(ratio) = ratios[round as usize] else { return vec![] };
            side.cpu_alone_in(round).into_iter().map(|alone| alone.ln() - ratio).collect()
        };
        let all: Vec<f64> = together.iter().flat_map(of).collect();
        (!all.is_empty()).then(|| median(&all))
    };
    (0..repetitions).map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Pairing, ProgramInfo, StackInfo, Turns};
    use crate::observation::{Observation, Outcome, Phase};
    use crate::testing::{experiment, row};

    const REPETITIONS: u32 = 8;
    const STACKS: [(&str, f64); 4] = [("glibc", 1.0), ("fast", 0.8), ("slow", 1.5), ("same", 1.0)];

    /// Four stacks whose runs at once take twice as long as those alone, by a drift that each block shares.
    fn in_lockstep() -> Experiment {
        let mut made = experiment(&STACKS.map(|(name, _)| name));
        made.settings.pairing = Pairing::Lockstep;
        for repetition in 0..REPETITIONS {
            let drift = 1.0 + 0.3 * f64::from(repetition);
            for (stack, ratio) in STACKS {
                made.observations.push(row(stack, repetition, 2.0 * drift * ratio, 1000));
                let alone = row(stack, repetition, ratio, 1000);
                made.observations.push(Observation { phase: Phase::Alone, ..alone });
            }
        }
        made
    }

    fn of<'a>(found: &'a ProgramSeconds, stack: &str) -> &'a Seconds {
        found.stacks.iter().find(|one| one.stack == stack).expect("a stack")
    }

    #[track_caller]
    fn assert_all(samples: &[Option<f64>], wanted: f64) {
        assert_eq!(samples.len(), REPETITIONS as usize);
        let near = |sample: &Option<f64>| sample.is_some_and(|value| (value / wanted - 1.0).abs() < 1e-9);
        assert!(samples.iter().all(near), "{samples:?}, not {wanted}");
    }

    #[test]
    fn seconds_have_the_level_of_runs_alone_and_the_ratios_of_runs_at_once() {
        let mut made = in_lockstep();
        // Alone, one is 5 % off in each repetition, and another in one by a neighbour.
        for row in made.observations.iter_mut().filter(|row| row.phase == Phase::Alone) {
            if row.stack == "slow" {
                row.user_s *= if row.repetition % 2 == 0 { 1.07 } else { 0.93 };
            }
            if row.stack == "fast" && row.repetition == 3 {
                row.user_s *= 4.0;
            }
        }
        let found = cpu_seconds(&made, "prog", REPETITIONS);
        for (stack, ratio) in STACKS {
            assert_all(&of(&found, stack).cpu_s, ratio);
        }
        let alone = of(&found, "fast").alone_s.clone().expect("runs alone");
        assert!(alone[3].is_some_and(|value| value > 2.0) && alone[2].is_some_and(|value| value < 0.81));
    }

    #[test]
    fn levels_spread_less_than_runs_alone() {
        use rand::{Rng, SeedableRng};
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let names: Vec<String> = (0..5).map(|number| format!("m{number}")).collect();
        let mut made = experiment(&names.iter().map(String::as_str).collect::<Vec<_>>());
        made.settings.pairing = Pairing::Lockstep;
        let repetitions = 200;
        for repetition in 0..repetitions {
            for name in &names {
                made.observations.push(row(name, repetition, 1.0, 1000));
                let noise: f64 = (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
                let alone = row(name, repetition, (0.1 * noise).exp(), 1000);
                made.observations.push(Observation { phase: Phase::Alone, ..alone });
            }
        }
        let found = cpu_seconds(&made, "prog", repetitions);
        let spread = |samples: &[Option<f64>]| {
            let logs: Vec<f64> = samples.iter().flatten().map(|sample| sample.ln()).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() - 1) as f64).sqrt()
        };
        let of = of(&found, "m1");
        let share = spread(&of.cpu_s) / spread(of.alone_s.as_ref().expect("runs alone"));
        assert!((0.4..0.65).contains(&share), "{share}");
    }

    #[test]
    fn a_stack_apart_has_its_runs_alone() {
        let mut made = in_lockstep();
        made.stacks[2].apart = Some("threads".into());
        made.observations.retain(|row| row.stack != "slow" || row.phase == Phase::Alone);
        let found = cpu_seconds(&made, "prog", REPETITIONS);
        assert_all(&of(&found, "slow").cpu_s, 1.5);
        assert_all(&of(&found, "fast").cpu_s, 0.8);
        assert_eq!(of(&found, "slow").alone_s, Some(of(&found, "slow").cpu_s.clone()));
    }

    #[test]
    fn a_stack_that_company_contradicts_has_its_runs_alone_and_moves_no_other() {
        let mut made = in_lockstep();
        for row in made.observations.iter_mut().filter(|row| row.stack == "slow") {
            let jitter = 1.0 + 0.001 * f64::from(row.repetition % 3);
            row.user_s *= jitter * if row.phase == Phase::Alone { 1.0 } else { 1.4 };
        }
        let found = cpu_seconds(&made, "prog", REPETITIONS);
        assert!(
            found.notes.iter().any(|note| note.contains("CPU ratio is of separate runs")),
            "{:?}",
            found.notes
        );
        assert_eq!(Some(&of(&found, "slow").cpu_s), of(&found, "slow").alone_s.as_ref());
        assert_all(&of(&found, "fast").cpu_s, 0.8);
    }

    #[test]
    fn a_failed_run_is_a_gap_of_its_stack_only() {
        let mut made = in_lockstep();
        let failed =
            |row: &&mut Observation| row.stack == "fast" && row.repetition == 2 && row.phase == Phase::Timed;
        made.observations.iter_mut().find(failed).expect("a row").outcome = Outcome::Signal(9);
        let found = cpu_seconds(&made, "prog", REPETITIONS);
        assert_eq!(of(&found, "fast").cpu_s.iter().position(Option::is_none), Some(2));
        assert_all(&of(&found, "same").cpu_s, 1.0);
    }

    /// The stacks but the baseline in two turns, each block with a drift of its own.
    fn in_turns() -> Experiment {
        let mut made = in_lockstep();
        made.observations.clear();
        made.settings.turns.insert("prog".into(), Turns { count: 2, ..Turns::default() });
        for repetition in 0..2 * REPETITIONS {
            let drift = 1.0 + 0.3 * f64::from(repetition % 5);
            let (round, turn) = (repetition / 2, repetition % 2);
            for (number, (stack, ratio)) in STACKS.into_iter().enumerate() {
                if number > 0 && (number as u32 + round) % 2 != turn {
                    continue;
                }
                made.observations.push(row(stack, repetition, 2.0 * drift * ratio, 1000));
                let alone = row(stack, repetition, ratio, 1000);
                made.observations.push(Observation { phase: Phase::Alone, ..alone });
            }
        }
        made
    }

    #[test]
    fn stacks_that_took_turns_are_compared_by_their_pairs_and_not_by_their_blocks() {
        let made = in_turns();
        assert_eq!(made.repetitions(), REPETITIONS);
        let found = cpu_seconds(&made, "prog", REPETITIONS);
        for (stack, ratio) in STACKS {
            assert_all(&of(&found, stack).cpu_s, ratio);
        }
        let table = &crate::compare::compare(&made).tables[0];
        for (stack, ratio) in &STACKS[1..] {
            let row = table.rows.iter().find(|row| row.stack == *stack).expect("a row");
            let cpu = row.figures[&Metric::Cpu].ratio.expect("pairs");
            assert!(cpu.pairs == REPETITIONS && (cpu.ratio - ratio).abs() < 1e-6, "{stack}: {cpu:?}");
            let memory = row.figures[&Metric::PeakRss].ratio.expect("pairs");
            assert!(memory.pairs == REPETITIONS && row.good == REPETITIONS, "{stack}: {memory:?}");
        }
    }

    /// Another form of the program, which takes a third less, at once with the first, but for its drift between blocks.
    #[test]
    fn forms_of_one_block_are_compared_by_their_runs_at_once() {
        let mut made = in_lockstep();
        let of_form = |program: &str| format!("{program}:form");
        let form = ProgramInfo { name: of_form("prog"), ..made.programs[0].clone() };
        made.programs.push(form);
        let stacks = made.stacks.iter().map(|one| StackInfo { program: of_form("prog"), ..one.clone() });
        let stacks: Vec<StackInfo> = stacks.collect();
        made.stacks.extend(stacks);
        let rows = made.observations.iter().map(|row| {
            // Its runs alone met a neighbour, each in another repetition.
            let alone =
                if row.phase == Phase::Alone { 1.0 + 0.2 * f64::from(row.repetition % 2) } else { 1.0 };
            let (user_s, system_s) = (row.user_s * alone / 1.5, row.system_s * alone / 1.5);
            Observation { program: of_form("prog"), user_s, system_s, ..row.clone() }
        });
        let rows: Vec<Observation> = rows.collect();
        made.observations.extend(rows);
        let ratios = |made: &Experiment| -> Vec<f64> {
            let of_program = |name: &str| of(&cpu_seconds(made, name, REPETITIONS), "slow").cpu_s.clone();
            let both = of_program("prog:form").into_iter().zip(of_program("prog"));
            both.map(|(form, plain)| form.expect("a run") / plain.expect("a run")).collect()
        };
        let near = |ratio: &f64| (ratio * 1.5 - 1.0).abs() < 1e-9;
        assert!(!ratios(&made).iter().all(near), "in blocks of their own the levels are of runs alone");
        made.programs.iter_mut().for_each(|program| program.block = Some(0));
        let ratios = ratios(&made);
        assert!(ratios.len() == REPETITIONS as usize && ratios.iter().all(near), "{ratios:?}");
        assert_eq!(made.at_once_with("prog"), ["prog", "prog:form"]);
        // One that cannot run in lockstep has its own runs.
        made.stacks[4].apart = Some("threads".into());
        assert_eq!(made.at_once_with("prog"), ["prog"]);
        assert_eq!(made.at_once_with("prog:form"), ["prog:form"]);
    }

    #[test]
    fn interleaved_runs_are_as_they_were_measured() {
        let mut made = in_lockstep();
        made.settings.pairing = Pairing::Interleaved;
        made.observations.retain(|row| row.phase == Phase::Timed);
        let found = cpu_seconds(&made, "prog", REPETITIONS);
        assert!(found.stacks.iter().all(|one| one.alone_s.is_none()) && found.notes.is_empty());
        let slow = &of(&found, "slow").cpu_s;
        assert!((slow[0].expect("a run") - 3.0).abs() < 1e-9 && (slow[1].expect("a run") - 3.9).abs() < 1e-9);
    }
}
