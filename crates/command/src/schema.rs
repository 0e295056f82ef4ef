//! The JSON Schema of each file that a command writes, generated from the type of its figures.
//!
//! A command's figures are one type for who writes and who reads. `make reference` writes its schema, and every JSON file that a
//! test makes is validated against it.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json as value};

use crate::labelled::{self, Envelope, Labelled, Unreadable};

/// The schema of one command's JSON.
#[derive(Debug, Clone, Copy)]
pub struct CommandSchema {
    /// Command and version: `heaptoll-stat/1`.
    pub tag: &'static str,
    /// Whether files have the parts of the tag as `format` and `version`, and not as `schema`.
    is_format: bool,
    generate: fn() -> Schema,
    read_back: fn(&str) -> Result<Value, Unreadable>,
}

impl CommandSchema {
    /// That of figures in an [`Envelope`].
    pub const fn of<F: Labelled + JsonSchema>() -> CommandSchema {
        CommandSchema {
            tag: F::SCHEMA,
            is_format: false,
            generate: generate::<Envelope<F>>,
            read_back: |text| {
                let figures: F = labelled::read(text)?;
                // By text: a value has no integers of 128 bits.
                let again = serde_json::to_string(&Envelope::new(&figures));
                let value = again.and_then(|again| serde_json::from_str(&again));
                value.map_err(of_shape::<F>)
            },
        }
    }

    /// That of a file with a `schema` of its own.
    pub const fn of_file<F: Labelled + JsonSchema>() -> CommandSchema {
        CommandSchema {
            tag: F::SCHEMA,
            is_format: false,
            generate: generate::<F>,
            read_back: |text| serde_json::to_value(labelled::read::<F>(text)?).map_err(of_shape::<F>),
        }
    }

    /// That of a file whose `format` and `version` are the two parts of the tag.
    pub const fn of_format<F: Labelled + JsonSchema>() -> CommandSchema {
        CommandSchema {
            tag: F::SCHEMA,
            is_format: true,
            generate: generate::<F>,
            read_back: |text| {
                let read = serde_json::from_str::<F>(text).and_then(serde_json::to_value);
                read.map_err(of_shape::<F>)
            },
        }
    }

    /// Name of the command, or of the file: `experiment`.
    pub fn command(&self) -> &'static str {
        let name =
            self.tag.strip_prefix("heaptoll-").or(self.tag.strip_prefix("heaptoll.")).unwrap_or(self.tag);
        name.split_once('/').map_or(name, |(name, _)| name)
    }

    /// The JSON Schema (2020-12) of what the command writes.
    pub fn schema(&self) -> Value {
        let mut schema = (self.generate)().to_value();
        schema["title"] = value!(self.tag);
        match self.tag.rsplit_once('/') {
            Some((format, version)) if self.is_format => {
                schema["properties"]["format"]["const"] = value!(format);
                schema["properties"]["version"]["const"] = value!(version.parse::<u64>().unwrap_or_default());
            }
            _ => schema["properties"]["schema"]["const"] = value!(self.tag),
        }
        schema
    }

    /// A file of the command by this version, read as its figures and written again: equal to what was read.
    ///
    /// # Errors
    /// It is not JSON, or another command wrote it.
    pub fn read_back(&self, text: &str) -> Result<Value, Unreadable> {
        (self.read_back)(text)
    }
}

/// Text that has the schema and not its fields.
fn of_shape<F: Labelled>(error: serde_json::Error) -> Unreadable {
    Unreadable::Shape { schema: F::SCHEMA, error, writer: String::new() }
}

fn generate<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
