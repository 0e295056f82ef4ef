//! Reads a command's JSON into cells of a study's figures: one reader a kind of step.
//!
//! Readers use the fields that the JSON's page in `docs/` describes, as a user's script would. A figure that a run does
//! not have (a manager that reports nothing, a run that failed) is no error, and gives no cell; a file that lacks a
//! field which it always has is one.

use heaptoll_studies::paper::definition::{Step, StepKind};
use heaptoll_studies::paper::figures::{Cell, Value};
use serde::de::DeserializeOwned;
use thiserror::Error;

mod instructions;
pub mod lifetimes;
mod locality;
mod run;
mod sareen;
#[cfg(test)]
mod testing;

/// JSON that is not what the command writes.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// It has another shape.
    #[error("the JSON of heaptoll {kind} is not as docs/ describes it: {detail}")]
    Shape {
        /// Which command.
        kind: &'static str,
        /// What is missing or of another type.
        detail: String,
    },
}

/// The figures of a step that a command wrote. Managers are called as the command calls them.
///
/// # Errors
/// It is not what the command writes.
pub fn read(kind: StepKind, json: &serde_json::Value, step: &Step) -> Result<Vec<Cell>, ReadError> {
    match kind {
        StepKind::Run => run::read(json, step),
        StepKind::Instructions => instructions::read(json, step),
        StepKind::Locality => locality::read(json, step),
        // Its JSON does not have the program: `lifetimes::read` takes both.
        StepKind::Lifetimes => Ok(vec![]),
        StepKind::Delay | StepKind::Frequency | StepKind::Proximity | StepKind::Minheap => {
            sareen::read(kind, json, step)
        }
    }
}

/// Programs and managers whose figures are missing or not whole: program, manager (all when none), why.
pub fn refused(kind: StepKind, json: &serde_json::Value) -> Vec<(String, Option<String>, String)> {
    match kind {
        StepKind::Run => run::refused(json),
        StepKind::Instructions => instructions::refused(json),
        StepKind::Locality => locality::refused(json),
        StepKind::Delay | StepKind::Frequency | StepKind::Proximity | StepKind::Minheap => {
            sareen::refused(kind, json)
        }
        StepKind::Lifetimes => vec![],
    }
}

/// How the runs of a step were paired, where that is not as it was wanted, and what company does to them.
pub fn pairing(kind: StepKind, json: &serde_json::Value) -> Vec<String> {
    if kind == StepKind::Run { run::pairing(json) } else { vec![] }
}

/// The warnings of a command and of its programs.
pub fn warnings(json: &serde_json::Value) -> Vec<String> {
    let texts = |list: &serde_json::Value| -> Vec<String> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut all = texts(&json["warnings"]);
    for program in json["programs"].as_array().map(Vec::as_slice).unwrap_or_default() {
        let name = program["program"].as_str().unwrap_or_default();
        all.extend(texts(&program["warnings"]).into_iter().map(|text| format!("{name}: {text}")));
    }
    all
}

/// The command's name.
pub const fn command_name(kind: StepKind) -> &'static str {
    match kind {
        StepKind::Run => "run",
        StepKind::Instructions => "instructions",
        StepKind::Locality => "locality",
        StepKind::Lifetimes => "lifetimes",
        StepKind::Delay => "delay",
        StepKind::Frequency => "frequency",
        StepKind::Proximity => "proximity",
        StepKind::Minheap => "minheap",
    }
}

/// Deserialises the fields that are read.
fn shaped<T: DeserializeOwned>(kind: StepKind, json: &serde_json::Value) -> Result<T, ReadError> {
    T::deserialize(json)
        .map_err(|error| ReadError::Shape { kind: command_name(kind), detail: error.to_string() })
}

/// Writes the cells of one program under one manager.
struct CellWriter<'a> {
    step: &'a str,
    program: &'a str,
    manager: &'a str,
    cells: &'a mut Vec<Cell>,
}

impl CellWriter<'_> {
    fn put(&mut self, metric: &str, at: Option<f64>, value: Value) {
        self.cells.push(Cell {
            step: self.step.into(),
            program: self.program.into(),
            manager: self.manager.into(),
            metric: metric.into(),
            at,
            value,
        });
    }

    /// A count that is the same on each run, where there is one.
    fn exact(&mut self, metric: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.put(metric, None, Value::Exact(value));
        }
    }

    /// An exact value of a metric at one of many points.
    fn exact_at(&mut self, metric: &str, at: f64, value: f64) {
        self.put(metric, Some(at), Value::Exact(value));
    }
}
