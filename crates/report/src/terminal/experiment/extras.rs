//! Tables of an experiment that are shown on request, and what stands in their place.

use heaptoll_experiment::comparison::{Comparison, ProgramTable};

use crate::bounds;
use crate::format::and_list;

/// Tables that are shown on request: most readers want only a manager's cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extras {
    /// Lower bounds of overhead.
    pub bounds: bool,
    /// Garbage collections of the managers that count them.
    pub collections: bool,
}

/// Why a requested table is not there.
pub fn requested_but_absent(comparison: &Comparison, extras: Extras) -> impl Iterator<Item = &'static str> {
    let no_collections = extras.collections && !comparison.tables.iter().any(ProgramTable::has_collections);
    let no_bounds = extras.bounds && !comparison.lower_bounds.programs.iter().any(bounds::is_shown);
    [
        (no_collections, "No garbage collections (--collections): no manager of this experiment counted any."),
        (
            no_bounds,
            "No lower bounds of overhead (--bounds): they need two managers, or one whose costs are known, and two \
             repetitions in which all of them ran well.",
        ),
    ]
    .into_iter()
    .filter_map(|(is_missing, why)| is_missing.then_some(why))
}

/// Which tables there are besides, and how to have them.
pub fn available_on_request(comparison: &Comparison, extras: Extras) -> Option<String> {
    let bounds = !extras.bounds && comparison.lower_bounds.programs.iter().any(bounds::is_shown);
    let collections = !extras.collections && comparison.tables.iter().any(ProgramTable::has_collections);
    let names: Vec<String> = [
        (collections, "garbage collections (--collections)"),
        (bounds, "lower bounds of overhead (--bounds)"),
    ]
    .into_iter()
    .filter(|(is_left, _)| *is_left)
    .map(|(_, name)| name.to_owned())
    .collect();
    (!names.is_empty()).then(|| format!("Not shown here, but in the page (--html): {}", and_list(&names)))
}
