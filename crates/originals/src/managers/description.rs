//! What is written next to an added manager: its description, which heaptoll reads, and its licence.

use std::collections::BTreeMap;

use serde::Serialize;

use super::recipe::{ManagerRecipe, Variant};
use crate::Refusal;

/// `NAME.toml`.
#[derive(Debug, Serialize)]
pub(super) struct Description {
    name: String,
    version: String,
    /// Repositories and commits.
    origin: String,
    about: String,
    licence: String,
    /// The recipe that `heaptoll managers add` takes.
    recipe: String,
    /// The first line of the compiler's `--version`.
    compiler: String,
    flags: String,
    /// Of the object, in hexadecimal.
    sha256: String,
    environment: BTreeMap<String, String>,
}

impl Description {
    pub(super) fn of(
        recipe: &ManagerRecipe,
        (name, variant): (&str, &Variant),
        (compiler, flags): (String, String),
        sha256: String,
    ) -> Description {
        let table = &recipe.table;
        let origin = |repository: &super::recipe::Repository| {
            let commit = repository.commit.get(..12).unwrap_or(&repository.commit);
            format!("{} {commit}", repository.url.trim_start_matches("https://"))
        };
        Description {
            name: name.to_owned(),
            version: table.version.clone(),
            origin: table.repositories.iter().map(origin).collect::<Vec<_>>().join(", "),
            about: variant.about.clone(),
            licence: table.licence.clone(),
            recipe: table.name.clone(),
            compiler,
            flags,
            sha256,
            environment: variant.environment.clone(),
        }
    }

    /// As TOML.
    pub(super) fn text(&self) -> Result<String, Refusal> {
        toml::to_string(self).map_err(|error| Refusal::System {
            what: "describe it".into(),
            source: std::io::Error::other(error),
        })
    }
}
