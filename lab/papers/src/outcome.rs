//! The effects of a quantity: ratios between two of the figures, or over many programs, each with an interval.
//!
//! - Repetitions: `heaptoll_statistics::paired` over all comparisons of a test at once, so that their intervals
//!   hold together (95 %). Below six pairs there is a value and no interval.
//!   Where runs at once with others gave a figure, what company does to it is allowed for (`company`).
//! - These programs: the mean of each repetition's log ratios; of exact counts it has no interval.
//! - Programs like these: Student's t on their log ratios, from three on, and of an order the interval of the sign test
//!   for their median; where a test has several means, at 5 % over their number (Bonferroni). With one or two programs
//!   the interval is that of repetitions.
//! - Exact counts have an interval without width: what is claimed is of this program with this input.

use std::collections::BTreeSet;

use heaptoll_units::and_list;

use super::collections::{Collections, Fewest, Sorted};
use super::definition::{Claim, Estimand, Quantity, Rule, Study, Test};
use super::effect::{Effect, Missing};
use super::figures::Figures;
use super::first_touches;
use super::means::{Stated, means};
use super::measured::{against, measure};
use super::order::order;
use super::pairs::{Compared, Resolved, Without, resolve, without};
use super::trend::trends;
use heaptoll_facts::Basis;

/// Effects, and what the quantity requests that is not in them.
pub(super) struct Outcome {
    pub effects: Vec<Effect>,
    /// Of each effect, how many programs it states something of: those in a mean or slope, or all that have comparisons.
    pub programs: Vec<usize>,
    /// Of comparisons, the program of each.
    pub on: Vec<String>,
    /// The programs that were compared, with the variant of the numerator.
    pub compared: BTreeSet<String>,
    pub programs_requested: usize,
    /// What has no figures.
    pub without: Without,
    /// What has too few runs to be in a mean.
    pub thin: Vec<String>,
    /// What a collector hardly collected in, and so is not in them.
    pub hardly_collected: Vec<String>,
    /// How many comparisons of programs that the quantity names are missing for that reason.
    pub named_hardly: usize,
    /// Comparisons of faults in a memory that holds both programs, and so are not in them.
    pub fitting: Vec<String>,
}

/// How effects are made of a quantity.
#[derive(Debug, Clone, Copy)]
struct How<'a> {
    rule: Rule,
    /// Of the rule `order`: the programs whose least counts.
    of: &'a [String],
    stated: Stated,
    fewest: Fewest,
}

/// The effects that a claim's test judges, stated of these programs or of programs like them.
pub(super) fn by_test(
    test: &Test,
    claim: &Claim,
    estimand: Estimand,
    study: &Study,
    figures: &Figures,
) -> Result<Outcome, Missing> {
    let stated = Stated { estimand, is_order: test.is_order() };
    let how = How { rule: test.rule, of: &test.quantity.programs, stated, fewest: Fewest::of(claim) };
    effects(&test.whole_quantity(), how, study, figures)
}

/// The effects that a rule over one list of programs makes of figures, whatever is claimed of them.
pub(super) fn by_rule(
    rule: Rule,
    estimand: Estimand,
    quantity: &Quantity,
    study: &Study,
    figures: &Figures,
) -> Result<Outcome, Missing> {
    let stated = Stated { estimand, is_order: false };
    effects(quantity, How { rule, of: &[], stated, fewest: Fewest::default() }, study, figures)
}

/// The effects of a quantity's comparisons, with what has too few runs.
fn effects(quantity: &Quantity, how: How<'_>, study: &Study, figures: &Figures) -> Result<Outcome, Missing> {
    let Resolved { step, compared, requested } = resolve(quantity, study, figures)?;
    let Sorted { collected, hardly, words } =
        Collections::of(study, step, figures).sort(compared, how.fewest);
    let (collected, fitting) = first_touches::sort(collected, step, figures);
    let fitting_in_words: Vec<String> = fitting.iter().map(Compared::label).collect();
    if collected.is_empty() {
        return Err(Missing(match fitting.as_slice() {
            [] => too_few_collections(&words),
            _ => both_fit(&fitting_in_words),
        }));
    }
    let measured = measure(collected);
    // Only what has a value: two figures without a ratio count as none. What hardly collected is there, and shows nothing.
    let found: Vec<&Compared<'_>> =
        measured.iter().map(|one| &one.compared).chain(&hardly).chain(&fitting).collect();
    let mut without = without(quantity, step, &requested, &found);
    let compared = measured.iter().map(|one| one.compared.of.program.to_owned()).collect();
    let named_hardly = if quantity.programs.is_empty() { 0 } else { hardly.len() };
    let measured = against(quantity.against, measured);
    let (mut programs, mut thin, mut on) = (Vec::new(), Vec::new(), Vec::new());
    let effects: Vec<Effect> = match how.rule {
        Rule::Mean => {
            let (means, few) = means(&measured, how.stated);
            thin = few;
            programs = means.iter().map(|mean| mean.programs).collect();
            means.into_iter().map(|mean| mean.effect).collect()
        }
        Rule::Trend => {
            let (slopes, none) = trends(&measured);
            without.cells.extend(none);
            let of = |slope: &Effect| if let Basis::Programs(of) = slope.basis { of as usize } else { 1 };
            programs = slopes.iter().map(of).collect();
            slopes
        }
        Rule::Order => order(&measured, how.of),
        Rule::All | Rule::Some | Rule::Most | Rule::Both => {
            on = measured.iter().map(|one| one.compared.program.clone()).collect();
            programs = vec![on.iter().collect::<BTreeSet<_>>().len(); on.len()];
            measured.into_iter().map(|one| one.effect).collect()
        }
    };
    if effects.is_empty() {
        let (step, metric) = (&quantity.step, &quantity.metric);
        let why = match how.rule {
            Rule::Order => "of both lists of programs",
            Rule::Trend => "at two places or more",
            _ => "that is a positive number",
        };
        return Err(Missing(format!("step {step} has no {metric} {why}")));
    }
    let programs_requested = requested.len();
    let hardly_collected = words;
    Ok(Outcome {
        effects,
        programs,
        on,
        compared,
        programs_requested,
        without,
        thin,
        hardly_collected,
        named_hardly,
        fitting: fitting_in_words,
    })
}

/// `left out for too few collections: bw16 on cfrac (9 collections)`.
pub(super) fn too_few_collections(which: &[String]) -> String {
    format!("left out for too few collections: {}", and_list(which))
}

/// `left out, for both fit into the memory: bw16 over kingsley on gawk at 2M`.
pub(super) fn both_fit(which: &[String]) -> String {
    format!("left out, for both fit into the memory: {}", and_list(which))
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
