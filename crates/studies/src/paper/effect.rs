//! A ratio between two of the figures, or over many programs, with an interval.
//!
//! - Repetitions: `heaptoll_statistics::paired` over all comparisons of a test at once, so that their intervals
//!   hold together (95 %). Below six pairs there is a value and no interval.
//!   Where runs at once with others gave a figure, what company does to it is allowed for (`company`).
//! - Programs: Student's t on their log ratios, from three on; where a test has several means, at 5 % over their
//!   number (Bonferroni). With one or two programs the interval is that of repetitions.
//! - Exact counts have an interval without width: what is claimed is of this program with this input.

use std::collections::BTreeMap;

use heaptoll_statistics::FEWEST_PAIRS;
use serde::{Deserialize, Serialize};

use super::company::{self, Found, Series};
use super::definition::{Against, Quantity, Rule, Study};
use super::figures::{Figures, Value};
use super::known::{FINITE, Known, WIDEST};
use super::pairs::{CellRef, Compared, Resolved, Without, resolve, without};
use super::student;
use super::trend::trends;
use super::words;

/// One comparison.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Effect {
    /// What over what, on what: `bw16 over kingsley on gawk`, `mean of 6 programs`.
    pub words: String,
    /// Ratio, or plain figure.
    pub value: f64,
    /// Lower end; equal to `value` for exact counts.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What it rests on.
    pub basis: Basis,
}

/// What an effect's interval is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Pairs of repetitions, so many; repetitions, of a plain figure.
    Pairs(u32),
    /// Programs, so many: Student's t on log ratios.
    Programs(u32),
    /// Points of a line, so many: Student's t on the slope.
    Points(u32),
    /// Exact counts.
    Exact,
    /// The command's own interval.
    Estimate,
    /// Too few: there is a value, and no interval.
    None,
}

/// After the words of a comparison whose interval reaches over both ways of measuring.
const MOVED: &str = ", at once and alone";

/// Why there is nothing to compare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// Every comparison of a quantity, each with its interval; intervals of repetitions hold together.
pub fn compare(quantity: &Quantity, study: &Study, figures: &Figures) -> Result<Vec<Effect>, Missing> {
    Ok(by_rule(Rule::All, quantity, study, figures)?.effects)
}

/// The geometric mean over programs of each pair of managers.
pub fn mean(quantity: &Quantity, study: &Study, figures: &Figures) -> Result<Vec<Effect>, Missing> {
    Ok(by_rule(Rule::Mean, quantity, study, figures)?.effects)
}

/// The slope of log figure over log place, of each pair of managers.
pub fn trend(quantity: &Quantity, study: &Study, figures: &Figures) -> Result<Vec<Effect>, Missing> {
    Ok(by_rule(Rule::Trend, quantity, study, figures)?.effects)
}

/// Effects, and what the quantity requests that is not in them.
pub(super) struct Outcome {
    pub effects: Vec<Effect>,
    pub programs_requested: usize,
    /// What has no figures.
    pub without: Without,
    /// What has too few runs to be in a mean.
    pub thin: Vec<String>,
}

/// The effects that a rule judges.
pub(super) fn by_rule(
    rule: Rule,
    quantity: &Quantity,
    study: &Study,
    figures: &Figures,
) -> Result<Outcome, Missing> {
    let Resolved { step, compared, requested } = resolve(quantity, study, figures)?;
    let measured = measure(compared);
    // Only what has a value: two figures without a ratio count as none.
    let found: Vec<&Compared<'_>> = measured.iter().map(|one| &one.compared).collect();
    let mut without = without(quantity, step, &requested, &found);
    let measured = against(quantity.against, measured);
    let (effects, thin) = match rule {
        Rule::Mean => means(&measured),
        Rule::Trend => {
            let (slopes, none) = trends(&measured);
            without.cells.extend(none);
            (slopes, Vec::new())
        }
        Rule::All | Rule::Some | Rule::Most | Rule::Both => {
            (measured.into_iter().map(|one| one.effect).collect(), Vec::new())
        }
    };
    if effects.is_empty() {
        let why = if rule == Rule::Trend { "at two places or more" } else { "that is a positive number" };
        let (step, metric) = (&quantity.step, &quantity.metric);
        return Err(Missing(format!("step {step} has no {metric} {why}")));
    }
    Ok(Outcome { effects, programs_requested: requested.len(), without, thin })
}

/// A comparison with its interval.
pub(super) struct Measured<'a> {
    pub compared: Compared<'a>,
    /// The sides as means name them.
    sides: String,
    pub effect: Effect,
    /// Log ratios by repetition, where there are any.
    series: Option<Series>,
    /// Whether runs at once with others gave one of its figures.
    at_once: bool,
}

