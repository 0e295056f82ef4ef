//! Files with names in them, and their sections.
//!
//! Files are read and not mapped: a mapped file that another program shortens ends this one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gimli::{EndianArcSlice, RunTimeEndian};
use object::{Object, ObjectSection};

/// A section's bytes.
pub type Bytes = EndianArcSlice<RunTimeEndian>;

/// A regular file's bytes, unless it was changed or put there after `loaded`: then it is not what was loaded.
pub fn read(path: &Path, loaded: Option<SystemTime>) -> Option<Vec<u8>> {
    let about = fs::metadata(path).ok()?;
    let intact = loaded.is_none_or(|loaded| !is_newer(&about, loaded));
    (about.is_file() && intact).then(|| fs::read(path).ok()).flatten()
}

/// Whether a file was changed or put there after `loaded`, to the second.
pub fn is_newer(about: &fs::Metadata, loaded: SystemTime) -> bool {
    let seconds = u64::try_from(about.ctime()).unwrap_or(0);
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) > loaded
}

/// A section, unpacked; empty when it is not there.
pub fn section(file: &object::File, name: &str) -> Bytes {
    let data = file.section_by_name(name).and_then(|section| section.uncompressed_data().ok());
    bytes(file, &data.unwrap_or_default())
}

/// A section without bytes.
pub fn empty(file: &object::File) -> Bytes {
    bytes(file, &[])
}

fn bytes(file: &object::File, data: &[u8]) -> Bytes {
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    EndianArcSlice::new(Arc::from(data), endian)
}
