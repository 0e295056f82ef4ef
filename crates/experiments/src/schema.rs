//! The JSON that commands write: an envelope of schema, version and figures, and the JSON Schema of each command.
//!
//! A command's figures are one type for who writes and who reads. Its schema is generated from that type. `make reference` writes it,
//! and every JSON file that a test makes is validated against it.

use heaptoll_report::json;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json as value};

use crate::artifact;
use crate::artifact::Description;
use crate::choose;
use crate::cluster;
use crate::cluster::Plan;
use crate::delay;
use crate::diff;
use crate::drag;
use crate::frequency;
use crate::instructions;
use crate::ledger;
use crate::locality;
use crate::managers;
use crate::minheap;
use crate::oracle;
use crate::programs;
use crate::proximity;
use crate::reclamation;
use crate::replay;
use heaptoll_command::labelled::{self, Envelope, Unreadable};
use heaptoll_runs::sampled;
use heaptoll_trace_reports::bound;
use heaptoll_trace_reports::conservatism;
use heaptoll_trace_reports::leaks;
use heaptoll_trace_reports::lifetimes;
use heaptoll_trace_reports::stat;
use heaptoll_trace_reports::tailor;

/// The schema of one command's JSON.
#[derive(Debug, Clone, Copy)]
pub struct CommandSchema {
    /// Command and version: `heaptoll-stat/1`.
    pub tag: &'static str,
    /// Whether files have the parts of the tag as `format` and `version`, and not as `schema`.
    is_format: bool,
    generate: fn() -> Schema,
    read_back: fn(&str, &'static str) -> Result<Value, Unreadable>,
}

/// The schemas of what this library's experiments write; `heaptoll_papers::schema::all` has those of studies besides.
pub const ALL: &[CommandSchema] = &[
    CommandSchema::of::<bound::Figures>(bound::SCHEMA),
    CommandSchema::of::<choose::Figures>(choose::SCHEMA),
    CommandSchema::of::<conservatism::Figures>(conservatism::SCHEMA),
    CommandSchema::of::<delay::Figures>(delay::SCHEMA),
    CommandSchema::of::<diff::Figures>(diff::SCHEMA),
    CommandSchema::of::<diff::counts::Figures>(diff::counts::SCHEMA),
    CommandSchema::of::<diff::experiments::Figures>(diff::experiments::SCHEMA),
    CommandSchema::of::<diff::facts::Figures>(diff::facts::SCHEMA),
    CommandSchema::of::<drag::Figures>(drag::SCHEMA),
    CommandSchema::of::<frequency::Figures>(frequency::SCHEMA),
    CommandSchema::of::<heaptoll_gate::figures::Figures>(heaptoll_gate::SCHEMA),
    CommandSchema::of::<stat::graph::Figures>(stat::graph::SCHEMA),
    CommandSchema::of::<instructions::Figures>(instructions::SCHEMA),
    CommandSchema::of::<leaks::Figures>(leaks::SCHEMA),
    CommandSchema::of::<ledger::Figures>(ledger::SCHEMA),
    CommandSchema::of::<lifetimes::Figures>(lifetimes::SCHEMA),
    CommandSchema::of::<locality::Figures>(locality::SCHEMA),
    CommandSchema::of::<managers::Figures>(managers::SCHEMA),
    CommandSchema::of::<minheap::Figures>(minheap::SCHEMA),
    CommandSchema::of::<oracle::Figures>(oracle::SCHEMA),
    CommandSchema::of::<programs::Figures>(programs::SCHEMA),
    CommandSchema::of::<proximity::Figures>(proximity::SCHEMA),
    CommandSchema::of::<reclamation::Figures>(reclamation::SCHEMA),
    CommandSchema::of::<replay::Figures>(replay::SCHEMA),
    CommandSchema::of::<replay::graph::Figures>(replay::graph::SCHEMA),
    CommandSchema::of::<sampled::Figures>(sampled::SCHEMA),
    CommandSchema::of::<stat::Figures>(stat::SCHEMA),
    CommandSchema::of::<tailor::Figures>(tailor::SCHEMA),
    CommandSchema::of_file::<json::ExperimentFile>(json::SCHEMA),
    CommandSchema::of_format::<Description>(artifact::TAG),
    CommandSchema::of_format::<Plan>(cluster::TAG),
];

impl CommandSchema {
    /// That of figures in an [`Envelope`].
    pub const fn of<F: Serialize + DeserializeOwned + JsonSchema>(tag: &'static str) -> CommandSchema {
        CommandSchema {
            tag,
            is_format: false,
            generate: generate::<Envelope<F>>,
            read_back: |text, tag| {
                let figures: F = labelled::read(text, tag)?;
                // By text: a value has no integers of 128 bits.
                let again = serde_json::to_string(&Envelope::new(tag, figures));
                let value = again.and_then(|again| serde_json::from_str(&again));
                value.map_err(|error| of_shape(tag, error))
            },
        }
    }

    /// That of a file with a `schema` of its own.
    pub const fn of_file<F: Serialize + DeserializeOwned + JsonSchema>(tag: &'static str) -> CommandSchema {
        CommandSchema {
            tag,
            is_format: false,
            generate: generate::<F>,
            read_back: |text, tag| {
                serde_json::to_value(labelled::read::<F>(text, tag)?).map_err(|error| of_shape(tag, error))
            },
        }
    }

    /// That of a file whose `format` and `version` are the two parts of the tag.
    pub const fn of_format<F: Serialize + DeserializeOwned + JsonSchema>(tag: &'static str) -> CommandSchema {
        CommandSchema {
            tag,
            is_format: true,
            generate: generate::<F>,
            read_back: |text, tag| {
                let read = serde_json::from_str::<F>(text).and_then(serde_json::to_value);
                read.map_err(|error| of_shape(tag, error))
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
    /// It is no JSON, or not of this command.
    pub fn read_back(&self, text: &str) -> Result<Value, Unreadable> {
        (self.read_back)(text, self.tag)
    }
}

/// Text that has the schema and not its fields.
fn of_shape(schema: &'static str, error: serde_json::Error) -> Unreadable {
    Unreadable::Shape { schema, error, writer: String::new() }
}

fn generate<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_names_its_version() {
        let stat = ALL.iter().find(|known| known.tag == stat::SCHEMA).expect("stat").schema();
        assert_eq!(stat["properties"]["schema"]["const"], "heaptoll-stat/1");
        assert!(stat["required"].as_array().is_some_and(|fields| fields.contains(&value!("subject"))));
    }

    #[test]
    fn a_file_with_a_format_of_its_own_has_its_two_parts() {
        for (tag, format, version) in [
            (artifact::TAG, artifact::format::FORMAT, artifact::format::VERSION),
            (cluster::TAG, cluster::format::FORMAT, cluster::format::VERSION),
        ] {
            let schema = ALL.iter().find(|known| known.tag == tag).expect("is there").schema();
            assert_eq!(schema["properties"]["format"]["const"], format);
            assert_eq!(schema["properties"]["version"]["const"], version);
            assert_eq!(schema["properties"].get("schema"), None);
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same_figures() {
        let figures =
            stat::Figures { objects: u64::MAX, average_size_bytes: Some(0.1), ..Default::default() };
        let text = serde_json::to_string(&Envelope::new(stat::SCHEMA, &figures)).expect("JSON");
        assert_eq!(labelled::read::<stat::Figures>(&text, stat::SCHEMA).expect("figures"), figures);
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
        assert_eq!(labelled::read::<drag::Figures>(&text, drag::SCHEMA).expect("figures"), figures);
    }
}
