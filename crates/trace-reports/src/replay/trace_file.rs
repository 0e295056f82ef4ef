//! The trace of a replay, which must be a file.

use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;

/// A replay reads its trace several times: once for each order of threads and copy, twice where it has pointers.
///
/// # Errors
/// It is standard input, a pipe or a folder.
pub fn several_times(trace: &Path) -> Result<(), Failure> {
    if trace_source::is_stream(trace) {
        return Err(Failure::Usage(format!(
            "{}: a replay reads its trace several times, so it needs a file",
            trace.display()
        )));
    }
    Ok(())
}
