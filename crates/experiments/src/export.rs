//! `heaptoll export`: a trace as Parquet.

use std::path::{Path, PathBuf};

use heaptoll_report::trace_parquet::{self, ExportError, sites_path};
use heaptoll_trace::Memory;

use crate::context::Messages;
use crate::failure::Failure;
use crate::{trace_source, writable};

/// What to export.
#[derive(Debug, Clone)]
pub struct Request {
    /// The trace; `-` is standard input.
    pub trace: PathBuf,
    /// The file to write; named for the trace without one.
    pub output: Option<PathBuf>,
    /// Whether files that exist are replaced.
    pub force: bool,
    /// Memory that the tables of the trace may take, bytes.
    pub memory_limit_bytes: u64,
}

/// Writes a trace as Parquet, and its call stacks to a second file. Returns whether the trace is whole; of a damaged one
/// what is whole is exported.
///
/// # Errors
/// It is no trace, or cannot be read; the file exists, or cannot be written.
pub fn run(request: &Request, messages: &dyn Messages) -> Result<bool, Failure> {
    let path = output(request)?;
    let memory = Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: 0 };
    let mut reader = trace_source::open(&request.trace, memory)?;
    let exported = trace_parquet::export(&mut reader, &path).map_err(|error| match error {
        ExportError::Trace(error) => trace_source::refused(error),
        ExportError::Report(error) => Failure::Report(error),
    })?;
    messages.note(&format!("wrote {} events to {}", exported.rows, path.display()));
    if let Some(rows) = exported.site_rows {
        messages.note(&format!("wrote {rows} frames of call stacks to {}", sites_path(&path).display()));
    }
    for warning in reader.warnings() {
        messages.warning(warning);
    }
    Ok(reader.warnings().is_empty())
}

/// The file to write, which can be.
fn output(request: &Request) -> Result<PathBuf, Failure> {
    let path = match &request.output {
        Some(path) if path.as_os_str() == "-" => {
            return Err(Failure::Usage(
                "Parquet is not written to standard output, which has messages: name a file with -o".into(),
            ));
        }
        Some(path) => path.clone(),
        None => default_path(&request.trace)?,
    };
    let same = std::fs::canonicalize(&path)
        .and_then(|path| Ok(path == std::fs::canonicalize(&request.trace)?))
        .unwrap_or(false);
    if same {
        return Err(Failure::Usage(format!("{} is the trace itself: name another file", path.display())));
    }
    for path in [&path, &sites_path(&path)] {
        // Devices and pipes are there to be written to.
        if !request.force && path.is_file() {
            return Err(Failure::Usage(format!(
                "{} exists: name another file with -o, or pass --force to replace it",
                path.display()
            )));
        }
    }
    writable::check(&path)
        .map_err(|why| Failure::Usage(format!("cannot write {}: {why}", path.display())))?;
    Ok(path)
}

/// The name of the trace with the extension .parquet, in the current folder.
fn default_path(trace: &Path) -> Result<PathBuf, Failure> {
    let name = trace.file_name().filter(|_| trace != Path::new("-"));
    let name = name.ok_or_else(|| {
        Failure::Usage("a trace from standard input has no name: name the file to write with -o".to_owned())
    })?;
    Ok(match Path::new(name).extension() {
        Some(end) if end == "heaptoll" => Path::new(name).with_extension("parquet"),
        _ => {
            let mut name = name.to_owned();
            name.push(".parquet");
            PathBuf::from(name)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_trace() {
        let name = |trace: &str| default_path(Path::new(trace)).ok();
        assert_eq!(name("/data/gawk.heaptoll"), Some("gawk.parquet".into()));
        assert_eq!(name("gawk.heaptoll.children/1234.2.heaptoll"), Some("1234.2.parquet".into()));
        assert_eq!(name("trace"), Some("trace.parquet".into()));
        assert_eq!(name("-"), None);
    }
}
