//! What the path of a shared object states: whether it is glibc or a C++ runtime, and whether it is another path's file.
//! The reader of binding reports and the judge of a run both need it for the objects that the loader names.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// glibc's shared object.
pub fn is_libc(object: &Path) -> bool {
    object.file_name().is_some_and(|n| n == "libc.so.6" || n.as_bytes().starts_with(b"libc-2."))
}

/// A C++ runtime, whose operators call malloc.
pub fn is_cxx_runtime(object: &Path) -> bool {
    object.file_name().is_some_and(|n| {
        [&b"libstdc++.so"[..], b"libc++.so", b"libc++abi.so", b"libsupc++.so"]
            .iter()
            .any(|p| n.as_bytes().starts_with(p))
    })
}

/// Whether two paths name one file.
pub fn same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    if a == b {
        return true;
    }
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}
