//! The index of a corpus, as in its JSON.

use std::path::Path;

use heaptoll_experiment::experiment::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CorpusError, INDEX, SCHEMA};
use crate::artifact::packages::Package;
use crate::cluster::digests::FileDigest;
use heaptoll_command::labelled::{self, Envelope};

/// Everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Unix time at which the folder was begun, seconds.
    pub created_unix_s: f64,
    /// SPDX's identifier of the traces' licence.
    pub license: String,
    /// What the licence covers, and what traces hold.
    pub license_statement: String,
    /// The programs that were recorded, by name.
    pub programs: Vec<Program>,
    /// Those that were requested and are not there.
    pub missing: Vec<Missing>,
}

/// A program that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// Its name in the catalog.
    pub name: String,
    /// What it does.
    pub about: String,
    /// Size of its input, as `--size` names it.
    pub size: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The manager that it ran with.
    pub manager: String,
    /// The manager's version, as far as known.
    pub manager_version: String,
    /// Where it was recorded.
    pub machine: Machine,
    /// Unix time of its recording, seconds.
    pub recorded_unix_s: f64,
    /// Version of heaptoll that recorded it.
    pub recorded_by: String,
    /// One each for its process images, that of the first process first.
    pub traces: Vec<Trace>,
    /// What ran: the program, its libraries, inputs, and what was preloaded.
    pub files: Vec<FileDigest>,
    /// The Debian packages that these are of.
    pub packages: Vec<Package>,
}

/// One trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Its path in the folder.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub sha256: String,
    /// Events in it.
    pub events: u64,
    /// The file that the process image executed.
    pub executable: String,
}

/// A program that was requested and is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Why, and what to do about it.
    pub why: String,
}

impl Figures {
    /// Reads the index of a folder; `None` where there is none.
    ///
    /// # Errors
    /// It cannot be read, or is no index of this version.
    pub fn read(folder: &Path) -> Result<Option<Figures>, CorpusError> {
        let path = folder.join(INDEX);
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let read = labelled::read(&text, SCHEMA);
                read.map(Some).map_err(|error| CorpusError::NoIndex { path, why: error.to_string() })
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(CorpusError::Read { path, cause }),
        }
    }

    /// The index as text.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&Envelope::new(SCHEMA, self)).map(|text| text + "\n")
    }

    /// Events of all programs.
    pub fn events(&self) -> u64 {
        self.traces().map(|trace| trace.events).sum()
    }

    /// Bytes of all traces.
    pub fn bytes(&self) -> u64 {
        self.traces().map(|trace| trace.bytes).sum()
    }

    /// All traces.
    pub fn traces(&self) -> impl Iterator<Item = &Trace> {
        self.programs.iter().flat_map(|program| &program.traces)
    }
}

impl Program {
    /// Events of all its process images.
    pub fn events(&self) -> u64 {
        self.traces.iter().map(|trace| trace.events).sum()
    }

    /// Bytes of all its traces.
    pub fn bytes(&self) -> u64 {
        self.traces.iter().map(|trace| trace.bytes).sum()
    }
}
