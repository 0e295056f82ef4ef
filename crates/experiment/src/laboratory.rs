//! Whether this installation has the laboratory, and how to get it: below all that refuses what only the laboratory does.

use std::path::PathBuf;

/// Its binary, in the folder of the product's.
pub const BINARY: &str = "heaptoll-lab";

/// How it is installed.
pub const GET: &str = "type `make lab` in the source tree, or unpack the archive heaptoll-lab of this release over the \
                       installation";

/// Where it is, if it is.
pub fn path() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(BINARY);
    path.is_file().then_some(path)
}
