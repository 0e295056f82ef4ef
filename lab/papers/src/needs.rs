//! What the claims of a study need of a step: a shorter form leaves out other programs and managers only.

use std::collections::BTreeSet;

use super::definition::{Quantity, Step, Study, Test};
use super::pairs::{of_side, requested};

/// Programs and managers of one step.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub programs: BTreeSet<String>,
    pub managers: BTreeSet<String>,
}

impl Needs {
    /// Those that the tests of the study's claims compare; `None` where no test is on the step.
    pub fn of(study: &Study, step: &Step) -> Option<Needs> {
        let tests = study.claims.iter().flat_map(|claim| &claim.tests);
        let quantities = tests.filter(|test| test.quantity.step == step.id).map(Test::whole_quantity);
        quantities.map(|quantity| Needs::of_quantity(&quantity, step)).reduce(|mut all, one| {
            all.programs.extend(one.programs);
            all.managers.extend(one.managers);
            all
        })
    }

    fn of_quantity(quantity: &Quantity, step: &Step) -> Needs {
        let sides = || std::iter::once(&quantity.of).chain(&quantity.over);
        let bases = requested(quantity, step);
        let named = match quantity.of.managers.as_slice() {
            [] => &step.managers,
            _ => &quantity.of.managers,
        };
        Needs {
            programs: bases.iter().flat_map(|base| sides().map(|side| of_side(base, side))).collect(),
            managers: named.iter().chain(sides().flat_map(|side| &side.managers)).cloned().collect(),
        }
    }

    /// How many of a list's first entries hold all that are needed.
    pub fn first_of(list: &[String], needed: &BTreeSet<String>) -> usize {
        list.iter().rposition(|name| needed.contains(name)).map_or(0, |last| last + 1)
    }
}
