//! Generated inputs on disk: written once, atomically, and reused while they are intact.
//!
//! The file's name holds a hash of the generator, its parameters and its version, so that a changed entry never reads
//! an old file. Next to each input lies its SHA-256 (in the format of `sha256sum`), by which a truncated or edited file
//! is noticed and made again: a silently damaged input would change what is measured.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::{CatalogError, FileDigest, Generator};

/// The path of the input, which is generated if it is not in `folder` yet.
pub(crate) fn provide(name: &str, generator: &Generator, folder: &Path) -> Result<PathBuf, CatalogError> {
    let folder = std::path::absolute(folder).map_err(|source| CatalogError::Write {
        input: name.to_owned(),
        path: folder.to_owned(),
        source,
    })?;
    let path = folder.join(format!("{}-{name}", &key(generator)[..16]));
    let failed = |source| CatalogError::Write { input: name.to_owned(), path: path.clone(), source };
    if intact(&path) {
        return Ok(path);
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    write(generator, &folder, &path).map_err(failed)?;
    Ok(path)
}

fn key(generator: &Generator) -> String {
    hexadecimal(&Sha256::digest(generator.identity().as_bytes()))
}

fn digest_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sha256");
    name.into()
}

/// Whether the file is there with the content of its digest. Any doubt means that it is written again.
fn intact(path: &Path) -> bool {
    let Ok(noted) = fs::read_to_string(digest_path(path)) else { return false };
    FileDigest::read(path).is_ok_and(|found| noted.split_whitespace().next() == Some(found.sha256.as_str()))
}

fn write(generator: &Generator, folder: &Path, path: &Path) -> io::Result<()> {
    let mut out = Hashed { inner: BufWriter::new(NamedTempFile::new_in(folder)?), hasher: Sha256::new() };
    generator.write(&mut out)?;
    let digest = hexadecimal(&out.hasher.finalize());
    let file = out.inner.into_inner().map_err(io::IntoInnerError::into_error)?;
    // Delayed allocation reports a full disk only here.
    file.as_file().sync_all()?;
    readable_by_all(file.as_file())?;
    file.persist(path).map_err(|error| error.error)?;

    let mut note = NamedTempFile::new_in(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    writeln!(note, "{digest}  {name}")?;
    readable_by_all(note.as_file())?;
    note.persist(digest_path(path)).map_err(|error| error.error)?;
    Ok(())
}

/// Temporary files are private to their owner; an input may be read by a program that runs as another user.
fn readable_by_all(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A writer that hashes what passes through it.
struct Hashed<W: Write> {
    inner: W,
    hasher: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::tests::small;

    #[test]
    fn an_intact_input_is_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = provide("a.txt", &small("text"), folder.path()).unwrap();
        let first = fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(provide("a.txt", &small("text"), folder.path()).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), first);
    }

    #[test]
    fn a_damaged_input_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = provide("a.txt", &small("text"), folder.path()).unwrap();
        let good = fs::read(&path).unwrap();
        for damage in [&good[..good.len() / 2], b"".as_slice(), b"something else".as_slice()] {
            fs::write(&path, damage).unwrap();
            provide("a.txt", &small("text"), folder.path()).unwrap();
            assert_eq!(fs::read(&path).unwrap(), good);
        }
        fs::remove_file(digest_path(&path)).unwrap();
        provide("a.txt", &small("text"), folder.path()).unwrap();
        assert!(intact(&path));
    }

    #[test]
    fn only_the_input_and_its_digest_remain() {
        let folder = tempfile::tempdir().unwrap();
        provide("a.txt", &small("text"), folder.path()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_full_disk_is_called_so() {
        let error = CatalogError::Write {
            input: "log".into(),
            path: "/x/log".into(),
            source: io::ErrorKind::StorageFull.into(),
        };
        assert!(error.to_string().contains("free some space"), "{error}");
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = provide("a.txt", &small("text"), &file).unwrap_err().to_string();
        assert!(error.contains("a.txt") && error.contains("in the way"), "{error}");
    }
}
