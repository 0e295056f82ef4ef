//! Files that a user has recorded with their digests, in the form of `sha256sum`: before a program runs they are compared,
//! so that a file that was exchanged is not measured under the name of the old one.

use std::fs;
use std::io;
use std::path::Path;

use crate::{CatalogError, FileDigest};

/// Compares every file that `list` names with its digest.
///
/// # Errors
/// A file that cannot be read, or that is another one.
pub(crate) fn verify(list: &Path) -> Result<(), CatalogError> {
    let unreadable =
        |path: &Path, source: io::Error| CatalogError::Unverified { path: path.to_owned(), source };
    let text = fs::read_to_string(list).map_err(|error| unreadable(list, error))?;
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Some((expected, name)) = line.split_once("  ") else {
            let problem = format!("`{line}` is not a line of sha256sum");
            return Err(unreadable(list, io::Error::new(io::ErrorKind::InvalidData, problem)));
        };
        let path = Path::new(name);
        let found = FileDigest::read(path).map_err(|error| unreadable(path, error))?.sha256;
        if found != expected {
            return Err(CatalogError::OtherFile {
                path: path.to_owned(),
                list: list.to_owned(),
                found,
                expected: expected.to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_exchanged_or_is_gone_is_named() {
        let here = tempfile::tempdir().expect("a folder");
        let (jar, list) = (here.path().join("a b.jar"), here.path().join("jar.sha256"));
        fs::write(&jar, "a jar").expect("written");
        let of = FileDigest::read(&jar).expect("read").sha256;
        assert_eq!(of.len(), 64);
        fs::write(&list, format!("{of}  {}\n", jar.display())).expect("written");
        verify(&list).expect("the same");
        fs::write(&jar, "another jar").expect("written");
        let error = verify(&list).expect_err("another").to_string();
        assert!(error.contains("a b.jar") && error.contains(&of), "{error}");
        fs::remove_file(&jar).expect("removed");
        assert!(matches!(verify(&list), Err(CatalogError::Unverified { path, .. }) if path == jar));
        fs::write(&list, "nothing\n").expect("written");
        assert!(verify(&list).is_err_and(|error| error.to_string().contains("sha256sum")));
    }
}
