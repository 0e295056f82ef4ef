//! Which invocations are made, and in which order.
//!
//! All cells of one repetition come before the next repetition begins, in a fresh random order each time: slow drift of
//! the machine then affects every stack alike and cancels in ratios paired within the repetition. The length of the
//! environment is random too, because it moves the stack and with it cache and branch aliasing (Mytkowicz et al. 2009).
//!
//! In lockstep the stacks of a program are a block of cells, which are made at once, or several where ratios are taken
//! within each (a manager and its quarantines). Forms of one program that are compared are in one block. What lockstep does not give, memory and elapsed time, comes from
//! additional runs alone.
//!
//! Where memory is too short for all at once, the stacks take turns: balanced incomplete blocks, with the baseline in
//! each. A round has as many repetitions as there are turns, and each stack its run in one of them. Which stacks run
//! together is drawn again for each round, so that none is disturbed by a certain neighbour more than another.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use std::collections::HashMap;

use crate::experiment::{Experiment, Pairing, Protocol};
use crate::observation::{Outcome, Phase};
use crate::shards::Part;

/// One invocation to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Index into the experiment's stacks (each belongs to one program).
    pub stack: usize,
    /// Why.
    pub phase: Phase,
    /// Repetition within the phase, from 0.
    pub repetition: u32,
    /// Bytes of padding in the environment, 0 to 4095.
    pub env_padding: u32,
}

/// The cells of one repetition, shuffled. The same seed gives the same order, also when an experiment is resumed
/// or extended.
fn repetition(stacks: usize, phases: &[Phase], number: u32, seed: u64) -> Vec<Cell> {
    // Every repetition of every phase has a stream of its own.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let lead = phases.first().map_or(0, |phase| *phase as u64);
    rng.set_stream(u64::from(number) << 8 | lead);
    let mut cells: Vec<Cell> = (0..stacks)
        .flat_map(|stack| {
            phases.iter().map(move |&phase| Cell { stack, phase, repetition: number, env_padding: 0 })
        })
        .collect();
    cells.shuffle(&mut rng);
    for cell in &mut cells {
        cell.env_padding = rng.random_range(0..4096);
    }
    cells
}

/// The warm-ups from this number on. The first that is watched gives memory over time, and stacks that run at once are
/// warmed up at once after it: together they take memory, huge pages above all, that nothing has used just before.
fn warm_ups(experiment: &Experiment, first: u32, is_watched: bool) -> impl Iterator<Item = Cell> {
    let Protocol { warmup, seed, .. } = experiment.settings;
    (first..first + warmup).flat_map(move |number| {
        let both = is_watched && number == first;
        let watched = both.then(|| repetition(experiment.stacks.len(), &[Phase::Profile], number, seed));
        let others = repetition(experiment.stacks.len(), &[Phase::Warmup], number, seed);
        let others = others.into_iter().filter(move |cell| !both || is_at_once(experiment, cell));
        watched.into_iter().flatten().chain(others)
    })
}

/// Every cell of an experiment, in order. `starts` marks the stacks that have a start-up to measure.
pub fn plan(experiment: &Experiment, starts: &[bool]) -> Vec<Cell> {
    let settings = &experiment.settings;
    let stacks = experiment.stacks.len();
    let warm = warm_ups(experiment, 0, true);
    let phases: &[Phase] = match settings.pairing {
        Pairing::Interleaved => &[Phase::Timed, Phase::Startup],
        Pairing::Lockstep => &[Phase::Timed, Phase::Startup, Phase::Alone],
    };
    let has_enough = |cell: &Cell| {
        let stack = &experiment.stacks[cell.stack];
        let enough = [settings.enough.get(&stack.program).copied(), stack.dropped_after];
        enough.into_iter().flatten().any(|enough| cell.repetition >= enough)
    };
    let timed = (0..settings.repetitions).flat_map(|number| {
        let mut cells = repetition(stacks, phases, number, settings.seed);
        cells.retain(|cell| !has_enough(cell));
        in_turns(experiment, cells, number)
    });
    warm.chain(timed)
        .filter(|cell| {
            let stack = &experiment.stacks[cell.stack];
            match cell.phase {
                Phase::Startup => starts.get(cell.stack).copied().unwrap_or(false),
                Phase::Alone => experiment.is_in_lockstep(&stack.program),
                // A stack that runs apart from the others has its runs alone.
                Phase::Timed => stack.apart.is_none() || !experiment.is_in_lockstep(&stack.program),
                _ => true,
            }
        })
        .collect()
}

