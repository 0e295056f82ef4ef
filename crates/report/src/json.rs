//! The experiment with its comparison as one JSON document, documented in `docs/reference/json-schema.md`.

use std::borrow::Cow;
use std::io::{BufReader, BufWriter, Read, Write};

use heaptoll_experiment::comparison::Comparison;
use heaptoll_experiment::experiment::Experiment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ReportError;

/// The schema this version writes and reads.
pub const SCHEMA: &str = "heaptoll.experiment/1";

/// The file: the experiment with its comparison. One type for who writes, who borrows them, and who reads.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct ExperimentFile<'a> {
    /// Name of this format and its version.
    pub schema: Cow<'a, str>,
    /// What was run: settings, machine, stacks and every observation.
    pub experiment: Cow<'a, Experiment>,
    /// What the observations come to.
    pub comparison: Cow<'a, Comparison>,
}

/// Only this is read before the schema is known.
#[derive(Deserialize)]
struct Label {
    schema: String,
}

/// Writes one JSON document, indented, with a line end after it.
///
/// # Errors
/// `Encode` when a figure is not finite: JSON has no such number, and a file that cannot be read back is worth
/// nothing. Nothing is written then.
pub fn write(experiment: &Experiment, comparison: &Comparison, out: impl Write) -> Result<(), ReportError> {
    let encode = |detail: String| ReportError::Encode { form: "JSON", detail };
    let text = serde_json::to_string_pretty(&ExperimentFile {
        schema: SCHEMA.into(),
        experiment: Cow::Borrowed(experiment),
        comparison: Cow::Borrowed(comparison),
    })
    .map_err(|error| encode(error.to_string()))?;
    // serde_json turns NaN and infinities into null silently; reading it back finds them.
    serde_json::from_str::<ExperimentFile>(&text).map_err(|error| {
        let line = text.lines().nth(error.line().saturating_sub(1)).unwrap_or_default().trim();
        encode(format!("a figure is not a finite number, `{line}` ({error})"))
    })?;
    let mut out = BufWriter::new(out);
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .map_err(|source| ReportError::Stream { form: "JSON", source })
}

/// Reads what [`write`] wrote; fields that a later version added are skipped.
///
/// # Errors
/// `NotOurs` when it is not such a document, `Schema` when it is one of another version.
pub fn read(input: impl Read) -> Result<(Experiment, Comparison), ReportError> {
    let not_ours = |detail: String| ReportError::NotOurs { detail };
    let mut text = String::new();
    BufReader::new(input).read_to_string(&mut text).map_err(|error| not_ours(error.to_string()))?;
    let label: Label = serde_json::from_str(&text).map_err(|error| not_ours(error.to_string()))?;
    if label.schema != SCHEMA {
        return Err(ReportError::Schema { found: crate::format::printable(&label.schema), known: SCHEMA });
    }
    let file: ExperimentFile = serde_json::from_str(&text).map_err(|error| not_ours(error.to_string()))?;
    Ok((file.experiment.into_owned(), file.comparison.into_owned()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::testing::{Shape, experiment};

    /// Maps whose keys are data; their one documented path ends in `.*`, except metrics, which are named.
    const MAPS: [&str; 4] = ["load_figures", "figures", "enough", "turns"];

    fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(fields) => {
                let is_map = MAPS.iter().any(|map| path.ends_with(map));
                for (key, inner) in fields {
                    let path = match (path, is_map) {
                        ("", _) => key.clone(),
                        (_, true) => format!("{path}.*"),
                        _ => format!("{path}.{key}"),
                    };
                    found.insert(path.clone());
                    paths(inner, &path, found);
                }
            }
            Value::Array(items) => {
                for item in items {
                    paths(item, &format!("{path}[]"), found);
                }
            }
            _ => {}
        }
    }

    fn every_path() -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for shape in Shape::ALL {
            let (experiment, comparison) = experiment(shape);
            let mut bytes = Vec::new();
            write(&experiment, &comparison, &mut bytes).unwrap();
            paths(&serde_json::from_slice(&bytes).unwrap(), "", &mut found);
        }
        found
    }

    #[test]
    fn reads_back_what_was_written() {
        for shape in Shape::ALL {
            let written = experiment(shape);
            let mut bytes = Vec::new();
            write(&written.0, &written.1, &mut bytes).unwrap();
            assert_eq!(read(&bytes[..]).unwrap(), written);
        }
    }

    #[test]
    fn the_document_describes_every_field_and_no_other() {
        let documented: BTreeSet<String> = include_str!("../../../docs/reference/json-schema.md")
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned))
            .collect();
        let written = every_path();
        assert!(written.len() > 100, "{}", written.len());
        let missing: Vec<_> = written.difference(&documented).collect();
        assert!(missing.is_empty(), "not in docs/reference/json-schema.md: {missing:#?}");
        let stale: Vec<_> = documented.difference(&written).collect();
        assert!(stale.is_empty(), "in docs/reference/json-schema.md and never written: {stale:#?}");
    }

    #[test]
    fn a_figure_that_json_cannot_hold_is_named() {
        let (experiment, mut comparison) = experiment(Shape::Single);
        comparison.tables[0].rows[0].minor_faults = f64::NAN;
        let mut bytes = Vec::new();
        let error = write(&experiment, &comparison, &mut bytes).unwrap_err().to_string();
        assert!(error.contains("minor_faults") && bytes.is_empty(), "{error}");
    }

    #[test]
    fn foreign_and_later_files_are_refused_with_words() {
        for foreign in
            ["", "{}", "[1,2]", "{\"schema\": 3}", "\u{0}\u{1}", "{\"schema\": \"heaptoll.experiment/1\"}"]
        {
            assert!(matches!(read(foreign.as_bytes()), Err(ReportError::NotOurs { .. })), "{foreign}");
        }
        assert!(matches!(read(&b"\xff\xfe"[..]), Err(ReportError::NotOurs { .. })));
        let later = read(&br#"{"schema": "heaptoll.experiment/2"}"#[..]).unwrap_err();
        assert!(later.to_string().contains("heaptoll.experiment/2"), "{later}");
    }

    #[test]
    fn fields_of_later_versions_are_passed_over() {
        let written = experiment(Shape::Single);
        let mut bytes = Vec::new();
        write(&written.0, &written.1, &mut bytes).unwrap();
        let mut value: Value = serde_json::from_slice(&bytes).unwrap();
        value["experiment"]["machine"]["moon"] = Value::from("full");
        value["tides"] = Value::from(3);
        assert_eq!(read(value.to_string().as_bytes()).unwrap(), written);
    }
}
