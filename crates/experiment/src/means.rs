//! Geometric means of a stack's ratios over programs, with intervals over repetitions.

use heaptoll_statistics::{Interval, over_programs};

use crate::experiment::Experiment;

/// The log ratios of a program's stacks by repetition, in two metrics.
pub(crate) type LogRatios = Vec<(String, [Vec<Option<f64>>; 2])>;

/// A stack over all programs.
pub(crate) struct Mean<'a> {
    pub stack: &'a str,
    /// Programs on which it has enough pairs.
    pub programs: u32,
    /// By metric.
    pub ratios: [Option<Interval>; 2],
}

/// The means of the stacks of an experiment that `is_in` lets in, in their order, which decides the permutations.
pub(crate) fn means<'a>(
    experiment: &'a Experiment,
    programs: &[&LogRatios],
    repetitions: u32,
    is_in: impl Fn(&str) -> bool,
) -> Vec<Mean<'a>> {
    let mut names = experiment.stack_names();
    names.retain(|stack| is_in(stack));
    let mut counts = Vec::new();
    let mut family = Vec::new();
    for name in &names {
        for metric in 0..2 {
            let of_stack = |program: &&LogRatios| {
                let (_, ratios) = program.iter().find(|(stack, _)| stack == name)?;
                Some(ratios[metric].clone())
            };
            let ratios: Vec<Vec<Option<f64>>> = programs.iter().filter_map(of_stack).collect();
            let (count, mean) = over_programs(&ratios, repetitions);
            counts.push(count);
            family.push(mean);
        }
    }
    let intervals = experiment.paired(&family);
    let mean = |(at, stack): (usize, &&'a str)| Mean {
        stack,
        programs: counts[2 * at],
        ratios: [intervals[2 * at], intervals[2 * at + 1]],
    };
    names.iter().enumerate().map(mean).collect()
}
