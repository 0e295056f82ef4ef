//! One SQLite file an experiment, appended after every invocation: whatever happens next, rows survive.

mod attached;
mod description;
mod error;
mod file;
mod layout;
pub mod merging;
mod rows;
mod tracks;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod history;
#[cfg(test)]
mod tests;

use std::path::Path;

use rusqlite::OpenFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::file::ExperimentFile;
use crate::experiment::Experiment;
use crate::observation::{MemoryTrack, Observation};

pub use error::StoreError;

/// An experiment's file, open for more rows.
pub struct Store {
    file: ExperimentFile,
}

impl Store {
    /// Makes a new file with the experiment's description and no rows.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub fn create(path: &Path, experiment: &Experiment) -> Result<Store, StoreError> {
        let mut store = Store { file: ExperimentFile::create(path)? };
        store.describe(experiment)?;
        store.file.become_writer()?;
        Ok(store)
    }

    /// Opens an existing file for more rows and reads it.
    ///
    /// # Errors
    /// It is missing, foreign, newer, damaged or not writable.
    pub fn resume(path: &Path) -> Result<(Store, Experiment), StoreError> {
        let mut file = ExperimentFile::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        file.become_writer()?;
        // Before anything is changed: a damaged file stays as it is.
        let experiment = load(&file)?;
        file.migrate()?;
        Ok((Store { file }, experiment))
    }

    /// Reads an experiment of this or an earlier version. The file is not changed: one of an earlier version keeps its
    /// columns and gets no views.
    ///
    /// # Errors
    /// It is missing, foreign, newer or damaged.
    pub fn read(path: &Path) -> Result<Experiment, StoreError> {
        load(&ExperimentFile::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
    }

    /// Reads what describes an experiment, without its rows.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read_description(path: &Path) -> Result<Experiment, StoreError> {
        description::read(&ExperimentFile::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Writes everything but the rows: at the beginning, when a resume changes the settings, at the end.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn describe(&self, experiment: &Experiment) -> Result<(), StoreError> {
        description::write(&self.file, experiment)
    }

    /// Keeps a text under a name, in the place of one that has the name: what belongs to the experiment and is no row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn attach(&self, name: &str, text: &str) -> Result<(), StoreError> {
        attached::put(&self.file, name, &text)
    }

    /// The same of a value.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn attach_value(&self, name: &str, value: &impl Serialize) -> Result<(), StoreError> {
        self.attach(name, &self.file.json(value)?)
    }

    /// The same of bytes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn attach_bytes(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        attached::put(&self.file, name, &bytes)
    }

    /// The value that was kept under a name; `None` where there is none.
    ///
    /// # Errors
    /// The file cannot be read, or has something else there.
    pub fn attached_value<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, StoreError> {
        let text: Option<String> = attached::find(&self.file, name)?;
        text.map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(|error| self.damaged(&format!("`{name}`: {error}")))
    }

    /// The bytes that were kept under a name; `None` where there are none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn attached_bytes(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        attached::find(&self.file, name)
    }

    /// That this file is damaged.
    pub fn damaged(&self, reason: &str) -> StoreError {
        self.file.damaged(reason)
    }

    /// Reads a text that was kept under a name; `None` where there is none.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn read_attached(path: &Path, name: &str) -> Result<Option<String>, StoreError> {
        attached::find(&ExperimentFile::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?, name)
    }

    /// Appends one row; on disk when this returns.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&self, row: &Observation) -> Result<(), StoreError> {
        rows::append(&self.file, row)
    }

    /// Appends rows that belong together, all or none of them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append_all<'a>(&self, rows: impl IntoIterator<Item = &'a Observation>) -> Result<(), StoreError> {
        let error = |cause| self.file.error(cause);
        let transaction = self.file.connection.unchecked_transaction().map_err(error)?;
        for row in rows {
            self.append(row)?;
        }
        transaction.commit().map_err(error)
    }

    /// Appends memory over time of one row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append_track(&mut self, track: &MemoryTrack) -> Result<(), StoreError> {
        tracks::append(&mut self.file, track)
    }
}

/// An experiment's file whose rows are read program by program.
pub struct Reader {
    file: ExperimentFile,
}

impl Reader {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn open(path: &Path) -> Result<Reader, StoreError> {
        Ok(Reader { file: ExperimentFile::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)? })
    }

    /// The experiment without rows.
    ///
    /// # Errors
    /// A value is damaged.
    pub fn description(&self) -> Result<Experiment, StoreError> {
        Ok(Experiment { tracks: tracks::read(&self.file)?, ..description::read(&self.file)? })
    }

    /// The experiment with its rows.
    ///
    /// # Errors
    /// As [`Store::read`].
    pub fn whole(&self) -> Result<Experiment, StoreError> {
        load(&self.file)
    }

    /// The rows of one program.
    ///
    /// # Errors
    /// A row is damaged.
    pub fn rows_of(&self, program: &str) -> Result<Vec<Observation>, StoreError> {
        rows::read(&self.file, Some(program))
    }
}

fn load(file: &ExperimentFile) -> Result<Experiment, StoreError> {
    let described = description::read(file)?;
    Ok(Experiment { observations: rows::read(file, None)?, tracks: tracks::read(file)?, ..described })
}
