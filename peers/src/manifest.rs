//! The digests of the files of a recipe.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::Refusal;
use crate::path::inside;

/// SHA-256 by path from the repository's top, in lower-case hexadecimal.
#[derive(Debug, Clone, Default)]
pub struct Manifest(BTreeMap<String, String>);

impl Manifest {
    /// Reads what `sha256sum` writes.
    pub fn parse(text: &str) -> Result<Manifest, String> {
        let mut files = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let wrong = || format!("`{line}` is not a line of sha256sum");
            let (digest, path) = line.split_once("  ").ok_or_else(wrong)?;
            if digest.len() != 64 || !digest.bytes().all(|b| b.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            inside(path)?;
            files.insert(path.to_owned(), digest.to_ascii_lowercase());
        }
        Ok(Manifest(files))
    }

    /// Whether a file is in it.
    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The files of a folder.
    pub fn of_folder<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        let below = move |path: &&String| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.0.keys().filter(below).map(String::as_str)
    }

    /// A file's content, when it is the one that the manifest names.
    ///
    /// # Errors
    /// The file is missing, cannot be read, or is another.
    pub fn read(&self, tree: &Path, path: &str) -> Result<Vec<u8>, Refusal> {
        self.read_as(&tree.join(path), path)
    }

    /// The content of `file`, when it is the one that the manifest names `path`.
    ///
    /// # Errors
    /// As [`Manifest::read`].
    pub fn read_as(&self, file: &Path, path: &str) -> Result<Vec<u8>, Refusal> {
        let content = fs::read(file).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Refusal::Missing { path: path.to_owned() },
            _ => Refusal::Unreadable { path: path.to_owned(), source },
        })?;
        let found = digest(&content);
        match self.0.get(path) {
            Some(expected) if *expected == found => Ok(content),
            expected => Err(Refusal::Digest {
                path: path.to_owned(),
                found,
                expected: expected.cloned().unwrap_or_default(),
            }),
        }
    }
}

/// SHA-256 in lower-case hexadecimal.
pub fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(content: &[u8], path: &str) -> Manifest {
        Manifest::parse(&format!("{}  {path}\n", digest(content))).expect("a manifest")
    }

    #[test]
    fn a_file_is_read_only_if_it_is_the_one_of_the_manifest() {
        let tree = tempfile::tempdir().expect("made");
        fs::write(tree.path().join("a"), "one").expect("written");
        assert_eq!(manifest(b"one", "a").read(tree.path(), "a").expect("the same"), b"one");
        assert!(matches!(manifest(b"two", "a").read(tree.path(), "a"), Err(Refusal::Digest { .. })));
        assert!(matches!(manifest(b"one", "a").read(tree.path(), "b"), Err(Refusal::Missing { .. })));
        assert!(matches!(manifest(b"one", "b").read(tree.path(), "a"), Err(Refusal::Digest { .. })));
    }

    #[test]
    fn a_folder_has_its_own_files_only() {
        let text: String =
            ["x/a/1", "x/a/b/2", "x/ab/3"].map(|path| format!("{}  {path}\n", digest(b""))).concat();
        let manifest = Manifest::parse(&text).expect("a manifest");
        assert_eq!(manifest.of_folder("x/a").collect::<Vec<_>>(), ["x/a/1", "x/a/b/2"]);
    }

    #[test]
    fn what_is_no_line_of_sha256sum_is_refused() {
        let good = digest(b"");
        for text in
            ["a", "0  a", &format!("{good} a"), &format!("{good}  ../a"), &format!("{}  a", "g".repeat(64))]
        {
            assert!(Manifest::parse(text).is_err(), "{text}");
        }
    }
}
