//! What a study runs, as a value: kept in its folder, and taken from there when the study goes on.

use std::path::PathBuf;

use heaptoll_command::clock;
use heaptoll_command::labelled::Labelled;
use serde::{Deserialize, Serialize};

use crate::budget::Length;
use crate::definition::Study;
use heaptoll_command::version;

schemars::labelled!(Plan, "heaptoll-study-kept/1");

/// The studies and how much of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name and version of this format.
    pub schema: String,
    /// Version of heaptoll that began it.
    pub heaptoll: String,
    /// When, seconds since 1970.
    pub begun_unix_s: f64,
    /// The command line that began it, for the page; what it requested is in the other fields.
    pub command: Vec<String>,
    /// The studies as they were.
    pub studies: Vec<Study>,
    /// Of their steps these; all when empty.
    pub only: Vec<String>,
    /// The shortest form.
    pub quick: bool,
    /// Seconds for all; none for the whole.
    pub budget_s: Option<f64>,
    /// Folder with the user's own catalog entries.
    pub catalog: Option<PathBuf>,
    /// Seed of random choices.
    pub seed: u64,
}

impl Plan {
    /// The whole of these studies, begun now.
    pub fn of(studies: Vec<Study>) -> Plan {
        let begun = clock::now();
        Plan {
            schema: Plan::SCHEMA.into(),
            heaptoll: version::OURS.into(),
            begun_unix_s: begun.as_secs_f64(),
            command: vec![],
            studies,
            only: vec![],
            quick: false,
            budget_s: None,
            catalog: None,
            seed: begun.as_secs() % 1_000_000,
        }
    }

    /// How much of its steps is made.
    pub fn length(&self) -> Length {
        match (self.quick, self.budget_s) {
            (true, _) => Length::Quick,
            (false, Some(seconds)) => Length::Seconds(seconds),
            (false, None) => Length::Whole,
        }
    }
}