/// The cells of one shard of an experiment, in order: warm-ups of its own, and its repetitions in the order in which the
/// whole experiment has them. The first warm-up of the first shard of a class is watched.
pub fn of_part(experiment: &Experiment, part: &Part, starts: &[bool]) -> Vec<Cell> {
    let settings = &experiment.settings;
    let warm = warm_ups(experiment, part.first_warmup, part.first == part.class_first);
    let timed = plan(experiment, starts).into_iter().filter(|cell| !cell.phase.is_warm_up());
    let turns = experiment.turns(&part.program);
    warm.chain(timed)
        .filter(|cell| {
            let program = &experiment.stacks[cell.stack].program;
            part.holds(program, cell.phase, cell.repetition, turns, settings.warmup)
        })
        .collect()
}

/// The cells of one round, each in the repetition of its stack's turn. The baseline, and it alone, has one in each.
fn in_turns(experiment: &Experiment, cells: Vec<Cell>, round: u32) -> Vec<Cell> {
    if experiment.settings.turns.is_empty() {
        return cells;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(experiment.settings.seed);
    // No phase has this stream.
    rng.set_stream(u64::from(round) << 8 | 0xff);
    let mut turn = vec![0; experiment.stacks.len()];
    for program in &experiment.programs {
        let takes_turns = |index: &usize| {
            let stack = &experiment.stacks[*index];
            stack.program == program.name
                && stack.name != experiment.baseline
                && experiment.runs_in_lockstep(stack)
        };
        let mut others: Vec<usize> = (0..experiment.stacks.len()).filter(takes_turns).collect();
        others.shuffle(&mut rng);
        let count = experiment.turns(&program.name);
        others.iter().zip((0..count).cycle()).for_each(|(stack, number)| turn[*stack] = number);
    }
    let mut all: Vec<Cell> = cells
        .into_iter()
        .flat_map(|cell| {
            let stack = &experiment.stacks[cell.stack];
            let count = experiment.turns(&stack.program);
            let (first, after) = match turn[cell.stack] {
                _ if stack.name == experiment.baseline => (0, count),
                turn => (turn, turn + 1),
            };
            (first..after).map(move |number| Cell { repetition: round * count + number, ..cell })
        })
        .collect();
    // The baseline's runs of a round are not to follow each other.
    all.shuffle(&mut rng);
    for cell in &mut all {
        cell.env_padding = rng.random_range(0..4096);
    }
    all
}

/// Whether a cell is made at once with those of other stacks. Where not all may run at once, warm-ups do not.
pub fn is_at_once(experiment: &Experiment, cell: &Cell) -> bool {
    let stack = &experiment.stacks[cell.stack];
    let may = match cell.phase {
        Phase::Timed | Phase::Startup => true,
        Phase::Warmup => !experiment.settings.turns.contains_key(&stack.program),
        _ => false,
    };
    may && experiment.runs_in_lockstep(stack)
}

/// The same cells in the groups that are made at once: blocks in lockstep, else one by one. A block stands where the
/// first of its cells stood, so that their order is random too.
pub fn blocks(experiment: &Experiment, cells: &[Cell]) -> Vec<Vec<Cell>> {
    let mut blocks: Vec<Vec<Cell>> = Vec::new();
    let mut places: HashMap<(&str, u32, Phase, u32), usize> = HashMap::new();
    for cell in cells {
        if !is_at_once(experiment, cell) {
            blocks.push(vec![*cell]);
            continue;
        }
        let stack = &experiment.stacks[cell.stack];
        let first = experiment.at_once_with(&stack.program)[0];
        let place = *places.entry((first, stack.block, cell.phase, cell.repetition)).or_insert(blocks.len());
        match blocks.get_mut(place) {
            Some(block) => block.push(*cell),
            None => blocks.push(vec![*cell]),
        }
    }
    blocks
}

/// The cells that have no row yet. A row that the user interrupted does not count.
pub fn remaining(experiment: &Experiment, cells: Vec<Cell>) -> Vec<Cell> {
    let done: std::collections::HashSet<(&str, &str, Phase, u32)> = experiment
        .observations
        .iter()
        .filter(|row| row.outcome != Outcome::Interrupted)
        .map(|row| (row.program.as_str(), row.stack.as_str(), row.phase, row.repetition))
        .collect();
    cells
        .into_iter()
        .filter(|cell| {
            let stack = &experiment.stacks[cell.stack];
            !done.contains(&(stack.program.as_str(), stack.name.as_str(), cell.phase, cell.repetition))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{ProgramInfo, StackInfo, Turns};
    use crate::testing::experiment;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_repetition_holds_every_stack_once_before_the_next_begins(
            stacks in 1usize..12, number in 0u32..5, seed: u64,
        ) {
            let cells = repetition(stacks, &[Phase::Timed, Phase::Startup], number, seed);
            let mut seen: Vec<(usize, Phase)> = cells.iter().map(|cell| (cell.stack, cell.phase)).collect();
            seen.sort();
            seen.dedup();
            prop_assert_eq!(seen.len(), 2 * stacks);
            prop_assert!(cells.iter().all(|cell| cell.repetition == number && cell.env_padding < 4096));
            prop_assert_eq!(cells, repetition(stacks, &[Phase::Timed, Phase::Startup], number, seed));
        }
    }

    /// Stacks in lockstep but those at `apart`; the first is the baseline.
    fn paired(stacks: usize, apart: &[usize]) -> Experiment {
        let names: Vec<String> = (0..stacks).map(|number| format!("m{number}")).collect();
        let mut made = experiment(&names.iter().map(String::as_str).collect::<Vec<_>>());
        made.settings.pairing = Pairing::Lockstep;
        for &number in apart {
            made.stacks[number].apart = Some("threads".into());
        }
        made
    }

    #[test]
    fn forms_of_one_block_are_made_at_once_and_other_programs_are_not() {
        let mut made = paired(2, &[]);
        for name in ["form", "other"] {
            made.programs.push(ProgramInfo { name: name.into(), ..made.programs[0].clone() });
            let stacks: Vec<StackInfo> = made.stacks[..2].to_vec();
            made.stacks.extend(stacks.into_iter().map(|stack| StackInfo { program: name.into(), ..stack }));
        }
        made.programs[..2].iter_mut().for_each(|program| program.block = Some(3));
        (made.settings.warmup, made.settings.repetitions) = (1, 2);
        let blocks = blocks(&made, &plan(&made, &[true; 6]));
        let at_once: Vec<&Vec<Cell>> = blocks.iter().filter(|block| block.len() > 1).collect();
        // A warm-up, and two repetitions of the run and of its start.
        assert_eq!(at_once.len(), 10);
        for block in at_once {
            let mut stacks: Vec<usize> = block.iter().map(|cell| cell.stack).collect();
            stacks.sort_unstable();
            assert!(stacks == [0, 1, 2, 3] || stacks == [4, 5], "{block:?}");
        }
    }

    proptest! {
        #[test]
        fn blocks_hold_each_cell_once_and_whole_repetitions_of_what_runs_at_once(
            stacks in 2usize..9, apart in prop::collection::btree_set(1usize..9, 0..4), warmup in 0u32..3, seed: u64,
        ) {
            let apart: Vec<usize> = apart.into_iter().filter(|&number| number < stacks).collect();
            let mut made = paired(stacks, &apart);
            (made.settings.warmup, made.settings.seed, made.settings.repetitions) = (warmup, seed, 3);
            let cells = plan(&made, &vec![true; stacks]);
            let blocks = blocks(&made, &cells);
            let sorted = |mut cells: Vec<Cell>| {
                cells.sort_by_key(|cell| (cell.repetition, cell.phase, cell.stack));
                cells
            };
            prop_assert_eq!(sorted(blocks.concat()), sorted(cells));
            for block in &blocks {
                let (phase, repetition) = (block[0].phase, block[0].repetition);
                prop_assert!(block.iter().all(|cell| (cell.phase, cell.repetition) == (phase, repetition)));
                let at_once = matches!(phase, Phase::Timed | Phase::Startup | Phase::Warmup)
                    && !apart.contains(&block[0].stack);
                prop_assert_eq!(block.len(), if at_once { stacks - apart.len() } else { 1 });
            }
            for stack in 0..stacks {
                let count = |phase| blocks.iter().flatten().filter(|c| c.stack == stack && c.phase == phase).count();
                prop_assert_eq!(count(Phase::Timed), if apart.contains(&stack) { 0 } else { 3 });
                prop_assert_eq!((count(Phase::Alone), count(Phase::Startup)), (3, 3));
                // Before, the first compared run was the first at once with the others, and slower than the next.
                let alone = u32::from(apart.contains(&stack) && warmup > 0);
                prop_assert_eq!((count(Phase::Profile), count(Phase::Warmup)),
                    (warmup.min(1) as usize, (warmup - alone) as usize));
            }
        }
    }

    #[test]
    fn stacks_of_two_blocks_run_at_once_within_each_only() {
        let mut made = paired(4, &[]);
        made.settings.repetitions = 2;
        made.stacks[2].block = 1;
        made.stacks[3].block = 1;
        let blocks = blocks(&made, &plan(&made, &[false; 4]));
        let of = |block: &Vec<Cell>| block.iter().map(|cell| cell.stack / 2).collect::<Vec<_>>();
        let at_once: Vec<Vec<usize>> = blocks.iter().filter(|block| block.len() > 1).map(of).collect();
        assert_eq!(at_once.len(), 4, "two a repetition");
        assert!(at_once.iter().all(|block| *block == [0, 0] || *block == [1, 1]), "{at_once:?}");
    }

    /// The same in lockstep with so many turns.
    fn in_turns(stacks: usize, apart: &[usize], count: u32) -> Experiment {
        let mut made = paired(stacks, apart);
        made.settings.turns.insert("prog".into(), Turns { count, ..Turns::default() });
        made
    }

    proptest! {
        #[test]
        fn each_stack_has_one_turn_a_round_with_the_baseline(
            stacks in 3usize..9, apart in prop::collection::btree_set(1usize..9, 0..2), count in 2u32..4, seed: u64,
        ) {
            let apart: Vec<usize> = apart.into_iter().filter(|&number| number < stacks).collect();
            let mut made = in_turns(stacks, &apart, count);
            (made.settings.seed, made.settings.repetitions) = (seed, 4);
            let cells = plan(&made, &vec![true; stacks]);
            prop_assert_eq!(&cells, &plan(&made, &vec![true; stacks]), "it is the same when it is gone on with");
            let of = |stack: usize, phase: Phase| -> Vec<u32> {
                let own = cells.iter().filter(|cell| cell.stack == stack && cell.phase == phase);
                let mut repetitions: Vec<u32> = own.map(|cell| cell.repetition).collect();
                repetitions.sort_unstable();
                repetitions
            };
            for phase in [Phase::Timed, Phase::Startup, Phase::Alone] {
                prop_assert_eq!(of(0, phase), (0..4 * count).collect::<Vec<u32>>());
            }
            for stack in 1..stacks {
                let rounds: Vec<u32> = of(stack, Phase::Alone).iter().map(|number| number / count).collect();
                prop_assert_eq!(rounds, [0, 1, 2, 3]);
                if !apart.contains(&stack) {
                    prop_assert_eq!(of(stack, Phase::Timed), of(stack, Phase::Alone), "a pair is of one repetition");
                    prop_assert_eq!(of(stack, Phase::Startup), of(stack, Phase::Alone));
                }
            }
            let at_once = 1 + (stacks - 1 - apart.len()).div_ceil(count as usize);
            let timed = |block: &&Vec<Cell>| block[0].phase == Phase::Timed;
            let blocks = blocks(&made, &cells);
            for block in blocks.iter().filter(timed) {
                prop_assert!(block.iter().any(|cell| cell.stack == 0) && block.len() <= at_once);
            }
        }
    }

    #[test]
    fn which_stacks_run_at_the_same_time_changes_from_repetition_to_repetition() {
        let mut made = in_turns(7, &[], 2);
        made.settings.repetitions = 200;
        let cells = plan(&made, &[false; 7]);
        let timed: Vec<&Cell> = cells.iter().filter(|cell| cell.phase == Phase::Timed).collect();
        let turn = |stack: usize| -> Vec<u32> {
            let mut own: Vec<u32> =
                timed.iter().filter(|cell| cell.stack == stack).map(|cell| cell.repetition).collect();
            own.sort_unstable();
            own
        };
        for (one, other) in [(1, 2), (1, 6), (3, 5)] {
            // Two of five others run at the same time as one: in 80 of 200 repetitions.
            let met = turn(one).iter().zip(turn(other)).filter(|(one, other)| **one == *other).count();
            assert!((50..110).contains(&met), "{one} and {other}: {met}");
        }
    }

    #[test]
    fn programs_that_take_turns_have_enough_after_rounds() {
        let mut made = in_turns(3, &[], 2);
        made.settings.repetitions = 5;
        made.settings.enough.insert("prog".into(), 3);
        let cells = plan(&made, &[false; 3]);
        assert_eq!(cells.iter().map(|cell| cell.repetition).max(), Some(5));
    }

    proptest! {
        #[test]
        fn shards_have_each_compared_cell_of_the_whole_once_and_in_its_order(
            stacks in 2usize..6, turns in 1u32..3, lengths in prop::collection::vec(1u32..4, 1..5), seed: u64,
        ) {
            let mut made = in_turns(stacks, &[], turns);
            let repetitions = lengths.iter().sum();
            (made.settings.seed, made.settings.repetitions, made.settings.warmup) = (seed, repetitions, 2);
            let starts = vec![true; stacks];
            let compared = |cells: Vec<Cell>| -> Vec<Cell> {
                cells.into_iter().filter(|cell| !cell.phase.is_warm_up()).collect()
            };
            let (mut all, mut warm) = (Vec::new(), Vec::new());
            let mut first = 0;
            for (number, repetitions) in (0..).zip(&lengths) {
                let part = Part { program: "prog".into(), first, repetitions: *repetitions,
                    first_warmup: 2 * number, ..Part::default() };
                first += repetitions;
                let cells = of_part(&made, &part, &starts);
                warm.extend(cells.iter().filter(|cell| cell.phase.is_warm_up()).copied());
                all.extend(compared(cells));
            }
            prop_assert_eq!(all, compared(plan(&made, &starts)));
            prop_assert_eq!(warm.len(), 2 * stacks * lengths.len());
            let watched = warm.iter().filter(|cell| cell.phase == Phase::Profile);
            prop_assert!(watched.clone().count() == stacks && watched.clone().all(|cell| cell.repetition == 0));
        }
    }

    #[test]
    fn a_stack_that_was_let_go_has_no_more_repetitions_and_the_others_run_on_at_once() {
        let mut made = paired(4, &[]);
        made.settings.repetitions = 3;
        made.stacks[2].dropped_after = Some(1);
        let cells = plan(&made, &[true; 4]);
        for phase in [Phase::Timed, Phase::Startup, Phase::Alone] {
            let of = |stack| cells.iter().filter(|cell| cell.stack == stack && cell.phase == phase).count();
            assert_eq!([of(0), of(1), of(2), of(3)], [3, 3, 1, 3]);
        }
        let blocks = blocks(&made, &cells);
        let sizes = blocks.iter().filter(|block| block[0].phase == Phase::Timed).map(Vec::len);
        assert_eq!(sizes.collect::<Vec<_>>(), [4, 3, 3]);
    }

    #[test]
    fn a_program_whose_baseline_runs_apart_has_no_block() {
        let mut made = paired(3, &[0]);
        made.settings.repetitions = 2;
        let cells = plan(&made, &[true; 3]);
        assert!(cells.iter().all(|cell| cell.phase != Phase::Alone));
        assert!(blocks(&made, &cells).iter().all(|block| block.len() == 1));
    }

    #[test]
    fn the_order_differs_from_repetition_to_repetition() {
        let order =
            |number| repetition(8, &[Phase::Timed], number, 1).iter().map(|c| c.stack).collect::<Vec<_>>();
        assert_ne!(order(0), order(1));
    }
}
