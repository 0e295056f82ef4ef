//! A table or figure with the published values and ours, ready to be shown.

use std::collections::BTreeMap;

use heaptoll_statistics::median;
use serde::{Deserialize, Serialize};

use super::definition::{Exhibit, Form, Rule, Shown as AsShown, Study};
use super::effect::{self, Basis, Effect};
use super::figures::{Absent, Figures, Value};
use super::{grid, lines, placed, words};

/// An exhibit with its figures.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Shown {
    /// Exhibit's id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Sentences above it.
    pub text: Vec<String>,
    /// The commands that repeat it.
    pub commands: Vec<String>,
    /// What stands in it.
    pub body: Body,
    /// Below it: what is missing and why, rank agreement with the paper.
    pub notes: Vec<String>,
}

/// What stands in an exhibit.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Rows by columns.
    Table {
        /// Heading of the rows' names, then of the columns; a column's group (a manager) may stand for several.
        columns: Vec<String>,
        /// Name of the row and its cells.
        rows: Vec<(String, Vec<Pair>)>,
    },
    /// Bars: places across are programs (or managers), a series a manager (or `ours`/`paper`).
    Bars {
        /// Title of the axis with unit.
        y_title: String,
        /// Logarithmic.
        log_y: bool,
        /// Names of the places.
        places: Vec<String>,
        /// Name and a value a place.
        series: Vec<(String, Vec<Pair>)>,
    },
    /// Lines.
    Lines {
        /// Axes.
        x_title: String,
        /// With unit.
        y_title: String,
        /// Logarithmic.
        log_x: bool,
        /// Logarithmic.
        log_y: bool,
        /// Name, and x with value.
        series: Vec<(String, Vec<(f64, Pair)>)>,
    },
}

/// A published value and ours.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct Pair {
    /// As the paper has it; as many as a range has.
    pub published: Vec<String>,
    /// Ours, in the exhibit's unit.
    pub ours: Option<Ours>,
    /// Why there is none of ours.
    pub missing: Option<String>,
}

/// Ours.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct Ours {
    /// Median or exact value, in the exhibit's unit.
    pub value: f64,
    /// Interval, or the range of repetitions of an absolute value; none for exact counts.
    pub interval: Option<(f64, f64)>,
    /// The ratio to `relative_to`, with its interval.
    pub ratio: Option<(f64, Option<(f64, f64)>)>,
    /// Counted exactly.
    pub exact: bool,
}

/// An exhibit of a study with what was measured. `commands` are those that repeat it, by step's id; `absent` has the
/// reasons why steps and cells are not there.
pub fn show(
    study: &Study,
    exhibit: &Exhibit,
    figures: &Figures,
    commands: &BTreeMap<String, String>,
    absent: &Absent,
) -> Shown {
    let source = Source { study, exhibit, figures, absent };
    let (body, mut notes) = match exhibit.form {
        Form::Table => grid::table(&source),
        Form::Bars => grid::bars(&source),
        Form::Lines => lines::lines(&source),
        Form::List => list(&source),
    };
    if let (Some(base), Form::Table | Form::Bars | Form::Lines) = (&exhibit.relative_to, exhibit.form) {
        let variant = exhibit.relative_variant.as_ref().map(|variant| format!(" with the {variant} program"));
        notes.insert(0, format!("Ratios are to {base}{}.", variant.unwrap_or_default()));
    }
    let steps = steps(exhibit);
    for step in &steps {
        if let Some(why) = absent.of_step(step) {
            notes.push(format!("Step {step}: {why}."));
        }
    }
    Shown {
        id: exhibit.id.clone(),
        title: exhibit.title.clone(),
        text: exhibit.text.clone(),
        commands: steps.iter().filter_map(|step| commands.get(*step).cloned()).collect(),
        body,
        notes,
    }
}

/// What an exhibit is made of.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub study: &'a Study,
    pub exhibit: &'a Exhibit,
    pub figures: &'a Figures,
    pub absent: &'a Absent,
}

