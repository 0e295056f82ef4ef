//! The JSON that commands write: an envelope of schema, version and figures, and the JSON Schema of each command.
//!
//! A command's figures are one type for who writes and who reads. Its schema is generated from that type; the file in
//! `docs/reference/schemas/` is compared with it by a test, and every JSON file that a test makes is validated against
//! it.

use heaptoll_report::json;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    bound, delay, drag, frequency, instructions, ledger, lifetimes, locality, minheap, proximity, replay,
    stat,
};

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

impl<F> Envelope<F> {
    /// Figures as this version of heaptoll writes them.
    pub fn new(schema: &str, figures: F) -> Envelope<F> {
        Envelope { schema: schema.to_owned(), heaptoll: env!("CARGO_PKG_VERSION").to_owned(), figures }
    }
}

impl<F: DeserializeOwned> Envelope<F> {
    /// Reads a file. Its label and its figures are read one after the other, since a flattened field cannot have
    /// integers of 128 bits, as space-time has.
    ///
    /// # Errors
    /// It is no JSON, or not of this command.
    pub fn read(text: &str) -> serde_json::Result<Envelope<F>> {
        #[derive(Deserialize)]
        struct Label {
            schema: String,
            heaptoll: String,
        }
        let Label { schema, heaptoll } = serde_json::from_str(text)?;
        Ok(Envelope { schema, heaptoll, figures: serde_json::from_str(text)? })
    }
}

/// The schema of one command's JSON.
#[derive(Debug, Clone, Copy)]
pub struct CommandSchema {
    /// Command and version: `heaptoll-stat/1`.
    pub tag: &'static str,
    generate: fn() -> Schema,
    read_back: fn(&str) -> serde_json::Result<Value>,
}

/// All commands whose figures have a schema.
pub const ALL: &[CommandSchema] = &[
    CommandSchema::of::<bound::Figures>(bound::SCHEMA),
    CommandSchema::of::<delay::Figures>(delay::SCHEMA),
    CommandSchema::of::<drag::Figures>(drag::SCHEMA),
    CommandSchema::of_file::<json::File>(json::SCHEMA),
    CommandSchema::of::<frequency::Figures>(frequency::SCHEMA),
    CommandSchema::of::<instructions::Figures>(instructions::SCHEMA),
    CommandSchema::of::<ledger::Figures>(ledger::SCHEMA),
    CommandSchema::of::<lifetimes::Figures>(lifetimes::SCHEMA),
    CommandSchema::of::<locality::Figures>(locality::SCHEMA),
    CommandSchema::of::<minheap::Figures>(minheap::SCHEMA),
    CommandSchema::of::<proximity::Figures>(proximity::SCHEMA),
    CommandSchema::of::<replay::Figures>(replay::SCHEMA),
    CommandSchema::of::<stat::Figures>(stat::SCHEMA),
];

impl CommandSchema {
    const fn of<F: Serialize + DeserializeOwned + JsonSchema>(tag: &'static str) -> CommandSchema {
        CommandSchema {
            tag,
            generate: generate::<Envelope<F>>,
            read_back: |text| written_again(&Envelope::<F>::read(text)?),
        }
    }

    /// Of a file that has no envelope.
    const fn of_file<F: Serialize + DeserializeOwned + JsonSchema>(tag: &'static str) -> CommandSchema {
        CommandSchema {
            tag,
            generate: generate::<F>,
            read_back: |text| written_again(&serde_json::from_str::<F>(text)?),
        }
    }

    /// Name of the command; `experiment` of those that measure one.
    pub fn command(&self) -> &'static str {
        let name = self.tag.split_once(['-', '.']).map_or(self.tag, |(_, name)| name);
        name.split_once('/').map_or(name, |(name, _)| name)
    }

    /// The JSON Schema (2020-12) of what the command writes.
    pub fn schema(&self) -> Value {
        let mut schema = (self.generate)().to_value();
        schema["title"] = Value::from(self.tag);
        schema["properties"]["schema"]["const"] = Value::from(self.tag);
        schema
    }

    /// A file of the command, read as its figures and written again: equal to what was read.
    ///
    /// # Errors
    /// It is no JSON, or not of this command.
    pub fn read_back(&self, text: &str) -> serde_json::Result<Value> {
        (self.read_back)(text)
    }
}

fn generate<F: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<F>()
}

/// By text: a value has no integers of 128 bits.
fn written_again(file: &impl Serialize) -> serde_json::Result<Value> {
    serde_json::from_str(&serde_json::to_string(file)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    use super::*;

    fn folder() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas")
    }

    #[test]
    fn the_schemas_of_the_documents_are_those_of_the_types() {
        for command in ALL {
            let path = folder().join(format!("{}.schema.json", command.command()));
            let schema = command.schema();
            if std::env::var_os("WRITE_DOCS").is_some() {
                let text = serde_json::to_string_pretty(&schema).expect("JSON");
                std::fs::write(&path, text + "\n").expect("writes");
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let kept: Value = serde_json::from_str(&text).unwrap_or_default();
            assert!(kept == schema, "{}: run this test with WRITE_DOCS=1", path.display());
        }
        let names = |name: &CommandSchema| format!("{}.schema.json", name.command());
        let expected: BTreeSet<String> = ALL.iter().map(names).collect();
        let found = std::fs::read_dir(folder()).expect("the folder").flatten();
        let found: BTreeSet<String> =
            found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        assert_eq!(found, expected, "a file of every command that has a schema, and no others");
    }

    #[test]
    fn a_schema_names_its_version() {
        let stat = ALL.iter().find(|known| known.tag == stat::SCHEMA).expect("stat").schema();
        assert_eq!(stat["properties"]["schema"]["const"], "heaptoll-stat/1");
        assert!(stat["required"].as_array().is_some_and(|fields| fields.contains(&Value::from("subject"))));
    }

    #[test]
    fn what_is_written_is_read_as_the_same_figures() {
        let figures =
            stat::Figures { objects: u64::MAX, average_size_bytes: Some(0.1), ..Default::default() };
        let text = serde_json::to_string(&Envelope::new(stat::SCHEMA, &figures)).expect("JSON");
        let read: Envelope<stat::Figures> = Envelope::read(&text).expect("figures");
        assert_eq!((read.schema.as_str(), read.figures), (stat::SCHEMA, figures));
    }

    #[test]
    fn space_time_of_more_than_64_bits_is_read_back_exactly() {
        let space = heaptoll_drag::space::Space { drag: u128::from(u64::MAX) * 1000, ..Default::default() };
        let totals = drag::ImageTotals { space_bytes: space, ..Default::default() };
        let row = drag::Row { all_images: Some(totals), ..Default::default() };
        let program = drag::Program { managers: vec![row], ..Default::default() };
        let clock = heaptoll_drag::Clock::Bytes;
        let figures = drag::Figures { complete: true, pinned: true, clock, programs: vec![program] };
        let text = serde_json::to_string(&Envelope::new(drag::SCHEMA, &figures)).expect("JSON");
        assert_eq!(Envelope::<drag::Figures>::read(&text).expect("figures").figures, figures);
    }
}
