//! `heaptoll trace import`: recordings of other tools as traces.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Cursor, Read, stdin};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heaptoll_record::heaptrack::{About, HeaptrackError, Summary, unpack};
use heaptoll_trace::{TraceError, TraceFile};
use heaptoll_units::number;
use thiserror::Error;

use crate::export::target;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_command::foreign::{self, FIRST, ForeignError, Kind};
use heaptoll_command::trace_source::refused;

/// What to import.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// The recording; `-` is standard input.
    pub file: PathBuf,
    /// What it is; found from its contents without it.
    pub from: Option<Kind>,
    /// The trace to write; named for the recording without it.
    pub output: Option<PathBuf>,
    /// Whether a file that exists is replaced.
    pub force: bool,
    /// Memory that its tables and objects may take, bytes.
    pub memory_limit_bytes: u64,
}

/// Why it is not imported.
#[derive(Debug, Error)]
enum NoImport {
    #[error(
        "{name} is neither a recording of heaptrack nor a heap profile of pprof, DHAT, jemalloc, gperftools or \
         Go: it seems to be {seems}. --from names a format that is not recognised; `bytehound export-heaptrack` \
         turns a recording of bytehound into one of heaptrack"
    )]
    Unknown { name: String, seems: String },
    #[error("{0} is a trace of heaptoll already: there is nothing to import")]
    IsTrace(String),
}

impl From<NoImport> for Failure {
    fn from(error: NoImport) -> Failure {
        Failure::Refused(Box::new(error))
    }
}

/// The bytes of a recording, unpacked, and the first of them again.
struct Opened {
    first: Vec<u8>,
    /// All of them.
    read: Box<dyn Read + Send>,
    recorded_at: SystemTime,
}

/// Makes a trace of another tool's recording. Returns whether the recording is whole; of one that was cut off what is
/// there is imported.
///
/// # Errors
/// It is no recording that is read, or cannot be; the trace exists or cannot be written.
pub fn run(request: &ImportRequest, messages: &dyn Messages) -> Result<bool, Failure> {
    let name = name(&request.file);
    let opened = open(&request.file, &name)?;
    match request.from.or_else(|| foreign::kind_of(&opened.first)) {
        Some(Kind::Heaptrack) => {}
        Some(kind @ Kind::Profile(_)) => {
            return Err(ForeignError::NoEvents { name, kind }.into());
        }
        None if opened.first.starts_with(b"\x89HTRACE\n") => return Err(NoImport::IsTrace(name).into()),
        None => return Err(NoImport::Unknown { name, seems: heaptoll_trace::seems(&opened.first) }.into()),
    }
    let output = output(request)?;
    let summary = import(opened, name, &output, request)?;
    report(&summary, &output, messages);
    Ok(summary.cut.is_none())
}

fn name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { file.display().to_string() }
}

fn open(path: &Path, name: &str) -> Result<Opened, Failure> {
    let failed = |action| {
        let name = name.to_owned();
        move |source| refused(TraceError::System { action, name, source })
    };
    let (source, recorded_at): (Box<dyn Read + Send>, _) = match path == Path::new("-") {
        true => (Box::new(stdin()), None),
        false => {
            let file = File::open(path).map_err(failed("open"))?;
            let about = file.metadata().map_err(failed("read"))?;
            (Box::new(file), about.modified().ok())
        }
    };
    let mut read = unpack(source).map_err(failed("read"))?.read;
    let mut first = Vec::new();
    let error = read.by_ref().take(FIRST).read_to_end(&mut first).err();
    let again = Cursor::new(first.clone()).chain(Failed(error)).chain(read);
    Ok(Opened { first, read: Box::new(again), recorded_at: recorded_at.unwrap_or_else(SystemTime::now) })
}

/// An error that was met, at its place.
struct Failed(Option<io::Error>);

impl Read for Failed {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

fn import(opened: Opened, name: String, output: &Path, request: &ImportRequest) -> Result<Summary, Failure> {
    let about = About {
        name,
        recorded_at: opened.recorded_at,
        memory_limit_bytes: request.memory_limit_bytes,
        heaptoll: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let made = Cell::new(false);
    let make = || {
        let file = TraceFile::create(output, request.force)?;
        made.set(true);
        Ok(file)
    };
    heaptoll_record::heaptrack::import(opened.read, &about, make).map_err(|error| {
        // Half of a recording that could not be read looks like a whole one.
        if made.get() && output.is_file() {
            let _ = std::fs::remove_file(output);
        }
        match error {
            HeaptrackError::Trace(error @ TraceError::System { action: "write", .. }) => {
                Failure::Trouble(Box::new(error))
            }
            HeaptrackError::Trace(error) => refused(error),
            error => Failure::Refused(Box::new(error)),
        }
    })
}

/// The trace to write, which can be.
fn output(request: &ImportRequest) -> Result<PathBuf, Failure> {
    let file_name = |name: &str| {
        let name = [".zst", ".gz"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(name);
        format!("{}.heaptoll", name.strip_suffix(".raw").unwrap_or(name))
    };
    let path = target::path(&request.file, request.output.as_deref(), file_name)?;
    target::check(&path, request.force)?;
    Ok(path)
}

fn report(summary: &Summary, output: &Path, messages: &dyn Messages) {
    messages.note(&format!(
        "wrote {} events and {} call stacks to {}",
        number(summary.events),
        number(summary.stacks),
        output.display()
    ));
    messages.note("heaptrack does not record:");
    for lack in &summary.lacks {
        messages.note(&format!("  {lack}"));
    }
    if let Some(why) = &summary.cut {
        messages.warning(&format!("{why}: the trace contains what came before"));
    }
    let tally = summary.tally;
    for (count, what) in [
        (tally.unknown_frees, "frees are of objects that the recording lacks"),
        (tally.unseen_frees, "objects were freed without a record: their addresses were allocated again"),
    ] {
        if count > 0 {
            messages.warning(&format!("{} {what}", number(count)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_are_named_for_recordings() {
        let named = |file: &str| {
            let request = ImportRequest {
                file: file.into(),
                from: None,
                output: None,
                force: false,
                memory_limit_bytes: 0,
            };
            output(&request).ok().map(|path| path.display().to_string())
        };
        assert_eq!(named("/x/heaptrack.gawk.77.zst").as_deref(), Some("heaptrack.gawk.77.heaptoll"));
        assert_eq!(named("heaptrack.gawk.77.raw.gz").as_deref(), Some("heaptrack.gawk.77.heaptoll"));
        assert_eq!(named("-"), None);
    }
}
