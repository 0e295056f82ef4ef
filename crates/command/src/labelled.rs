//! JSON that heaptoll wrote: its first fields are the name and version of its schema, and the version of heaptoll.

use heaptoll_report::format::printable;
use schemars::JsonSchema;
pub use schemars::Labelled;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::version::is_later;

/// A JSON file: its schema, the version of heaptoll that wrote it, and the figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Envelope<F> {
    /// Command and version of its schema: `heaptoll-stat/1`.
    pub schema: String,
    /// Version of heaptoll that wrote the file.
    pub heaptoll: String,
    /// The command's figures.
    #[serde(flatten)]
    pub figures: F,
}

impl<'a, F: Labelled> Envelope<&'a F> {
    /// Figures as this version of heaptoll writes them.
    pub fn new(figures: &'a F) -> Envelope<&'a F> {
        Envelope { schema: F::SCHEMA.to_owned(), heaptoll: env!("CARGO_PKG_VERSION").to_owned(), figures }
    }
}

/// JSON that is not what it should be.
#[derive(Debug, Error)]
pub enum Unreadable {
    /// It is no JSON.
    #[error("it is not JSON: {0}")]
    NoJson(serde_json::Error),
    /// It has no schema: something else wrote it.
    #[error("it has no schema, but {wanted} is needed")]
    NoSchema {
        /// What is read.
        wanted: &'static str,
    },
    /// It is something else that heaptoll wrote, or of another version's format.
    #[error("its schema is {found}, but {wanted} is needed{}", needs(.writer))]
    OtherSchema {
        /// What it is.
        found: String,
        /// What is read.
        wanted: &'static str,
        /// Version of heaptoll that wrote it; empty when unknown.
        writer: String,
    },
    /// A field is missing, or of another type.
    #[error("it does not match {schema}: {error}{}", needs(.writer))]
    Shape {
        /// What it is.
        schema: &'static str,
        /// What is missing or of another type.
        error: serde_json::Error,
        /// Version of heaptoll that wrote it; empty when unknown.
        writer: String,
    },
}

/// Which version is needed, where a later one wrote it.
fn needs(writer: &str) -> String {
    if is_later(writer) {
        format!("; heaptoll {} wrote it: read it with that version or a later one", printable(writer))
    } else {
        String::new()
    }
}

/// Only these are read before the schema is known; as fields of a flattened struct, figures could have no integers of
/// 128 bits, as space-time has.
#[derive(Deserialize)]
struct Label {
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    heaptoll: Option<String>,
}

/// The schema that a text names.
pub fn schema(text: &str) -> Option<String> {
    serde_json::from_str::<Label>(text).ok()?.schema
}

/// Reads what was written with the type's schema; fields that a later version added are skipped.
///
/// # Errors
/// It is not JSON, has another schema, or lacks a field.
pub fn read<T: Labelled>(text: &str) -> Result<T, Unreadable> {
    let schema = T::SCHEMA;
    let label: Label = serde_json::from_str(text).map_err(Unreadable::NoJson)?;
    let writer = label.heaptoll.unwrap_or_default();
    match label.schema {
        None => Err(Unreadable::NoSchema { wanted: schema }),
        Some(found) if found != schema => {
            Err(Unreadable::OtherSchema { found: printable(&found), wanted: schema, writer })
        }
        Some(_) => serde_json::from_str(text).map_err(|error| Unreadable::Shape { schema, error, writer }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    struct Figures {
        objects: u64,
    }

    schemars::labelled!(Figures, "heaptoll-made/1");

    fn refused(text: &str) -> String {
        read::<Figures>(text).expect_err("it is refused").to_string()
    }

    #[test]
    fn fields_of_a_later_minor_version_are_skipped() {
        let text =
            r#"{"schema": "heaptoll-made/1", "heaptoll": "999.0.0", "objects": 7, "new": {"field": []}}"#;
        assert_eq!(read::<Figures>(text).expect("it is read").objects, 7);
    }

    #[test]
    fn another_version_is_refused_by_name_and_a_later_one_with_what_it_needs() {
        assert!(refused("no").contains("not JSON") && refused("{}").contains("it has no schema"));
        let earlier = refused(r#"{"schema": "heaptoll-made/0", "heaptoll": "0.0.1"}"#);
        assert_eq!(earlier, "its schema is heaptoll-made/0, but heaptoll-made/1 is needed");
        let later = refused(r#"{"schema": "heaptoll-made/2", "heaptoll": "999.0.0"}"#);
        assert!(later.contains("heaptoll-made/2") && later.contains("heaptoll 999.0.0 wrote it"), "{later}");
    }

    #[test]
    fn a_field_that_is_missing_is_named() {
        let missing = refused(r#"{"schema": "heaptoll-made/1"}"#);
        assert!(missing.contains("objects") && missing.contains("heaptoll-made/1"), "{missing}");
    }
}
