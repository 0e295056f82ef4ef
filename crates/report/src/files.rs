//! Files.
use crate::ReportError;
use std::io::Write;
use std::path::Path;
/// Writes a file whole or not at all.
pub fn write_atomically(
    _path: &Path,
    _write: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), ReportError>,
) -> Result<(), ReportError> {
    todo!()
}
