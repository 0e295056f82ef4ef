//! Reads a command's JSON into cells of a study's figures: one reader a kind of step.
//!
//! Readers use the fields that the JSON's page in `docs/` describes, as a user's script would. A figure that a run does
//! not have (a manager that reports nothing, a run that failed) is no error, and gives no cell; a file that lacks a
//! field which it always has is one.

use crate::definition::{Step, StepKind};

use self::json::ReadError;
use self::reading::Reading;

mod cell_writer;
mod instructions;
pub mod json;
pub mod lifetimes;
mod locality;
pub mod reading;
mod run;
mod sareen;
#[cfg(test)]
mod testing;

/// Reads what a command wrote of a step.
///
/// # Errors
/// It is not what the command writes.
pub fn read(kind: StepKind, json: &serde_json::Value, step: &Step) -> Result<Reading, ReadError> {
    match kind {
        StepKind::Run => run::read(json, step),
        StepKind::Instructions => instructions::read(json, step),
        StepKind::Locality => locality::read(json, step),
        // Its JSON does not have the program: `lifetimes::read` takes both.
        StepKind::Lifetimes => Ok(Reading::default()),
        StepKind::Delay | StepKind::Frequency | StepKind::Proximity | StepKind::Minheap => {
            sareen::read(kind, json, step)
        }
    }
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