/// Whether some repetition has both figures and no ratio, for one of them is none.
fn lacks_ratio(compared: &Compared<'_>) -> bool {
    let (Value::Samples(of), Some(Value::Samples(over))) =
        (compared.of.value, compared.over.map(|over| over.value))
    else {
        return false;
    };
    of.iter().zip(over).any(|pair| matches!(pair, (Some(of), Some(over)) if *of <= 0.0 || *over <= 0.0))
}

/// Comparisons with their intervals.
pub(super) fn measure(compared: Vec<Compared<'_>>) -> Vec<Measured<'_>> {
    let samples = |place: &CellRef<'_>| matches!(place.value, Value::Samples(_));
    let all: Vec<Option<Series>> =
        compared.iter().map(|one| Series::of(&one.of, one.over.as_ref()?)).collect();
    let family: Vec<&Series> = all.iter().flatten().collect();
    let plain = compared.iter().filter(|one| samples(&one.of)).count() - family.len();
    let mut intervals = company::intervals(&family).into_iter();
    let mut measured = Vec::new();
    for (compared, series) in compared.into_iter().zip(all) {
        let mut words = compared.label();
        let known = match &series {
            Some(series) => match intervals.next().flatten() {
                // Pairs with a figure of none have no ratio: without them an interval would be of the others alone.
                Some(found) if found.pairs as usize >= FEWEST_PAIRS && !lacks_ratio(&compared) => {
                    if found.moved {
                        words += MOVED;
                    }
                    Some(found.known())
                }
                Some(found) => Some(Known::alone(found.ratio)),
                None => series.first().map(|one| Known::alone(one.exp())),
            },
            None => {
                let known = Known::of(compared.of.value, plain);
                match &compared.over {
                    None => known,
                    Some(over) => known.and_then(|known| known.over(&Known::of(over.value, plain)?)),
                }
            }
        };
        let Some(Known { value, low, high, basis }) = known else { continue };
        let effect = Effect { words, value, low, high, basis };
        let at_once = series.as_ref().is_some_and(Series::is_at_once);
        measured.push(Measured { sides: compared.sides(), compared, effect, series, at_once });
    }
    measured
}

/// Where the least (or the most) of several denominators counts, the comparisons with them become one.
///
/// Over the least is the largest of the ratios, and so are the ends of its interval: as the intervals hold together,
/// it lies between them whichever manager is the least in truth.
fn against(against: Against, measured: Vec<Measured<'_>>) -> Vec<Measured<'_>> {
    let (word, largest) = match against {
        Against::Each => return measured,
        Against::Lowest => ("least", true),
        Against::Highest => ("most", false),
    };
    let mut groups: BTreeMap<(String, String, String), Vec<Measured<'_>>> = BTreeMap::new();
    let mut order = Vec::new();
    for one in measured {
        let of = &one.compared.of;
        let key = (of.program.to_owned(), of.manager.to_owned(), one.compared.place.clone());
        if !groups.contains_key(&key) {
            order.push(key.clone());
        }
        groups.entry(key).or_default().push(one);
    }
    // Means are over programs, and one that lacks a manager is of the same mean.
    let of = groups.values().map(Vec::len).max().unwrap_or_default();
    order
        .into_iter()
        .filter_map(|key| {
            let group = groups.remove(&key)?;
            let ends = |of: &dyn Fn(&Effect) -> f64| {
                let values = group.iter().map(|one| of(&one.effect));
                if largest {
                    values.fold(f64::NEG_INFINITY, f64::max)
                } else {
                    values.fold(f64::INFINITY, f64::min)
                }
            };
            let (value, low, high) = (ends(&|e| e.value), ends(&|e| e.low), ends(&|e| e.high));
            let basis = weakest(group.iter().map(|one| one.effect.basis));
            let managers = group.len();
            let at_once = group.iter().any(|one| one.at_once);
            let first = group.into_iter().next()?;
            let over = |managers: usize| {
                format!("{} over the {word} of {}", key.1, words::count(managers, "manager"))
            };
            let place = if key.2.is_empty() { String::new() } else { format!(" {}", key.2) };
            let words = format!("{} on {}{place}", over(managers), first.compared.program);
            let sides = over(of);
            let (low, high) = if basis == Basis::None { (value, value) } else { (low, high) };
            let effect = Effect { words, value, low, high, basis };
            Some(Measured { compared: first.compared, sides, effect, series: None, at_once })
        })
        .collect()
}

/// What several effects rest on together.
fn weakest(bases: impl Iterator<Item = Basis>) -> Basis {
    bases
        .reduce(|a, b| match (a, b) {
            (Basis::None, _) | (_, Basis::None) => Basis::None,
            (Basis::Pairs(a), Basis::Pairs(b)) => Basis::Pairs(a.min(b)),
            (Basis::Exact, other) | (other, Basis::Exact) => other,
            (a, b) if a == b => a,
            _ => Basis::Estimate,
        })
        .unwrap_or(Basis::None)
}

/// Comparisons by what is common to all programs: sides and place, in the order met.
pub(super) fn groups<'m, 'a>(
    measured: &'m [Measured<'a>],
    with_place: bool,
) -> Vec<(String, Vec<&'m Measured<'a>>)> {
    let mut groups: Vec<(String, Vec<&Measured<'_>>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for one in measured {
        let place = if with_place && !one.compared.place.is_empty() {
            format!(" {}", one.compared.place)
        } else {
            String::new()
        };
        let name = format!("{}{place}", one.sides);
        let number = *places.entry(name.clone()).or_insert_with(|| {
            groups.push((name, Vec::new()));
            groups.len() - 1
        });
        groups[number].1.push(one);
    }
    groups
}

/// One mean over programs a pair of managers and place, and what has too few runs to be in it.
fn means(measured: &[Measured<'_>]) -> (Vec<Effect>, Vec<String>) {
    let mut groups = groups(measured, true);
    let mut thin = Vec::new();
    for (_, group) in &mut groups {
        // A program with too few runs has no interval, and would leave the mean without one.
        let has_interval = |one: &&Measured<'_>| one.effect.basis != Basis::None;
        if group.iter().any(has_interval) {
            thin.extend(group.iter().filter(|one| !has_interval(one)).map(|one| one.effect.words.clone()));
            group.retain(has_interval);
        }
    }
    let family = groups.len();
    // Of one or two programs: means within each repetition, all of them at once.
    let repeated: Vec<Option<Series>> = groups.iter().map(|(_, group)| within(group)).collect();
    let mut intervals = company::intervals(&repeated.iter().flatten().collect::<Vec<_>>()).into_iter();
    let mut effects = Vec::new();
    for ((sides, group), repeated) in groups.iter().zip(repeated) {
        let interval = repeated.and_then(|_| intervals.next().flatten());
        let mut words = match group.as_slice() {
            [one] => one.effect.words.clone(),
            several => format!("{sides}, mean of {}", words::count(several.len(), "program")),
        };
        if group.len() == 2 && interval.as_ref().is_some_and(|found| found.moved) {
            words += MOVED;
        }
        let whole = group.iter().map(|one| &one.effect).collect::<Vec<_>>();
        let at_once = group.iter().any(|one| one.at_once);
        if let Some(known) = over(&whole, at_once, family, interval) {
            let Known { value, low, high, basis } = known;
            effects.push(Effect { words, value, low, high, basis });
        }
    }
    (effects, thin)
}

/// The log ratios' means by repetition of one or two programs.
fn within(group: &[&Measured<'_>]) -> Option<Series> {
    if group.len() > 2 {
        return None;
    }
    let series: Option<Vec<&Series>> = group.iter().map(|one| one.series.as_ref()).collect();
    Series::mean(&series?)
}

/// A mean over programs. Geometric; arithmetic where a figure is not positive.
fn over(programs: &[&Effect], at_once: bool, family: usize, interval: Option<Found>) -> Option<Known> {
    let geometric = programs.iter().all(|effect| effect.value > 0.0 && effect.low >= 0.0);
    let to = |value: f64| if geometric { value.ln().clamp(-FINITE, FINITE) } else { value };
    let from = |value: f64| if geometric { value.exp() } else { value };
    let average = |of: &dyn Fn(&Effect) -> f64| {
        from(programs.iter().map(|effect| to(of(effect))).sum::<f64>() / programs.len() as f64)
    };
    if let [one] = programs {
        return Some(Known { value: one.value, low: one.low, high: one.high, basis: one.basis });
    }
    let basis = weakest(programs.iter().map(|effect| effect.basis));
    let value = average(&|effect| effect.value);
    if programs.is_empty() || basis == Basis::None {
        return (!programs.is_empty()).then(|| Known::alone(value));
    }
    if programs.len() >= 3 {
        let values: Vec<f64> = programs.iter().map(|effect| to(effect.value)).collect();
        let (mean, half) = student::mean(&values, family)?;
        // The widest that still prints: a factor of a million either way.
        let half = if geometric { half.min(WIDEST) } else { half };
        let basis = Basis::Programs(programs.len() as u32);
        let known = Known { value: from(mean), low: from(mean - half), high: from(mean + half), basis };
        return Some(if at_once && geometric { company::allowed_for(known) } else { known });
    }
    if let Some(found) = interval.filter(|found| found.pairs as usize >= FEWEST_PAIRS) {
        return Some(found.known());
    }
    // Intervals that hold together: the mean lies between the means of their ends.
    Some(Known { value, low: average(&|effect| effect.low), high: average(&|effect| effect.high), basis })
}

#[cfg(test)]
#[path = "effect_tests.rs"]
mod tests;
