//! What explicit management costs and what collection would cost, where managers that free and collectors that ignore
//! frees ran on the same programs.

use heaptoll_experiment::compare::compare;
use heaptoll_experiment::comparison::{Comparison, OverallRow};
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager::ignores_frees;

use super::overall::verdict;

/// One heap with its frees, and with its frees ignored.
const ONE_HEAP: [(&str, &str); 2] = [("tithe", "tithe-collect"), ("bdw", "bdw-nofree")];

/// The sentences; none where managers of one of the two kinds ran, or there are no means over programs.
pub(super) fn sentences(experiment: &Experiment, comparison: &Comparison) -> Vec<String> {
    let rows = comparison.overall.iter().filter(|row| row.cpu.is_some() && row.stack != comparison.baseline);
    let (collecting, freeing): (Vec<&OverallRow>, Vec<&OverallRow>) =
        rows.partition(|row| ignores_frees(&row.stack));
    if collecting.is_empty() || freeing.is_empty() {
        return vec![];
    }
    let baseline = &comparison.baseline;
    let written = |rows: &[&OverallRow], comparison: &Comparison| {
        let written: Vec<String> =
            rows.iter().map(|row| format!("{} ({})", row.stack, verdict(comparison, row))).collect();
        written.join("; ")
    };
    let mut sentences = vec![
        format!("Explicit management, against {baseline}: {}.", written(&freeing, comparison)),
        format!("Collection, every free ignored, against {baseline}: {}.", written(&collecting, comparison)),
    ];
    let pairs = ONE_HEAP.into_iter().filter(|(frees, ignores)| {
        freeing.iter().any(|row| row.stack == *frees) && collecting.iter().any(|row| row.stack == *ignores)
    });
    for (frees, ignores) in pairs {
        let against = compare(&Experiment { baseline: frees.to_owned(), ..experiment.clone() });
        let rows: Vec<&OverallRow> =
            against.overall.iter().filter(|row| row.stack == ignores && row.cpu.is_some()).collect();
        if !rows.is_empty() {
            sentences.push(format!(
                "In one heap, frees ignored against frees obeyed: {}.",
                written(&rows, &against)
            ));
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Shape, experiment};

    /// The suite, with two of its stacks in the places of a manager that frees and of a collector.
    fn renamed(names: &[(usize, &str)]) -> (Experiment, Comparison) {
        let (mut made, _) = experiment(Shape::Suite);
        let old: Vec<String> = made.stacks.iter().map(|stack| stack.name.clone()).collect();
        for (at, name) in names {
            let own = |stack: &mut String| {
                if *stack == old[*at] {
                    (*name).clone_into(stack);
                }
            };
            made.stacks.iter_mut().for_each(|stack| own(&mut stack.name));
            made.observations.iter_mut().for_each(|row| own(&mut row.stack));
        }
        let comparison = compare(&made);
        (made, comparison)
    }

    #[test]
    fn both_kinds_of_managers_get_a_sentence_and_one_heap_with_and_without_frees_a_third() {
        let (made, comparison) = renamed(&[(1, "tithe"), (2, "tithe-collect")]);
        let [explicit, collection, heap] = &sentences(&made, &comparison)[..] else {
            panic!("three sentences")
        };
        assert!(explicit.starts_with("Explicit management, against glibc: "), "{explicit}");
        assert!(explicit.contains(" tithe ") && !explicit.contains("tithe-collect"), "{explicit}");
        assert!(collection.contains("against glibc: tithe-collect "), "{collection}");
        assert!(heap.contains("frees ignored against frees obeyed: tithe-collect"), "{heap}");
        let (made, comparison) = renamed(&[(2, "bdw-nofree")]);
        assert_eq!(sentences(&made, &comparison).len(), 2, "nothing of the same heap ran");
    }

    #[test]
    fn managers_of_one_kind_answer_nothing() {
        let (made, comparison) = renamed(&[]);
        assert!(sentences(&made, &comparison).is_empty());
    }
}
