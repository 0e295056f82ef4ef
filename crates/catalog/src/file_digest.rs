//! The SHA-256 of a file, which may be larger than memory: inputs, jars and binaries are known by it.

use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDigest {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

impl FileDigest {
    /// Reads a file to its end.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub fn read(path: &Path) -> io::Result<FileDigest> {
        let mut hasher = Sha256::new();
        let bytes = io::copy(&mut File::open(path)?, &mut hasher)?;
        Ok(FileDigest { bytes, sha256: format!("{:x}", hasher.finalize()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_length_and_the_digest_that_sha256sum_prints() {
        let here = tempfile::tempdir().expect("a folder");
        let path = here.path().join("abc");
        std::fs::write(&path, "abc").expect("written");
        let found = FileDigest::read(&path).expect("read");
        assert_eq!(found.bytes, 3);
        assert_eq!(found.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(FileDigest::read(&here.path().join("none")).is_err());
    }
}
