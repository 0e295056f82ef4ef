//! The experiment with its comparison as one JSON document: `docs/reference/json-schema.md`.

use std::io::{BufWriter, Write};

use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ReportError;

/// The schema this version writes and reads.
pub const SCHEMA: &str = "heaptoll.experiment/1";

/// What such a file holds, for who writes and who reads it. It is written of borrowed parts: there may be a million
/// rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentFile<E = Experiment, C = Comparison> {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was requested, where it ran and every row.
    pub experiment: E,
    /// Ratios, intervals and verdicts; what the tables show.
    pub comparison: C,
}

/// Writes one JSON document, indented, with a line end after it.
///
/// # Errors
/// `Encode` when a figure is not finite: JSON has no such number, and a file that cannot be read back is worth
/// nothing. Nothing is written then.
pub fn write(experiment: &Experiment, comparison: &Comparison, out: impl Write) -> Result<(), ReportError> {
    every_figure_is_finite(experiment, comparison)
        .map_err(|detail| ReportError::Encode { form: "JSON", detail })?;
    let mut out = BufWriter::new(out);
    let file = ExperimentFile { schema: SCHEMA.to_owned(), experiment, comparison };
    serde_json::to_writer_pretty(&mut out, &file)
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(|source| ReportError::Stream { form: "JSON", source })
}

/// Part by part: the text of a million rows takes more memory than the rows.
fn every_figure_is_finite(experiment: &Experiment, comparison: &Comparison) -> Result<(), String> {
    // By name, so that no part that is added is forgotten.
    let Experiment {
        created_unix_s,
        settings,
        machine,
        programs,
        stacks,
        observations,
        tracks,
        own_cost,
        heaptoll_version: _,
        baseline: _,
        refused: _,
        exact_notes: _,
        complete: _,
    } = experiment;
    let mut text = Vec::new();
    is_read_back(comparison, &mut text)?;
    is_read_back(created_unix_s, &mut text)?;
    is_read_back(settings, &mut text)?;
    is_read_back(machine, &mut text)?;
    is_read_back(programs, &mut text)?;
    is_read_back(stacks, &mut text)?;
    is_read_back(&own_cost.map(|(s, _)| [s]), &mut text)?;
    tracks.iter().try_for_each(|track| is_read_back(track, &mut text))?;
    observations.iter().try_for_each(|row| is_read_back(row, &mut text))
}

/// `serde_json` turns NaN and infinities into null silently; reading it back finds them. `text` is overwritten.
fn is_read_back<T: Serialize + DeserializeOwned>(part: &T, text: &mut Vec<u8>) -> Result<(), String> {
    text.clear();
    serde_json::to_writer_pretty(&mut *text, part).map_err(|error| error.to_string())?;
    serde_json::from_slice::<T>(text).map(drop).map_err(|error| {
        let lines = String::from_utf8_lossy(text);
        let line = lines.lines().nth(error.line().saturating_sub(1)).unwrap_or_default().trim();
        format!("a figure is not a finite number, `{line}` ({error})")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::testing::{Shape, experiment};

    fn read(text: &[u8]) -> (Experiment, Comparison) {
        let file: ExperimentFile = serde_json::from_slice(text).unwrap();
        (file.experiment, file.comparison)
    }

    #[test]
    fn reads_back_what_was_written() {
        for shape in Shape::ALL {
            let written = experiment(shape);
            let mut bytes = Vec::new();
            write(&written.0, &written.1, &mut bytes).unwrap();
            assert_eq!(read(&bytes), written);
        }
    }

    #[test]
    fn a_figure_that_json_cannot_hold_is_named() {
        let (mut experiment, mut comparison) = experiment(Shape::Single);
        experiment.observations[1].wall_s = f64::INFINITY;
        let refusal = |experiment: &Experiment, comparison: &Comparison| {
            let mut bytes = Vec::new();
            let error = write(experiment, comparison, &mut bytes).unwrap_err().to_string();
            assert!(bytes.is_empty(), "{error}");
            error
        };
        let error = refusal(&experiment, &comparison);
        assert!(error.contains("wall_s"), "{error}");
        comparison.tables[0].rows[0].minor_faults = f64::NAN;
        let error = refusal(&experiment, &comparison);
        assert!(error.contains("minor_faults"), "{error}");
    }

    #[test]
    fn fields_of_later_versions_are_passed_over() {
        let written = experiment(Shape::Single);
        let mut bytes = Vec::new();
        write(&written.0, &written.1, &mut bytes).unwrap();
        let mut value: Value = serde_json::from_slice(&bytes).unwrap();
        value["experiment"]["machine"]["moon"] = Value::from("full");
        value["tides"] = Value::from(3);
        assert_eq!(read(value.to_string().as_bytes()), written);
    }
}
