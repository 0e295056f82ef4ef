//! What explicit management costs and what collection would cost, where managers that free and collectors that ignore
//! frees ran on the same programs.

use heaptoll_experiment::compare::compare;
use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::manager::ignores_frees;
use heaptoll_statistics::Interval;

use super::heaps::is_limited;
use super::lead;
use super::overall::{Found, found, with_collections};
use crate::format::and_list;

/// One heap with its frees, and with its frees ignored.
const ONE_HEAP: [(&str, &str); 2] = [("tithe", "tithe-collect"), ("bdw", "bdw-nofree")];

/// The sentences; none where managers of one of the two kinds ran.
pub(super) fn sentences(experiment: &Experiment, comparison: &Comparison) -> Vec<String> {
    let rows = found(comparison).into_iter();
    let rows = rows.filter(|row| {
        row.cpu.is_some() && row.stack != comparison.baseline && !is_limited(comparison, row.stack)
    });
    let (collecting, freeing): (Vec<Found>, Vec<Found>) = rows.partition(|row| ignores_frees(row.stack));
    if collecting.is_empty() || freeing.is_empty() {
        return vec![];
    }
    let never = never_free(experiment);
    let verb = if never.len() == 1 { "frees" } else { "free" };
    let no_frees = (!never.is_empty()).then(|| {
        format!(
            "{} never {verb} (fewer than one block in 100), so only collections give memory back.",
            and_list(&never)
        )
    });
    if never.len() == experiment.programs.len() {
        return no_frees.into_iter().chain(lead::answer(comparison)).collect();
    }
    let baseline = &comparison.baseline;
    let mut sentences = vec![
        format!("Explicit management, against {baseline}: {}.", written(&freeing, comparison)),
        format!("Collection, every free ignored, against {baseline}: {}.", written(&collecting, comparison)),
    ];
    let pairs = ONE_HEAP.into_iter().filter(|(frees, ignores)| {
        freeing.iter().any(|row| row.stack == *frees) && collecting.iter().any(|row| row.stack == *ignores)
    });
    for (frees, ignores) in pairs {
        let against = compare(&Experiment { baseline: frees.to_owned(), ..experiment.clone() });
        let mut rows = found(&against);
        rows.retain(|row| row.stack == ignores && row.cpu.is_some());
        if !rows.is_empty() {
            sentences.push(format!(
                "The same allocator, ignoring frees against obeying them ({frees}): {}.",
                written(&rows, &against)
            ));
        }
    }
    sentences.push(pays(&collecting, baseline));
    sentences.extend(no_frees);
    sentences
}

/// The programs that free next to nothing.
fn never_free(experiment: &Experiment) -> Vec<String> {
    let never = |program: &str| experiment.stacks.iter().any(|one| one.never_frees && one.program == program);
    let names = experiment.programs.iter().map(|program| program.name.clone());
    names.filter(|name| never(name)).collect()
}

