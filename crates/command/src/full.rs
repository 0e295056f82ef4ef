//! What the feature `full` has, and the build of the demo leaves out.

use std::io::Read;
use std::path::Path;

use crate::failure::Failure;

/// The error that refuses it.
pub fn left_out(option: &str) -> Failure {
    Failure::Usage(format!(
        "`make demo` built this heaptoll without {option}: build the whole with `make build`"
    ))
}

/// Whether a file begins as JSON does; false for one that cannot be read.
pub fn begins_as_json(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut start));
    read.is_ok() && start.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
}
