//! Stacks that are so slow that the others had better not wait for them.
//!
//! A block in lockstep takes as long as its slowest stack, times their number, and those that have ended are run again
//! until then. A ratio of four or more needs no lockstep to be seen, so such a stack runs by itself. Its warm-up runs
//! show it: proof runs are cut short.

use crate::experiment::Experiment;
use crate::observation::{Outcome, Phase};
use heaptoll_statistics::median;

/// A stack is slow that takes this many times the median CPU time of all in lockstep.
const TIMES: f64 = 4.0;
/// And this many seconds more: shorter blocks cost little, and a first run reads its objects from the disk.
const LEAST_S: f64 = 0.25;

/// Takes slow stacks out of the lockstep of programs that have only been warmed up so far. Gives whether there were any.
pub fn leave_slow_apart(experiment: &mut Experiment) -> bool {
    let mut blocks: Vec<(&str, u32)> =
        experiment.stacks.iter().map(|stack| (stack.program.as_str(), stack.block)).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let found: Vec<(usize, String)> =
        blocks.into_iter().flat_map(|(program, block)| slow(experiment, program, block)).collect();
    let any = !found.is_empty();
    for (stack, why) in found {
        experiment.stacks[stack].apart = Some(why);
    }
    any
}

/// Slow stacks of one block of a program, by index, and why they run apart.
fn slow(experiment: &Experiment, program: &str, block: u32) -> Vec<(usize, String)> {
    let rows = || experiment.observations.iter().filter(|row| row.program == program);
    // What has run in lockstep once does so to the end.
    if rows().any(|row| row.phase == Phase::Timed) {
        return vec![];
    }
    let warm = |stack: &str| -> Option<(f64, bool)> {
        // A warm-up at once with the others has waited for them.
        let of_it = || rows().filter(|row| row.stack == stack && row.phase == Phase::Profile);
        let good = of_it().filter(|row| row.outcome.is_ok());
        let cpu: Vec<f64> = good.map(|row| row.cpu_s()).collect();
        let timed_out = of_it().count() > 0 && of_it().all(|row| matches!(row.outcome, Outcome::Timeout(_)));
        // What failed otherwise shows nothing of its speed.
        (timed_out || !cpu.is_empty())
            .then(|| (if cpu.is_empty() { f64::INFINITY } else { median(&cpu) }, timed_out))
    };
    let together = experiment
        .stacks
        .iter()
        .enumerate()
        .filter(|(_, stack)| stack.program == program && stack.block == block)
        .filter(|(_, stack)| experiment.runs_in_lockstep(stack));
    let together: Vec<(usize, &str, (f64, bool))> = together
        .filter_map(|(index, stack)| Some((index, stack.name.as_str(), warm(&stack.name)?)))
        .collect();
    let usual = together.iter().map(|(_, _, (cpu, _))| *cpu).filter(|cpu| cpu.is_finite());
    let usual: Vec<f64> = usual.collect();
    if usual.is_empty() {
        return vec![];
    }
    let typical = median(&usual);
    let why = |(index, name, (cpu, timed_out)): &(usize, &str, (f64, bool))| {
        let slow = *cpu > TIMES * typical && cpu - typical > LEAST_S;
        if *name == experiment.baseline || !(slow || *timed_out) {
            return None;
        }
        let took = if *timed_out {
            "was over the time limit".to_owned()
        } else {
            format!("took {:.0} times the median CPU time of all", cpu / typical.max(1e-6))
        };
        Some((*index, format!("its warm-up {took}, and in lockstep all others would wait for it")))
    };
    let found: Vec<(usize, String)> = together.iter().filter_map(why).collect();
    // A block has two stacks at least.
    if together.len() - found.len() < 2 { vec![] } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Pairing;
    use crate::observation::Observation;
    use crate::testing::{experiment, row};

    /// Stacks that were warmed up with these CPU seconds; the first is the baseline.
    fn warmed_up(cpu: &[f64]) -> Experiment {
        let names: Vec<String> = (0..cpu.len()).map(|number| format!("m{number}")).collect();
        let mut made = experiment(&names.iter().map(String::as_str).collect::<Vec<_>>());
        made.settings.pairing = Pairing::Lockstep;
        for (name, cpu) in names.iter().zip(cpu) {
            made.observations.push(Observation { phase: Phase::Profile, ..row(name, 0, *cpu, 1000) });
        }
        made
    }

    fn apart(mut made: Experiment) -> Vec<usize> {
        let any = leave_slow_apart(&mut made);
        let found: Vec<usize> =
            (0..made.stacks.len()).filter(|at| made.stacks[*at].apart.is_some()).collect();
        assert_eq!(any, !found.is_empty());
        found
    }

    #[test]
    fn a_stack_much_slower_than_the_others_runs_apart() {
        assert_eq!(apart(warmed_up(&[1.0, 1.1, 4.5, 3.9])), Vec::<usize>::new(), "the median is 2.5");
        let mut made = warmed_up(&[1.0, 1.1, 0.9, 4.9]);
        assert!(leave_slow_apart(&mut made));
        let why = made.stacks[3].apart.clone().expect("a reason");
        assert!(why.contains("took 5 times the median CPU time of all"), "{why}");
        assert!(made.stacks[..3].iter().all(|stack| stack.apart.is_none()));
        assert!(!leave_slow_apart(&mut made), "it is decided once");
    }

    #[test]
    fn short_runs_a_slow_baseline_and_a_pair_stay_in_lockstep() {
        assert!(apart(warmed_up(&[0.01, 0.011, 0.2])).is_empty());
        assert!(apart(warmed_up(&[9.0, 1.0, 1.0])).is_empty());
        assert!(apart(warmed_up(&[1.0, 50.0])).is_empty());
        let mut interleaved = warmed_up(&[1.0, 1.0, 9.0]);
        interleaved.settings.pairing = Pairing::Interleaved;
        assert!(apart(interleaved).is_empty());
    }

    #[test]
    fn each_block_has_slow_stacks_of_its_own() {
        let mut made = warmed_up(&[1.0, 1.0, 1.0, 9.0, 9.0, 50.0]);
        (3..6).for_each(|at| made.stacks[at].block = 1);
        assert_eq!(apart(made.clone()), [5], "nine is usual in its block");
        made.observations[3].user_s = 0.1;
        made.stacks[5].block = 2;
        assert!(apart(made).is_empty(), "two stacks stay together, and one in none");
    }

    #[test]
    fn a_stack_that_hangs_in_its_warm_up_runs_apart() {
        let mut made = warmed_up(&[1.0, 1.0, 0.0]);
        made.observations[2].outcome = Outcome::Timeout(5.0);
        assert_eq!(apart(made.clone()), [2]);
        made.observations.iter_mut().for_each(|row| row.outcome = Outcome::Timeout(5.0));
        assert!(apart(made).is_empty());
    }

    #[test]
    fn stacks_that_fail_in_their_warm_up_make_no_other_slow() {
        let mut made = warmed_up(&[1.0, 1.0, 0.01, 0.01, 0.01]);
        made.observations[2..].iter_mut().for_each(|row| row.outcome = Outcome::Exit(3));
        assert!(apart(made).is_empty());
    }

    #[test]
    fn what_has_run_in_lockstep_stays_in_it() {
        let mut made = warmed_up(&[1.0, 1.0, 9.0]);
        made.observations.push(row("m0", 0, 1.0, 1000));
        assert!(apart(made).is_empty());
    }
}
