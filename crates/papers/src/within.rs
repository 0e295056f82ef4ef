//! Which claims a plan can decide, known before anything is run.

use std::collections::BTreeSet;

use heaptoll_statistics::FEWEST_PAIRS;

use super::budget::{HasSize, Length, Planned, Speed, plan};
use super::definition::{Claim, Study};

/// A longer time than any budget, s.
const LONGEST_S: f64 = 48.0 * 3600.0;

/// A shorter time than any step takes, s.
const SHORTEST_S: f64 = 1.0;

/// Claims that can be decided, those that are tested at all, and all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// Every step of theirs is run in a form that decides.
    pub decided: usize,
    /// Those that have a test.
    pub tested: usize,
    /// All.
    pub all: usize,
}

/// Whether the form of a step decides anything: it has what its claims need, and enough pairs for an interval.
fn decides(planned: &Planned) -> bool {
    planned.repetitions as usize >= FEWEST_PAIRS || planned.repetitions == planned.of_repetitions
}

/// The claims of these studies that steps run as planned can decide.
pub fn within(studies: &[Study], planned: &[Planned]) -> Within {
    let tested: Vec<&Claim> = studies
        .iter()
        .flat_map(|study| &study.claims)
        .filter(|claim| claim.not_built.is_none() && !claim.tests.is_empty())
        .collect();
    let is_decided = |claim: &&&Claim| {
        let of_step = |step: &str| planned.iter().find(|planned| planned.step == step);
        claim.tests.iter().all(|test| of_step(&test.quantity.step).is_some_and(decides))
    };
    Within {
        decided: tested.iter().filter(is_decided).count(),
        tested: tested.len(),
        all: studies.iter().map(|study| study.claims.len()).sum(),
    }
}

/// The least time in which one claim at least can be decided, s, to a tenth of itself.
pub fn least_s(studies: &[Study], has_size: HasSize<'_>) -> Option<f64> {
    let times = std::iter::successors(Some(SHORTEST_S), |seconds| Some(seconds * 1.1));
    times.take_while(|seconds| *seconds <= LONGEST_S).find(|seconds| {
        let planned = plan(studies, Length::Seconds(*seconds), has_size, &Speed::default(), &BTreeSet::new());
        within(studies, &planned.planned).decided > 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundled::all;

    #[test]
    fn a_budget_that_decides_no_claim_is_known_before_anything_runs() {
        let study: Vec<Study> =
            all().expect("studies").into_iter().filter(|study| study.name == "boehm-myths").collect();
        let of = |seconds| {
            let plan =
                plan(&study, Length::Seconds(seconds), &|_, _| true, &Speed::default(), &BTreeSet::new());
            within(&study, &plan.planned)
        };
        assert_eq!(of(1.0).decided, 0);
        let whole = of(LONGEST_S);
        assert!(whole.decided == whole.tested && whole.tested > 10, "{whole:?}");
        assert_eq!(whole.all, study[0].claims.len());
        let least = least_s(&study, &|_, _| true).expect("some time is enough");
        assert!(of(least).decided > 0 && least < LONGEST_S, "{least}");
        // The least of all: it was a minute where five seconds were enough.
        assert_eq!(of(0.85 * least).decided, 0, "{least}");
    }
}
