//! What a file holds of an experiment besides rows: values as JSON under a key.

use rusqlite::{OptionalExtension, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::error::StoreError;
use super::file::ExperimentFile;
use super::layout::WRITTEN_BY;
use crate::experiment::{Experiment, Protocol};

/// Writes everything but the rows, all of it or nothing.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(file: &ExperimentFile, experiment: &Experiment) -> Result<(), StoreError> {
    let error = |cause| file.error(cause);
    let transaction = file.connection.unchecked_transaction().map_err(error)?;
    put(file, WRITTEN_BY, &env!("CARGO_PKG_VERSION"))?;
    put(file, "heaptoll_version", &experiment.heaptoll_version)?;
    put(file, "created_unix_s", &experiment.created_unix_s)?;
    put(file, "settings", &experiment.settings)?;
    put(file, "machine", &experiment.machine)?;
    put(file, "baseline", &experiment.baseline)?;
    put(file, "programs", &experiment.programs)?;
    put(file, "stacks", &experiment.stacks)?;
    put(file, "refused", &experiment.refused)?;
    put(file, "exact_notes", &experiment.exact_notes)?;
    put(file, "own_cost", &experiment.own_cost)?;
    put(file, "complete", &experiment.complete)?;
    transaction.commit().map_err(error)
}

/// Reads an experiment without its rows.
///
/// # Errors
/// A value is missing or does not parse.
pub(super) fn read(file: &ExperimentFile) -> Result<Experiment, StoreError> {
    Ok(Experiment {
        heaptoll_version: get(file, "heaptoll_version")?,
        created_unix_s: get(file, "created_unix_s")?,
        settings: settings(file)?,
        machine: get(file, "machine")?,
        baseline: get(file, "baseline")?,
        programs: get(file, "programs")?,
        stacks: get(file, "stacks")?,
        refused: get(file, "refused")?,
        exact_notes: find(file, "exact_notes")?.unwrap_or_default(),
        own_cost: get(file, "own_cost")?,
        complete: get(file, "complete")?,
        observations: Vec::new(),
        tracks: Vec::new(),
    })
}

/// The settings. One that is not known may change what the rows mean, and comes from a later version.
fn settings(file: &ExperimentFile) -> Result<Protocol, StoreError> {
    let stored: Map<String, Value> = get(file, "settings")?;
    let known = serde_json::to_value(Protocol::default()).unwrap_or_default();
    if let Some(setting) = stored.keys().find(|name| known.get(name).is_none()) {
        let (path, setting) = (file.path.clone(), setting.clone());
        return Err(StoreError::UnknownSetting { path, setting, needed: file.written_by() });
    }
    get(file, "settings")
}

fn put<T: Serialize>(file: &ExperimentFile, key: &str, value: &T) -> Result<(), StoreError> {
    let text = file.json(value)?;
    file.connection
        .execute("INSERT OR REPLACE INTO description VALUES (?1, ?2)", params![key, text])
        .map(drop)
        .map_err(|cause| file.error(cause))
}

fn get<T: DeserializeOwned>(file: &ExperimentFile, key: &str) -> Result<T, StoreError> {
    find(file, key)?.ok_or_else(|| file.damaged(&format!("no `{key}`")))
}

/// What an older file may lack.
fn find<T: DeserializeOwned>(file: &ExperimentFile, key: &str) -> Result<Option<T>, StoreError> {
    let text: Option<String> = file
        .connection
        .query_row("SELECT value FROM description WHERE key = ?1", [key], |row| row.get(0))
        .optional()
        .map_err(|cause| file.error(cause))?;
    text.map(|text| serde_json::from_str(&text))
        .transpose()
        .map_err(|error| file.damaged(&format!("`{key}`: {error}")))
}
