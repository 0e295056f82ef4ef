//! The digests of the files of a recipe.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::Refusal;
use crate::recipe::inside;

/// SHA-256 by path from the repository's top, in lower-case hexadecimal.
#[derive(Debug, Clone)]
pub(crate) struct Manifest(BTreeMap<String, String>);

impl Manifest {
    /// Reads what `sha256sum` writes.
    pub(crate) fn parse(text: &str) -> Result<Manifest, String> {
        let mut files = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let wrong = || format!("`{line}` is no line of sha256sum");
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
    pub(crate) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The files of a folder.
    pub(crate) fn of_folder<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        let below = move |path: &&String| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        self.0.keys().filter(below).map(String::as_str)
    }

    /// A file's content, when it is the one that the manifest names.
    ///
    /// # Errors
    /// The file is missing, cannot be read, or is another.
    pub(crate) fn read(&self, tree: &Path, path: &str) -> Result<Vec<u8>, Refusal> {
        let content = fs::read(tree.join(path)).map_err(|source| match source.kind() {
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
pub(crate) fn digest(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
