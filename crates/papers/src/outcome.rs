//! The effects of a quantity: ratios between two of the figures, or over many programs, each with an interval.
//!
//! - Repetitions: `heaptoll_statistics::paired` over all comparisons of a test at once, so that their intervals
//!   hold together (95 %). Below six pairs there is a value and no interval.
//!   Where runs at once with others gave a figure, what company does to it is allowed for (`company`).
//! - Programs: Student's t on their log ratios, from three on; where a test has several means, at 5 % over their
//!   number (Bonferroni). With one or two programs the interval is that of repetitions.
//! - Exact counts have an interval without width: what is claimed is of this program with this input.

use super::definition::{Quantity, Rule, Study, Test};
use super::effect::{Effect, Missing};
use super::figures::Figures;
use super::means::means;
use super::measured::{Measured, against, measure};
use super::order::order;
use super::pairs::{Compared, Resolved, Without, resolve, without};
use super::trend::trends;

/// Effects, and what the quantity requests that is not in them.
pub(super) struct Outcome {
    pub effects: Vec<Effect>,
    pub programs_requested: usize,
    /// What has no figures.
    pub without: Without,
    /// What has too few runs to be in a mean.
    pub thin: Vec<String>,
}

/// The effects that a test judges.
pub(super) fn by_test(test: &Test, study: &Study, figures: &Figures) -> Result<Outcome, Missing> {
    match test.rule {
        Rule::Order => {
            effects(&test.whole_quantity(), study, figures, "of both lists of programs", |measured, _| {
                (order(&measured, &test.quantity.programs), Vec::new())
            })
        }
        rule => by_rule(rule, &test.quantity, study, figures),
    }
}

/// The effects that a rule over one list of programs judges.
pub(super) fn by_rule(
    rule: Rule,
    quantity: &Quantity,
    study: &Study,
    figures: &Figures,
) -> Result<Outcome, Missing> {
    let why = if rule == Rule::Trend { "at two places or more" } else { "that is a positive number" };
    effects(quantity, study, figures, why, |measured, without| match rule {
        Rule::Mean => means(&measured),
        Rule::Trend => {
            let (slopes, none) = trends(&measured);
            without.cells.extend(none);
            (slopes, Vec::new())
        }
        Rule::All | Rule::Some | Rule::Most | Rule::Both | Rule::Order => {
            (measured.into_iter().map(|one| one.effect).collect(), Vec::new())
        }
    })
}

/// The effects that `judged` makes of a quantity's comparisons, with what has too few runs. `why` there may be none.
fn effects(
    quantity: &Quantity,
    study: &Study,
    figures: &Figures,
    why: &str,
    judged: impl FnOnce(Vec<Measured<'_>>, &mut Without) -> (Vec<Effect>, Vec<String>),
) -> Result<Outcome, Missing> {
    let Resolved { step, compared, requested } = resolve(quantity, study, figures)?;
    let measured = measure(compared);
    // Only what has a value: two figures without a ratio count as none.
    let found: Vec<&Compared<'_>> = measured.iter().map(|one| &one.compared).collect();
    let mut without = without(quantity, step, &requested, &found);
    let (effects, thin) = judged(against(quantity.against, measured), &mut without);
    if effects.is_empty() {
        let (step, metric) = (&quantity.step, &quantity.metric);
        return Err(Missing(format!("step {step} has no {metric} {why}")));
    }
    Ok(Outcome { effects, programs_requested: requested.len(), without, thin })
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
