//! What belongs to an experiment and is no row: texts that a gate decides by, what a study was requested to search, the
//! marks of a run's requests. They lie in the table of the description, under keys that no part of a description has.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use super::error::StoreError;
use super::file::ExperimentFile;

/// What their keys begin with.
const PREFIX: &str = "attached:";

/// Keeps a text, or bytes, under a name.
pub(super) fn put(file: &ExperimentFile, name: &str, value: &dyn ToSql) -> Result<(), StoreError> {
    file.connection
        .execute(
            "INSERT OR REPLACE INTO description VALUES (?1, ?2)",
            params![format!("{PREFIX}{name}"), value],
        )
        .map(drop)
        .map_err(|cause| file.error(cause))
}

/// What has this name.
pub(super) fn find<T: FromSql>(file: &ExperimentFile, name: &str) -> Result<Option<T>, StoreError> {
    file.connection
        .query_row("SELECT value FROM description WHERE key = ?1", [format!("{PREFIX}{name}")], |row| {
            row.get(0)
        })
        .optional()
        .map_err(|cause| file.error(cause))
}

/// Copies what the attached database `shard` has. What all shards have is taken from the first.
pub(super) fn copy(connection: &Connection) -> rusqlite::Result<()> {
    let texts =
        "INSERT OR IGNORE INTO main.description SELECT key, value FROM shard.description WHERE key LIKE ?1";
    connection.execute(texts, [format!("{PREFIX}%")]).map(drop)
}
