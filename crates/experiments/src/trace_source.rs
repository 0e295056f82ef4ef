//! The trace that a command reads: a file, or standard input.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use heaptoll_trace::{Memory, Reader, TraceError};

use crate::failure::Failure;

/// A source of a trace's bytes.
pub type Source = Box<dyn Read + Send>;

/// Opens a trace that may take so much memory; `-` is standard input.
///
/// # Errors
/// The file cannot be read; it is no trace, or a newer one.
pub fn open(path: &Path, memory: Memory) -> Result<Reader<Source>, Failure> {
    let mut reader = unlimited(path)?;
    reader.limit(memory);
    Ok(reader)
}

fn unlimited(path: &Path) -> Result<Reader<Source>, Failure> {
    if path == Path::new("-") {
        return Reader::with_name(Box::new(stdin()) as Source, "standard input").map_err(refused);
    }
    let name = path.display().to_string();
    let file = File::open(path)
        .map_err(|source| refused(TraceError::System { action: "open", name: name.clone(), source }))?;
    Reader::with_name(Box::new(file) as Source, &name).map_err(refused)
}

/// The failure that a trace which cannot be read is.
pub fn refused(error: TraceError) -> Failure {
    Failure::Refused(Box::new(error))
}
