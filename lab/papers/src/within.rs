//! Which claims a plan can decide, known before anything is run.

use std::collections::BTreeSet;

use heaptoll_statistics::FEWEST_PAIRS;

use super::budget::{HasSize, Length, Planned, Speed, plan};
use super::definition::{Claim, Study};

/// A longer time than any budget, s.
const LONGEST_S: f64 = 48.0 * 3600.0;

/// A shorter time than any step takes, s.
const SHORTEST_S: f64 = 1.0;

/// Claims that can be decided, and those that are tested at all: of the papers, and of ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Within {
    /// Every step of theirs is run in a form that decides.
    pub decided: [usize; 2],
    /// Those that have a test.
    pub tested: [usize; 2],
}

impl Within {
    /// `12 of 80 claims of the papers and 3 of 12 of ours`.
    pub fn words(&self) -> String {
        let [of_papers, ours] =
            [0, 1].map(|whose| format!("{} of {}", self.decided[whose], self.tested[whose]));
        match self.tested {
            [_, 0] => format!("{of_papers} claims"),
            [0, _] => format!("{ours} claims of ours"),
            _ => format!("{of_papers} claims of the papers and {ours} of ours"),
        }
    }
}

/// Whether the form of a step decides anything: it has what its claims need, and enough pairs for an interval.
fn decides(planned: &Planned) -> bool {
    planned.repetitions as usize >= FEWEST_PAIRS || planned.repetitions == planned.of_repetitions
}

/// The claims of these studies that steps run as planned can decide.
pub fn within(studies: &[Study], planned: &[Planned]) -> Within {
    let is_decided = |claim: &Claim| {
        let of_step = |step: &str| planned.iter().find(|planned| planned.step == step);
        claim.tests.iter().all(|test| of_step(&test.quantity.step).is_some_and(decides))
    };
    let mut within = Within::default();
    let claims = studies.iter().flat_map(|study| &study.claims);
    for claim in claims.filter(|claim| claim.not_built.is_none() && !claim.tests.is_empty()) {
        let whose = usize::from(claim.ours);
        within.tested[whose] += 1;
        within.decided[whose] += usize::from(is_decided(claim));
    }
    within
}

/// The least time in which one claim at least can be decided, s, to a tenth of itself.
pub fn least_s(studies: &[Study], has_size: HasSize<'_>) -> Option<f64> {
    let times = std::iter::successors(Some(SHORTEST_S), |seconds| Some(seconds * 1.1));
    times.take_while(|seconds| *seconds <= LONGEST_S).find(|seconds| {
        let planned = plan(studies, Length::Seconds(*seconds), has_size, &Speed::default(), &BTreeSet::new());
        within(studies, &planned.planned).decided != [0, 0]
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
        assert_eq!(of(1.0).decided, [0, 0]);
        let whole = of(LONGEST_S);
        assert!(whole.decided == whole.tested && whole.tested[0] > 10, "{whole:?}");
        let ours = study[0].claims.iter().filter(|claim| claim.ours).count();
        assert_eq!(whole.tested[1], ours, "they are counted apart");
        assert!(whole.words().ends_with(&format!(" claims of the papers and {ours} of {ours} of ours")));
        let least = least_s(&study, &|_, _| true).expect("some time is enough");
        assert!(of(least).decided != [0, 0] && least < LONGEST_S, "{least}");
        // The least of all: it was a minute where five seconds were enough.
        assert_eq!(of(0.85 * least).decided, [0, 0], "{least}");
    }
}
