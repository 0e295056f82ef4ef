//! Tables and figures as a study's file defines them.

use std::collections::BTreeMap;

use heaptoll_units::each_once;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quantity::Quantity;

/// A table or a figure.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exhibit {
    /// `table3`: its anchor.
    pub id: String,
    /// `Table 3: CPU seconds`.
    pub title: String,
    /// Shape.
    pub form: Form,
    /// Step whose figures it shows; of a list, each quantity names its own.
    #[serde(default)]
    pub step: String,
    /// Metric (`docs/reference/study-format.md` lists them); of a table over several metrics, see `columns`.
    #[serde(default)]
    pub metric: String,
    /// Unit as shown, e.g. `s`, `KiB`, `instructions`.
    #[serde(default)]
    pub unit: String,
    /// Our figures are multiplied by this before they are shown (1e-6 for millions).
    #[serde(default = "unit")]
    pub scale: f64,
    /// Programs shown; empty: all of the step. In a table over metrics `reverse:custom under glibc` is a row, too.
    #[serde(default)]
    pub programs: Vec<String>,
    /// What stands here for the paper's programs, where it is not what does so in the study's other exhibits.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Managers shown; empty: all of the step.
    #[serde(default)]
    pub managers: Vec<String>,
    /// Show ratios to this manager, with intervals, next to the absolute values.
    #[serde(default)]
    pub relative_to: Option<String>,
    /// The ratio is to this variant of the program (`optimized`), not to the program of the row.
    #[serde(default)]
    pub relative_variant: Option<String>,
    /// Show the ratio in place of the absolute value, for it is what the paper prints.
    #[serde(default)]
    pub as_ratio: bool,
    /// Of lines: the one program shown at every `at`; of bars over managers, none.
    #[serde(default)]
    pub program: Option<String>,
    /// Of lines and of bars at one place: names of the axes.
    #[serde(default)]
    pub x_title: String,
    /// Logarithmic axes.
    #[serde(default)]
    pub log_x: bool,
    /// Logarithmic axes.
    #[serde(default)]
    pub log_y: bool,
    /// The one place shown, of metrics that have many (bytes of memory, of a cache).
    #[serde(default)]
    pub at: Option<f64>,
    /// What the reader should see or know, sentences.
    #[serde(default)]
    pub text: Vec<String>,
    /// Columns of a table whose rows are programs and whose columns are metrics.
    #[serde(default)]
    pub columns: Vec<MetricColumn>,
    /// Where the paper's values are.
    #[serde(default)]
    pub published: Option<Published>,
    /// Rows of a list.
    #[serde(rename = "row", default)]
    pub rows: Vec<ListRow>,
}

impl Exhibit {
    /// What the paper calls it, if anything: `Table 3`.
    pub fn label(&self) -> Option<&str> {
        let (label, _) = self.title.split_once(':')?;
        ["Table ", "Figure "].iter().any(|kind| label.starts_with(kind)).then_some(label)
    }

    /// The steps that it shows, each once.
    pub fn steps(&self) -> Vec<&str> {
        let of_columns = self.columns.iter().flat_map(|column| {
            let over = column.over.as_ref().and_then(|over| over.step.as_deref());
            column.step.as_deref().into_iter().chain(over)
        });
        let of_rows = self.rows.iter().filter_map(|row| row.ours.as_ref()).map(|ours| ours.step.as_str());
        let all = std::iter::once(self.step.as_str()).chain(of_columns).chain(of_rows);
        each_once(all.filter(|step| !step.is_empty()))
    }
}

/// Shape of an exhibit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Programs down, managers (or metrics) across.
    Table,
    /// A bar a program and manager, with intervals.
    Bars,
    /// A line a manager over `at`, for one program; or a line a program where no program is named.
    Lines,
    /// Quantities one by one, each with its published value.
    List,
}

/// A column of a table over metrics.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricColumn {
    /// Heading with unit.
    pub title: String,
    /// Metric; empty where nothing is measured, for the reason in `missing`.
    #[serde(default)]
    pub metric: String,
    /// Why there is nothing of ours.
    #[serde(default)]
    pub missing: Option<String>,
    /// Step, if not the exhibit's.
    #[serde(default)]
    pub step: Option<String>,
    /// Manager under which it is shown; the step's first when left out.
    #[serde(default)]
    pub manager: Option<String>,
    /// Another program than the row's: the row's, and this one in its place.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, String>,
    /// Ours times this is shown.
    #[serde(default = "unit")]
    pub scale: f64,
    /// Ours is divided by this before.
    #[serde(default)]
    pub over: Option<Divisor>,
    /// Column of the CSV.
    #[serde(default)]
    pub published: Option<String>,
    /// Ours over the paper's stands in the place of both.
    #[serde(default)]
    pub over_paper: bool,
}

/// What a column is divided by: `objects` of one step by `cpu_s` of another.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Divisor {
    /// Metric.
    pub metric: String,
    /// Step, if not the column's.
    #[serde(default)]
    pub step: Option<String>,
    /// Manager, if not the column's; with another step its first.
    #[serde(default)]
    pub manager: Option<String>,
}

/// Where the published values of an exhibit are.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// File in `studies/published`.
    pub file: String,
    /// Columns that name the program, joined by a blank. Of a list: the columns that name a row; all but those of the
    /// value when left out.
    #[serde(default)]
    pub program: Vec<String>,
    /// Only the lines that have this text in this column: column and text.
    #[serde(default)]
    pub only: BTreeMap<String, String>,
    /// Column that names the manager.
    #[serde(default)]
    pub manager: Option<String>,
    /// Column of the value; of a list several, joined by `, `.
    #[serde(default)]
    pub value: String,
}

/// A row of a list: one published quantity and the same of ours.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListRow {
    /// In words.
    pub words: String,
    /// Line of the CSV: the text of its columns but the value, joined by `, `; several where a row holds a range.
    #[serde(default)]
    pub published: Vec<String>,
    /// Ours; none where nothing of ours corresponds, for the reason in `missing`.
    #[serde(default)]
    pub ours: Option<Quantity>,
    /// Why there is none of ours.
    #[serde(default)]
    pub missing: Option<String>,
    /// How ours is shown next to the published one.
    #[serde(default)]
    pub shown: Shown,
}

/// How a quantity is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shown {
    /// `1.34`.
    #[default]
    Ratio,
    /// `34 %`: the ratio less one.
    Percent,
    /// In its own unit.
    Plain,
}

fn unit() -> f64 {
    1.0
}
