//! The plans of a replay: collectors of MMTk and of our own, by `mmtk:NAME`.

use heaptoll_catalog::did_you_mean;
use heaptoll_replay::mmtk::plans::{NAMES, NO_COLLECTION};
use heaptoll_report::format::printable;

use super::error::GraphReplayError;
use crate::failure::Failure;

/// What the name of a plan begins with, where other managers have names too.
const PREFIX: &str = "mmtk:";
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

/// Whether a word of `-m` names a plan, known or not.
pub fn is_plan(word: &str) -> bool {
    word.starts_with(PREFIX)
}

/// The name of a plan as rows have it.
pub fn row_name(plan: &str) -> String {
    format!("{PREFIX}{plan}")
}

fn known() -> String {
    NAMES.map(row_name).join(", ")
}

/// The plans that these words name, each once.
///
/// # Errors
/// One names no plan.
pub fn chosen(words: &[String]) -> Result<Vec<&'static str>, Failure> {
    if words.is_empty() {
        return Ok(USUAL.to_vec());
    }
    let mut plans = Vec::new();
    for word in words {
        let plan = named(word).map_err(|error| Failure::Refused(Box::new(error)))?;
        if !plans.contains(&plan) {
            plans.push(plan);
        }
    }
    Ok(plans)
}

fn named(word: &str) -> Result<&'static str, GraphReplayError> {
    let Some(name) = word.strip_prefix(PREFIX) else {
        return Err(GraphReplayError::NoPlan { word: printable(word), known: known() });
    };
    NAMES.into_iter().find(|plan| *plan == name).ok_or_else(|| GraphReplayError::UnknownPlan {
        word: printable(word),
        suggestion: did_you_mean(name, NAMES),
        known: known(),
    })
}

/// Whether a plan ever collects.
pub fn collects(plan: &str) -> bool {
    plan != NO_COLLECTION
}

#[cfg(test)]
mod tests {
    use heaptoll_replay::mmtk::plans::OWN;

    use super::*;

    fn chosen_of(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        chosen(&words).map_err(|failure| failure.to_string())
    }

    #[test]
    fn plans_are_chosen_once_in_order_and_all_of_mmtk_that_collect_without_any() {
        let words = ["mmtk:immix,moving=off", "mmtk:nogc", "mmtk:immix,moving=off"];
        assert_eq!(chosen_of(&words), Ok(vec!["immix,moving=off", "nogc"]));
        let usual = chosen_of(&[]).expect("plans");
        let others: Vec<&str> = NAMES.into_iter().filter(|plan| !usual.contains(plan)).collect();
        assert_eq!(others, [&[NO_COLLECTION][..], &OWN].concat());
        assert!(usual.len() == NAMES.len() - others.len() && usual.iter().all(|plan| collects(plan)));
    }

    #[test]
    fn other_managers_and_unknown_plans_are_refused_with_the_plans() {
        for (word, words) in [("glibc", "needs no pointers"), ("mmtk:semispce", "mmtk:semispace")] {
            let message = chosen_of(&[word]).expect_err(word);
            assert!(
                message.contains(word) && message.contains(words) && message.contains("mmtk:nogc"),
                "{message}"
            );
        }
        assert!(chosen_of(&["mmtk:\u{1b}[31m"]).is_err_and(|message| !message.contains('\u{1b}')));
    }
}
