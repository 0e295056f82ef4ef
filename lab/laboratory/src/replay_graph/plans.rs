//! The plans of a replay: collectors of MMTk by `mmtk:NAME`, and those of our own that only replay by `own:NAME`.

use crate::replay_graph::mmtk::plans::{NAMES, NO_COLLECTION, OWN};
use heaptoll_catalog::did_you_mean;
use heaptoll_report::format::printable;
use heaptoll_trace_reports::replay::{MMTK, OURS, is_plan};
use heaptoll_units::each_once;

use super::error::GraphReplayError;
use heaptoll_command::failure::Failure;

/// Those of a request that names none. The first, which ratios are to, fits into small heaps.
const USUAL: [&str; 8] = [
    "immix",
    "immix,moving=off",
    "stickyimmix",
    "genimmix",
    "gencopy",
    "semispace",
    "markcompact",
    "marksweep",
];

/// Whether a word of `-m` names a plan that there is.
pub fn is_known(word: &str) -> bool {
    named(word).is_ok()
}

/// The name of a plan as rows have it.
pub fn row_name(plan: &str) -> String {
    let prefix = if OWN.contains(&plan) { OURS } else { MMTK };
    format!("{prefix}{plan}")
}

fn known() -> Vec<String> {
    NAMES.into_iter().chain(OWN).map(row_name).collect()
}

/// The plans that these words name, each once.
///
/// # Errors
/// One names no plan.
pub fn chosen(words: &[String]) -> Result<Vec<&'static str>, Failure> {
    if words.is_empty() {
        return Ok(USUAL.to_vec());
    }
    let plans: Result<Vec<_>, _> = words.iter().map(|word| named(word)).collect();
    plans.map(each_once).map_err(|error| Failure::Refused(Box::new(error)))
}

fn named(word: &str) -> Result<&'static str, GraphReplayError> {
    let known = known();
    if !is_plan(word) {
        return Err(GraphReplayError::NoPlan { word: printable(word), known: known.join(", ") });
    }
    NAMES.into_iter().chain(OWN).find(|plan| row_name(plan) == word).ok_or_else(|| {
        GraphReplayError::UnknownPlan {
            word: printable(word),
            suggestion: did_you_mean(word, known.iter().map(String::as_str)),
            known: known.join(", "),
        }
    })
}

/// What takes the part of a full heap in which no objects are, under the plan of a row.
pub fn rest_of_heap(row_name: &str) -> &'static str {
    match row_name.split_once(':').map_or(row_name, |(_, plan)| plan) {
        "semispace" | "gencopy" | "mostlycopying" => "the rest is kept free to copy into",
        "immix" | "genimmix" | "stickyimmix" => "the rest is lost between objects, or kept free to copy into",
        "markcompact" => "the rest is lost between objects, or the plan's own",
        _ => "the rest is lost between objects and in pages of other sizes",
    }
}

/// Whether a plan ever collects.
pub fn collects(plan: &str) -> bool {
    plan != NO_COLLECTION
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen_of(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        chosen(&words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn plans_are_chosen_once_in_order_and_all_that_collect_without_any() {
        let words = ["mmtk:immix,moving=off", "mmtk:nogc", "mmtk:immix,moving=off"];
        assert_eq!(chosen_of(&words), Ok(vec!["immix,moving=off", "nogc"]));
        assert_eq!(chosen_of(&["own:treadmill"]), Ok(vec!["treadmill"]));
        assert_eq!(row_name("treadmill"), "own:treadmill");
        assert!(is_known("own:treadmill") && !is_known("mmtk:treadmill") && !is_known("treadmill"));
        let usual = chosen_of(&[]).expect("plans");
        assert!(
            usual.len() == NAMES.len() - 1 && usual.iter().all(|plan| NAMES.contains(plan) && collects(plan))
        );
    }

    #[test]
    fn the_part_of_a_full_heap_without_objects_is_a_copy_reserve_where_there_is_one() {
        for (plan, word) in [("mmtk:semispace", "copy"), ("mmtk:marksweep", "lost"), ("own:counting", "lost")]
        {
            assert!(rest_of_heap(plan).contains(word), "{plan}");
        }
    }

    #[test]
    fn other_managers_and_unknown_plans_are_refused_with_the_plans() {
        for (word, words) in [
            ("glibc", "needs no pointers"),
            ("mmtk:semispce", "mmtk:semispace"),
            ("mmtk:treadmill", "own:treadmill"),
            ("own:immix", "mmtk:immix"),
        ] {
            let message = chosen_of(&[word]).expect_err(word);
            assert!(
                message.contains(word) && message.contains(words) && message.contains("mmtk:nogc"),
                "{message}"
            );
        }
        assert!(chosen_of(&["mmtk:\u{1b}[31m"]).is_err_and(|message| !message.contains('\u{1b}')));
    }
}
