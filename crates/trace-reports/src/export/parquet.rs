//! A trace as Parquet: its events, and its call stacks.

use std::path::{Path, PathBuf};

use heaptoll_report::trace_parquet::{self, ExportError, sites_path};
use heaptoll_trace::Memory;

use super::profile::ProfileRequest;
use super::target;
use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;

/// Writes a trace as Parquet, and its call stacks to a second file. Returns whether the trace is whole; of a damaged one
/// what is whole is exported.
///
/// # Errors
/// It is no trace, or cannot be read; the file exists, or cannot be written.
pub fn run(request: &ProfileRequest, messages: &dyn Messages) -> Result<bool, Failure> {
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
    let warnings = reader.into_tables().warnings;
    warnings.iter().for_each(|warning| messages.warning(warning));
    Ok(warnings.is_empty())
}

/// The file to write, which can be.
fn output(request: &ProfileRequest) -> Result<PathBuf, Failure> {
    if request.output.as_deref() == Some(Path::new("-")) {
        return Err(Failure::Usage(
            "Parquet cannot go to standard output, because its call stacks are a second file. Name a file \
             with -o"
                .into(),
        ));
    }
    let path = target::path(&request.trace, request.output.as_deref(), |name| format!("{name}.parquet"))?;
    for path in [&path, &sites_path(&path)] {
        target::check(path, request.force)?;
    }
    Ok(path)
}
