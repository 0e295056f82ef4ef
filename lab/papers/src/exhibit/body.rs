//! What stands in an exhibit: published values and ours, in rows, bars or lines.

use heaptoll_statistics::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effect::Effect;
use heaptoll_facts::{Basis, Value};

/// What stands in an exhibit.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct Pair {
    /// As the paper has it; as many as a range has.
    pub published: Vec<String>,
    /// Ours, in the exhibit's unit.
    pub ours: Option<Ours>,
    /// Why there is none of ours.
    pub missing: Option<String>,
}

/// Ours.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
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

/// A value by itself, times `scale`: the median with the range of the repetitions, or what the command gave.
pub(super) fn ours(value: &Value, scale: f64) -> Option<Ours> {
    let (middle, interval, exact) = match value {
        Value::Exact(value) => (*value, None, true),
        Value::Single(value) => (*value, None, false),
        // It has no figure; the reason stands in its place.
        Value::AtLeast(_) => return None,
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
