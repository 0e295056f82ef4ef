//! The note next to each object, `NAME.toml`: what it is, where it comes from and how it was built; and the stamp that
//! shows whether it is still up to date.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, IoContext};
use crate::peer::Peer;
use crate::recipe::{EXPORT_MAP, Recipe, Text};
use crate::source::Source;

/// The contents of `NAME.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The name for `-m`.
    pub name: String,
    /// The allocator's own version.
    pub version: String,
    /// The crate that the source came from.
    pub origin: String,
    /// The first line of the compiler's `--version`.
    pub compiler: String,
    /// Compile flags (or `configure` arguments), a bar, and link options.
    pub flags: String,
    /// Always `peer` here.
    pub kind: String,
    /// One line on what it is.
    pub about: String,
    /// A digest of everything that went into the build.
    pub stamp: String,
    /// SHA-256 of the object, in hexadecimal.
    pub sha256: String,
}

/// Where the object of a peer goes.
pub fn object_path(out: &Path, peer: Peer) -> PathBuf {
    out.join(format!("{}.so", peer.name()))
}

/// Where its note goes.
pub fn note_path(out: &Path, peer: Peer) -> PathBuf {
    out.join(format!("{}.toml", peer.name()))
}

/// A digest of the recipe, the source's version, the compiler and this builder's version.
pub fn stamp(recipe: &Recipe, source: &Source, compiler: &str) -> String {
    let mut digest = Sha256::new();
    let mut add = |part: &str| {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    };
    add(env!("CARGO_PKG_VERSION"));
    add(source.name);
    add(&source.version);
    add(compiler);
    for unit in &recipe.units {
        match &unit.text {
            Text::File(path) => add(path),
            Text::Shim(_, text) => add(text),
        }
        add(&format!("{:?}", unit.language));
        unit.flags.iter().for_each(|flag| add(flag));
    }
    if let Some(configure) = &recipe.configure {
        configure.arguments.iter().for_each(|argument| add(argument));
        configure.make.iter().for_each(|argument| add(argument));
    }
    add(&format!("{:?}", recipe.linker));
    recipe.link.iter().for_each(|option| add(option));
    if recipe.limit_exports {
        add(EXPORT_MAP);
    }
    hex(&digest.finalize())
}

/// SHA-256 of a file, in hexadecimal.
///
/// # Errors
/// [`Error::File`] when it cannot be read.
pub fn file_digest(path: &Path) -> Result<String, Error> {
    Ok(hex(&Sha256::digest(std::fs::read(path).context("read", path)?)))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The note of a peer that is already in `out`, if it and its object are complete.
pub fn existing(out: &Path, peer: Peer) -> Option<Note> {
    let note: Note = toml::from_str(&std::fs::read_to_string(note_path(out, peer)).ok()?).ok()?;
    (note.sha256 == file_digest(&object_path(out, peer)).ok()?).then_some(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(version: &str) -> Source {
        Source { name: "rpmalloc-sys", version: version.to_string(), dir: PathBuf::from("/nowhere") }
    }

    #[test]
    fn a_stamp_changes_with_whatever_changes_the_object() {
        let recipe = Recipe::of(Peer::Rpmalloc, &source("1")).unwrap();
        let first = stamp(&recipe, &source("1"), "cc 12");
        assert_eq!(first, stamp(&recipe.clone(), &source("1"), "cc 12"));
        assert_ne!(first, stamp(&recipe, &source("2"), "cc 12"));
        assert_ne!(first, stamp(&recipe, &source("1"), "cc 13"));
        let mut other = recipe.clone();
        other.units[0].flags.push("-O1".to_string());
        assert_ne!(first, stamp(&other, &source("1"), "cc 12"));
        let mut other = recipe.clone();
        other.link.push("-lm");
        assert_ne!(first, stamp(&other, &source("1"), "cc 12"));
        let mut other = recipe;
        other.limit_exports = true;
        assert_ne!(first, stamp(&other, &source("1"), "cc 12"));
    }

    #[test]
    fn a_damaged_object_does_not_count_as_existing() {
        let dir = tempfile::tempdir().unwrap();
        let object = object_path(dir.path(), Peer::Rpmalloc);
        std::fs::write(&object, "object").unwrap();
        let field = String::new;
        let note = Note {
            name: "rpmalloc".to_string(),
            version: field(),
            origin: field(),
            compiler: field(),
            flags: "-DX=__attribute__((visibility(\"default\")))".to_string(),
            kind: "peer".to_string(),
            about: field(),
            stamp: field(),
            sha256: file_digest(&object).unwrap(),
        };
        std::fs::write(note_path(dir.path(), Peer::Rpmalloc), toml::to_string(&note).unwrap()).unwrap();
        assert_eq!(existing(dir.path(), Peer::Rpmalloc), Some(note));
        std::fs::write(&object, "obj").unwrap();
        assert_eq!(existing(dir.path(), Peer::Rpmalloc), None);
    }
}
