//! The SQLite file that holds an experiment: made, opened, checked and locked.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde::Serialize;

use super::error::StoreError;
use super::layout::{APPLICATION_ID, LAYOUT, PLAIN_PHASES, WRITTEN_BY, optional_columns, tables, views};

/// An open experiment file.
pub(super) struct ExperimentFile {
    /// Where it is.
    pub(super) path: PathBuf,
    /// To its tables.
    pub(super) connection: Connection,
    /// Held by the one heaptoll that appends. Declared last, since closing any descriptor of the file releases the
    /// locks of SQLite's own.
    writer: Option<File>,
}

impl ExperimentFile {
    /// Makes a new file with empty tables.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub(super) fn create(path: &Path) -> Result<ExperimentFile, StoreError> {
        if path.exists() {
            return Err(StoreError::Exists(path.into()));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let file = ExperimentFile::connect(path, flags)?;
        let made = (|| {
            let transaction = file.connection.unchecked_transaction()?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", LAYOUT)?;
            transaction.execute_batch(&tables())?;
            transaction.execute_batch(&views())?;
            transaction.commit()
        })();
        made.map_err(|cause| file.error(cause))?;
        Ok(file)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<ExperimentFile, StoreError> {
        let error = |cause| StoreError::Sqlite { path: path.into(), cause };
        // A connection is of one thread at a time; SQLite would take a lock for each cell.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(error)?;
        connection.busy_timeout(Duration::from_secs(2)).map_err(error)?;
        Ok(ExperimentFile { path: path.into(), connection, writer: None })
    }

    /// Opens a file that is there, whole and of this layout.
    ///
    /// # Errors
    /// It is missing, foreign, newer or damaged.
    pub(super) fn open(path: &Path, flags: OpenFlags) -> Result<ExperimentFile, StoreError> {
        let foreign = |reason: &str| StoreError::Foreign { path: path.into(), reason: reason.into() };
        match std::fs::metadata(path) {
            Err(_) => return Err(StoreError::Missing(path.into())),
            Ok(about) if about.is_dir() => return Err(foreign("a folder; name a file in it")),
            // A FIFO would be waited for.
            Ok(about) if !about.is_file() => return Err(foreign("a device, a socket or a FIFO")),
            Ok(_) => {}
        }
        let mut file = ExperimentFile::connect(path, flags)?;
        // A writer that was killed may have left a journal, and undoing the half row needs to write.
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_ONLY) && file.needs_recovery() {
            file = ExperimentFile::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        }
        let pragma = |name: &str| file.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        match pragma("application_id") {
            Ok(APPLICATION_ID) => {}
            Ok(_) => return Err(foreign("an SQLite file of another program")),
            Err(cause) if cause.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
                return Err(foreign("not an SQLite file"));
            }
            Err(cause) => return Err(file.error(cause)),
        }
        match pragma("user_version").map_err(|cause| file.error(cause))? {
            LAYOUT => {}
            layout if layout > LAYOUT => {
                let needed = file.written_by();
                return Err(StoreError::Newer { path: path.into(), layout, needed });
            }
            layout => return Err(file.damaged(&format!("there is no layout {layout}"))),
        }
        file.check_length()?;
        // SQLite reads what it needs and may never touch a damaged page; figures may not be served from such a file.
        let whole: String = file
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|cause| file.error(cause))?;
        if whole == "ok" { Ok(file) } else { Err(file.damaged(&whole)) }
    }

    /// Keeps other writers out: two experiments in one file would mix their rows.
    pub(super) fn become_writer(&mut self) -> Result<(), StoreError> {
        let file = File::open(&self.path).and_then(|file| {
            file.try_lock()?;
            Ok(file)
        });
        match file {
            Ok(file) => self.writer = Some(file),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                return Err(StoreError::InUse(self.path.clone()));
            }
            // A file system without such locks: SQLite's own keep the file whole.
            Err(_) => {}
        }
        Ok(())
    }

    /// Makes an older file one of this version, as a whole or not at all: columns that it lacks, phases in plain text,
    /// and the views.
    pub(super) fn migrate(&self) -> Result<(), StoreError> {
        let error = |cause| self.error(cause);
        let transaction = self.connection.unchecked_transaction().map_err(error)?;
        for (table, column, kind) in optional_columns() {
            if !self.has_column(table, column)? {
                let add = format!("ALTER TABLE {table} ADD COLUMN {column} {kind}");
                transaction.execute_batch(&add).map_err(error)?;
            }
        }
        transaction.execute_batch(PLAIN_PHASES).map_err(error)?;
        transaction.execute_batch(&views()).map_err(error)?;
        transaction.commit().map_err(error)
    }

    /// The version of heaptoll that wrote the file last, which can read it; of files from before that was stored, the
    /// one that began it.
    pub(super) fn written_by(&self) -> String {
        let version = |key| {
            let select = "SELECT value FROM description WHERE key = ?1";
            let text: String = self.connection.query_row(select, [key], |row| row.get(0)).ok()?;
            serde_json::from_str(&text).ok()
        };
        version(WRITTEN_BY)
            .or_else(|| version("heaptoll_version"))
            .unwrap_or_else(|| "a later version".into())
    }

    /// Whether a table has a column.
    pub(super) fn has_column(&self, table: &str, column: &str) -> Result<bool, StoreError> {
        self.connection.column_exists(None, table, column).map_err(|cause| self.error(cause))
    }

    /// Whether the file has a journal that a read-only connection cannot apply.
    fn needs_recovery(&self) -> bool {
        let version = self.connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0));
        version.err().and_then(|cause| cause.sqlite_error_code()) == Some(rusqlite::ErrorCode::ReadOnly)
    }

    /// SQLite reads zeroes where the last page is cut.
    fn check_length(&self) -> Result<(), StoreError> {
        let pragma = |name: &str| {
            self.connection
                .pragma_query_value(None, name, |row| row.get::<_, i64>(0))
                .map_err(|cause| self.error(cause))
        };
        let expected = u64::try_from(pragma("page_count")? * pragma("page_size")?).unwrap_or(0);
        let length = std::fs::metadata(&self.path).map_or(0, |file| file.len());
        if length < expected {
            return Err(self.damaged(&format!("{} of its {expected} bytes are missing", expected - length)));
        }
        Ok(())
    }

    /// What SQLite failed at, to this file.
    pub(super) fn error(&self, cause: rusqlite::Error) -> StoreError {
        match cause.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt) => self.damaged(&cause.to_string()),
            _ => StoreError::Sqlite { path: self.path.clone(), cause },
        }
    }

    /// That this file is damaged.
    pub(super) fn damaged(&self, reason: &str) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), reason: reason.into() }
    }

    /// JSON text of a value for one of its cells.
    pub(super) fn json(&self, value: &impl Serialize) -> Result<String, StoreError> {
        serde_json::to_string(value).map_err(|error| self.damaged(&error.to_string()))
    }
}
