//! Where the calls come from: a trace's file, calls in memory, or several copies of either, interleaved.

use std::fs::File;
use std::path::Path;

use heaptoll_trace::{Batch, Event, Memory, Reader};

use crate::error::ReplayError;

/// Calls in the order in which they happened.
pub trait Source {
    /// The next calls; `None` at the end. Never an empty slice.
    ///
    /// # Errors
    /// The trace cannot be read.
    fn events(&mut self) -> Result<Option<&[Event]>, ReplayError>;
}

/// A trace's file.
pub struct FileSource {
    reader: Reader<File>,
    batch: Batch,
}

impl FileSource {
    /// Opens a trace with a limit of memory.
    ///
    /// # Errors
    /// It is no trace, or cannot be read.
    pub fn open(path: &Path, memory: Memory) -> Result<FileSource, ReplayError> {
        let mut reader = Reader::open(path)?;
        reader.limit(memory);
        Ok(FileSource { reader, batch: Batch::default() })
    }

    /// What was wrong with the file, once all has been read.
    pub fn warnings(&self) -> &[String] {
        &self.reader.tables().warnings
    }
}

impl Source for FileSource {
    fn events(&mut self) -> Result<Option<&[Event]>, ReplayError> {
        let more = self.reader.read(&mut self.batch)?;
        Ok(more.then_some(self.batch.events.as_slice()))
    }
}

/// Calls in memory.
pub struct Calls<'a> {
    events: &'a [Event],
}

impl<'a> Calls<'a> {
    /// These calls.
    pub fn new(events: &'a [Event]) -> Calls<'a> {
        Calls { events }
    }
}

impl Source for Calls<'_> {
    fn events(&mut self) -> Result<Option<&[Event]>, ReplayError> {
        let all = std::mem::take(&mut self.events);
        Ok((!all.is_empty()).then_some(all))
    }
}
