//! The trace that a command reads: a file, or standard input.

use std::fs::File;
use std::io::{Cursor, Read, stdin};
use std::path::Path;

use heaptoll_trace::{Memory, Reader, TraceError, graph};

use crate::failure::Failure;
use crate::foreign;

/// A source of a trace's bytes.
pub type Source = Box<dyn Read + Send>;

/// The bytes of a trace, and its name in messages; `-` is standard input.
fn bytes(path: &Path) -> Result<(Source, String), Failure> {
    if path == Path::new("-") {
        return Ok((Box::new(stdin()), "standard input".to_owned()));
    }
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => Ok((Box::new(file), name)),
        Err(source) => Err(refused(TraceError::System { action: "open", name, source })),
    }
}

/// Opens a trace that may take so much memory; `-` is standard input.
///
/// # Errors
/// The file cannot be read; it is not a trace, or a newer one.
pub fn open(path: &Path, memory: Memory) -> Result<Reader<Source>, Failure> {
    let (source, name) = bytes(path)?;
    let mut reader = Reader::with_name(source, &name).map_err(refused)?;
    reader.limit(memory);
    Ok(reader)
}

/// A trace of either kind, whose first bytes show which.
pub enum Opened {
    /// Without pointers.
    Plain(Box<Reader<Source>>),
    /// With pointers.
    Graph(Box<graph::Reader<Source>>),
}

/// Opens a trace of either kind; `-` is standard input.
///
/// # Errors
/// The file cannot be read; it is not a trace, or a newer one.
pub fn of_either_kind(path: &Path) -> Result<Opened, Failure> {
    let (mut source, name) = bytes(path)?;
    let mut first = Vec::new();
    // What cannot be read fails again for the reader, which has the words for it.
    let _ = source.by_ref().take(8).read_to_end(&mut first);
    let has_pointers = graph::is_graph(&first);
    let source: Source = Box::new(Cursor::new(first).chain(source));
    let opened = match has_pointers {
        true => graph::Reader::with_name(source, &name).map(|reader| Opened::Graph(Box::new(reader))),
        false => Reader::with_name(source, &name).map(|reader| Opened::Plain(Box::new(reader))),
    };
    opened.map_err(refused)
}

/// Whether a trace comes as a stream, which gives its bytes once: standard input, a pipe or a device.
pub fn is_stream(trace: &Path) -> bool {
    trace == Path::new("-") || trace.metadata().is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
}

/// Whether this is a file with a trace with pointers. What cannot be read is none: who opens it finds the reason.
pub fn is_graph(path: &Path) -> bool {
    let mut first = [0; 8];
    // A pipe's first bytes would be lost.
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    is_file
        && File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok()
        && graph::is_graph(&first)
}

/// Opens a trace with pointers that may take so much memory.
///
/// # Errors
/// The file cannot be read; it is not a trace with pointers, or a newer one.
pub fn open_graph(path: &Path, memory: Memory) -> Result<graph::Reader<File>, Failure> {
    let mut reader = graph::Reader::open(path).map_err(refused)?;
    reader.limit(memory);
    Ok(reader)
}

/// The failure that a trace which cannot be read is. Of a file of another tool it states what reads that.
pub fn refused(error: TraceError) -> Failure {
    if let TraceError::NotATrace { name, .. } | TraceError::NotAGraph { name, .. } = &error
        && let Some(error) = foreign::no_trace(name)
    {
        return error.into();
    }
    Failure::Refused(Box::new(error))
}
