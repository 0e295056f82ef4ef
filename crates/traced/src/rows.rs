//! A program's figures, a row a manager: what `exact instructions` and `exact drag` have in common.

use heaptoll_runs::traced::{Cell, ImageSummary, JudgedRun, Made};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One program.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Program")]
pub struct Program<R> {
    /// Its name.
    pub program: String,
    /// Its command.
    pub command: Vec<String>,
    /// The manager that came first. Empty in files of before.
    #[serde(default)]
    pub baseline: String,
    /// One a manager, the baseline first.
    pub managers: Vec<R>,
    /// Reasons to doubt these figures.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One program under one manager.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Row")]
pub struct Row<F, T, M> {
    /// The manager as it was requested.
    pub manager: String,
    /// Its version; empty when unknown.
    pub version: String,
    /// Why there are no figures, or not all.
    pub problem: Option<String>,
    /// The process image the figures are of: that with the most instructions.
    pub image: Option<ImageSummary>,
    /// Its figures.
    pub figures: Option<F>,
    /// All process images together, where there were several.
    pub all_images: Option<T>,
    /// What only this command has.
    #[serde(flatten)]
    pub more: M,
    /// Warnings of the tracer and the preflight about this run.
    pub warnings: Vec<String>,
}

impl<F: Default, T: Default, M: Default> Row<F, T, M> {
    /// The row of a run, without its figures.
    pub(crate) fn of<S>(cell: &Cell, run: &JudgedRun<S>) -> Self {
        Row {
            manager: cell.stack.name.clone(),
            version: cell.stack.version.clone(),
            problem: run.problem(),
            image: Some(run.image()),
            warnings: run.remarks.clone(),
            ..Row::default()
        }
    }
}

impl<F: Default, T: Default, M: Default> Program<Row<F, T, M>> {
    /// A program: its rows, then what was refused; with what `warnings` says of all.
    pub(crate) fn of(made: Made<Row<F, T, M>>, warnings: impl Fn(&[Row<F, T, M>]) -> Vec<String>) -> Self {
        let refused = made.refused.into_iter();
        let refused = refused.map(|(manager, why)| Row { manager, problem: Some(why), ..Row::default() });
        let managers: Vec<_> = made.rows.into_iter().chain(refused).collect();
        Program {
            program: made.program.name.clone(),
            command: made.program.command.clone(),
            baseline: made.baseline.to_owned(),
            warnings: warnings(&managers),
            managers,
        }
    }
}
