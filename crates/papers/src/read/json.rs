//! The JSON that a command wrote, as the fields that a reader uses.

use crate::definition::StepKind;
use serde::de::DeserializeOwned;
use thiserror::Error;

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

/// Deserialises the fields that are read.
///
/// # Errors
/// A field is missing, or of another type.
pub fn shaped<T: DeserializeOwned>(kind: StepKind, json: &serde_json::Value) -> Result<T, ReadError> {
    T::deserialize(json).map_err(|error| ReadError::Shape { kind: kind.command(), detail: error.to_string() })
}