fn written(rows: &[Found<'_>], comparison: &Comparison) -> String {
    let written =
        rows.iter().map(|row| format!("{} ({})", with_collections(comparison, row.stack), row.verdict));
    written.collect::<Vec<_>>().join("; ")
}

/// Whether a collector costs less CPU time than the baseline with its frees.
fn pays(collecting: &[Found<'_>], baseline: &str) -> String {
    let of = |is: fn(Interval) -> bool| {
        let rows = collecting.iter().filter(|row| row.cpu.is_some_and(is));
        rows.map(|row| row.stack.to_owned()).collect::<Vec<_>>()
    };
    let less = of(|cpu| cpu.differs && cpu.high < 1.0);
    let open = of(|cpu| !cpu.differs);
    match (less.is_empty(), open.is_empty()) {
        (false, _) => {
            format!(
                "A collector in place of free pays off in CPU time: {} takes less than {baseline}.",
                and_list(&less)
            )
        }
        (_, false) => {
            format!(
                "No collector in place of free measurably pays off in CPU time; not decided: {}.",
                and_list(&open)
            )
        }
        _ => format!(
            "Collection in place of free does not pay off in CPU time: it takes more than {baseline}."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Shape, experiment};
    use heaptoll_experiment::comparison::CollectionFigures;

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
        let [explicit, collection, heap, pays] = &sentences(&made, &comparison)[..] else {
            panic!("four sentences")
        };
        assert!(explicit.starts_with("Explicit management, against glibc: "), "{explicit}");
        assert!(explicit.contains(" tithe with ") && !explicit.contains("tithe-collect"), "{explicit}");
        assert!(collection.contains("against glibc: tithe-collect"), "{collection}");
        assert!(heap.contains("ignoring frees against obeying them (tithe): tithe-collect"), "{heap}");
        assert!(pays.contains("in CPU time"), "{pays}");
        let (made, comparison) = renamed(&[(2, "bdw-nofree")]);
        assert_eq!(sentences(&made, &comparison).len(), 3, "nothing of the same heap ran");
    }

    /// Before, `bdw-nofree,incremental=on` was explicit management.
    #[test]
    fn a_collector_with_options_is_a_collector() {
        let (made, comparison) = renamed(&[(1, "tithe"), (2, "bdw-nofree,incremental=on")]);
        let [explicit, collection, pays] = &sentences(&made, &comparison)[..] else {
            panic!("three sentences")
        };
        assert!(!explicit.contains("bdw"), "{explicit}");
        assert!(
            collection.contains("bdw-nofree,incremental=on") && !collection.contains("tithe"),
            "{collection}"
        );
        assert!(pays.contains("in CPU time"), "{pays}");
    }

    /// Before, "ignoring frees against obeying them" was the answer for a program that never frees.
    #[test]
    fn programs_that_never_free_get_no_sentence_about_frees() {
        let (mut made, comparison) = renamed(&[(1, "tithe"), (2, "tithe-collect")]);
        let first = made.programs[0].name.clone();
        made.stacks.iter_mut().filter(|one| one.program == first).for_each(|one| one.never_frees = true);
        let of_one = sentences(&made, &comparison);
        assert_eq!(of_one.len(), 5);
        assert!(of_one[4].starts_with(&format!("{first} never frees (fewer than one block")), "{of_one:?}");
        made.stacks.iter_mut().for_each(|one| one.never_frees = true);
        let [no_frees, all] = &sentences(&made, &comparison)[..] else { panic!("two sentences") };
        assert!(no_frees.contains(" never free ("), "{no_frees}");
        assert!(all.starts_with("Against glibc, ") && !all.contains("free"), "{all}");
    }

    #[test]
    fn a_collector_pays_where_it_takes_less_and_is_undecided_where_no_difference_shows() {
        let found = |low: f64, high: f64| Found {
            stack: "tithe-collect",
            cpu: Some(Interval { ratio: low, low, high, differs: low > 1.0 || high < 1.0, pairs: 6 }),
            memory: None,
            verdict: String::new(),
            fails: false,
        };
        assert!(
            pays(&[found(0.8, 0.9), found(1.1, 1.2)], "glibc")
                .starts_with("A collector in place of free pays")
        );
        assert!(pays(&[found(0.9, 1.1), found(1.1, 1.2)], "glibc").contains("not decided: tithe-collect"));
        assert_eq!(
            pays(&[found(1.1, 1.2)], "glibc"),
            "Collection in place of free does not pay off in CPU time: it takes more than glibc."
        );
    }

    /// Before, the answer to "would a collector pay" was of a manager that never collects.
    #[test]
    fn how_often_each_collected_is_in_the_sentences_of_one_program_too() {
        let (made, mut comparison) = experiment(Shape::Single);
        let stacks: Vec<String> = comparison.tables[0].rows.iter().map(|row| row.stack.clone()).collect();
        let figures =
            |count| CollectionFigures { count, pause_total_s: 0.0, pause_max_s: 0.0, reclaimed_bytes: 0.0 };
        comparison.tables[0].rows[1].collections = Some(figures(12.0));
        comparison.tables[0].rows[2].collections = Some(figures(0.0));
        assert_eq!(
            with_collections(&comparison, &stacks[1]),
            format!("{} with 12 collections a run", stacks[1])
        );
        assert_eq!(
            with_collections(&comparison, &stacks[2]),
            stacks[2],
            "before, `knuth without a collection`"
        );
        comparison.tables[0].rows[2].stack = "tithe-collect".into();
        let sentences = sentences(&made, &comparison);
        assert!(sentences[0].contains(" with 12 collections a run ("), "{sentences:?}");
        assert!(sentences[1].contains("tithe-collect without a collection ("), "{sentences:?}");
    }

    #[test]
    fn managers_of_one_kind_answer_nothing() {
        let (made, comparison) = renamed(&[]);
        assert!(sentences(&made, &comparison).is_empty());
    }
}