/// The steps that an exhibit shows, each once.
pub(super) fn steps(exhibit: &Exhibit) -> Vec<&str> {
    let of_columns = exhibit.columns.iter().flat_map(|column| {
        let over = column.over.as_ref().and_then(|over| over.step.as_deref());
        column.step.as_deref().into_iter().chain(over)
    });
    let of_rows = exhibit.rows.iter().filter_map(|row| row.ours.as_ref()).map(|ours| ours.step.as_str());
    let mut steps = Vec::new();
    for step in std::iter::once(exhibit.step.as_str()).chain(of_columns).chain(of_rows) {
        if !step.is_empty() && !steps.contains(&step) {
            steps.push(step);
        }
    }
    steps
}

/// A value by itself, times `scale`: the median with the range of the repetitions, or what the command gave.
pub(super) fn ours(value: &Value, scale: f64) -> Option<Ours> {
    let (middle, interval, exact) = match value {
        Value::Exact(value) => (*value, None, true),
        Value::Single(value) => (*value, None, false),
        Value::Estimate { value, low, high } => (*value, Some((*low, *high)), false),
        Value::Samples(samples) => {
            let good: Vec<f64> =
                samples.iter().flatten().copied().filter(|value| value.is_finite()).collect();
            let least = good.iter().copied().reduce(f64::min)?;
            let most = good.iter().copied().reduce(f64::max)?;
            (median(&good), (good.len() > 1).then_some((least, most)), false)
        }
    };
    let interval = interval.map(|(low, high)| (scale * low, scale * high));
    middle.is_finite().then_some(Ours { value: scale * middle, interval, ratio: None, exact })
}

/// A comparison's value and, where it has one, interval.
pub(super) fn interval(effect: &Effect) -> Option<(f64, f64)> {
    (!matches!(effect.basis, Basis::None | Basis::Exact)).then_some((effect.low, effect.high))
}

/// Quantities one by one.
fn list(source: &Source<'_>) -> (Body, Vec<String>) {
    let Source { study, exhibit, figures, absent } = source;
    let heading = if exhibit.unit.is_empty() { "value".to_owned() } else { exhibit.unit.clone() };
    let mut rows = Vec::new();
    for row in &exhibit.rows {
        let published = placed::of_row(exhibit, row).into_iter().map(|placed| placed.text).collect();
        let found = row
            .ours
            .as_ref()
            .map(|quantity| (quantity, effect::by_rule(Rule::Mean, quantity, study, figures)));
        // A mean of some of the programs is not to be taken for that of all.
        let mut part = String::new();
        let (ours, missing) = match found {
            None => (None, row.missing.clone()),
            Some((_, Ok(outcome))) => {
                let requested = outcome.programs_requested;
                let has = match outcome.effects.as_slice() {
                    [Effect { basis: Basis::Programs(of_mean), .. }] => *of_mean as usize,
                    _ => requested.saturating_sub(outcome.without.programs.len() + outcome.thin.len()),
                };
                if has < requested {
                    part = format!(" (here {has} of {requested} programs)");
                }
                match outcome.effects.as_slice() {
                    [effect] => (Some(as_shown(row.shown, exhibit.scale, effect)), None),
                    several => {
                        let words: Vec<String> = several.iter().map(|effect| effect.words.clone()).collect();
                        (None, Some(format!("it may be each of {}", words::list(&words))))
                    }
                }
            }
            Some((quantity, Err(missing))) => {
                let why = absent.of_step(&quantity.step).map(|why| format!("step {}: {why}", quantity.step));
                (None, Some(why.unwrap_or_else(|| missing.to_string())))
            }
        };
        let percent = row.shown == AsShown::Percent
            && !row.words.contains('%')
            && !row.words.contains("percent")
            && !exhibit.unit.contains('%');
        let words = if percent { format!("{}{part}, %", row.words) } else { format!("{}{part}", row.words) };
        rows.push((words, vec![Pair { published, ours, missing }]));
    }
    (Body::Table { columns: vec![String::new(), heading], rows }, Vec::new())
}

fn as_shown(shown: AsShown, scale: f64, effect: &Effect) -> Ours {
    let to = |value: f64| match shown {
        AsShown::Ratio => value,
        AsShown::Percent => 100.0 * (value - 1.0),
        AsShown::Plain => scale * value,
    };
    Ours {
        value: to(effect.value),
        interval: interval(effect).map(|(low, high)| (to(low), to(high))),
        ratio: None,
        exact: effect.basis == Basis::Exact,
    }
}

#[cfg(test)]
#[path = "exhibit_tests.rs"]
mod tests;
