//! Texts that belong to an experiment and are no rows: what a gate decides by, and what was counted for it. They lie in
//! the table of the description, under keys that no part of a description has.

use rusqlite::{Connection, OptionalExtension, params};

use super::error::StoreError;
use super::file::ExperimentFile;

/// What their keys begin with.
const PREFIX: &str = "attached:";

/// Keeps a text under a name.
pub(super) fn put(file: &ExperimentFile, name: &str, text: &str) -> Result<(), StoreError> {
    file.connection
        .execute(
            "INSERT OR REPLACE INTO description VALUES (?1, ?2)",
            params![format!("{PREFIX}{name}"), text],
        )
        .map(drop)
        .map_err(|cause| file.error(cause))
}

/// The text that has this name.
pub(super) fn find(file: &ExperimentFile, name: &str) -> Result<Option<String>, StoreError> {
    file.connection
        .query_row("SELECT value FROM description WHERE key = ?1", [format!("{PREFIX}{name}")], |row| {
            row.get(0)
        })
        .optional()
        .map_err(|cause| file.error(cause))
}

/// Copies those of the attached database `shard`. What all shards have is taken from the first.
pub(super) fn copy(connection: &Connection) -> rusqlite::Result<()> {
    let texts =
        "INSERT OR IGNORE INTO main.description SELECT key, value FROM shard.description WHERE key LIKE ?1";
    connection.execute(texts, [format!("{PREFIX}%")]).map(drop)
}
