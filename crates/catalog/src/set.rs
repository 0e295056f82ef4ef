//! A named set of programs: those over which a mean is to be formed, chosen before they were measured.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::CatalogError;

/// The folder of sets in a folder of entries.
pub(crate) const FOLDER: &str = "sets";

/// A set, as it stands in `sets/NAME.toml` of a folder of entries.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// By which it is selected.
    pub name: String,
    /// One line on what it stands for.
    pub about: String,
    /// By what its programs were chosen, a sentence each.
    pub criteria: Vec<String>,
    /// Its programs, in the order in which they run.
    pub programs: Vec<String>,
    /// Programs that take the places of those which cannot run, the first one first.
    #[serde(default)]
    pub reserves: Vec<String>,
    #[serde(skip)]
    file: PathBuf,
}

impl Set {
    /// Reads a set's file. Its programs need not be known yet.
    pub(crate) fn read(file: &Path) -> Result<Set, CatalogError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| CatalogError::Read { path: file.to_owned(), source })?;
        let set: Set = toml::from_str(&text)
            .map_err(|error| CatalogError::Syntax { file: file.to_owned(), problem: error.to_string() })?;
        if set.programs.is_empty() {
            return Err(CatalogError::field(file, "programs", "a set has programs", "name one or more"));
        }
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = set.programs.iter().chain(&set.reserves).find(|name| !seen.insert(name.as_str()))
        {
            let problem = format!("`{twice}` is named twice");
            return Err(CatalogError::field(file, "programs", problem, "name it once"));
        }
        Ok(Set { file: file.to_owned(), ..set })
    }

    /// Where it is described.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}
