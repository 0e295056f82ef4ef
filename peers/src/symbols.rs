//! Which functions a shared object exports. If a manager lacks a member of the malloc family, glibc serves that call,
//! with blocks that are not glibc's.

use std::collections::BTreeSet;
use std::path::Path;

use heaptoll_elf::ElfError;

use crate::error::Error;

/// The symbols that other objects can bind to.
///
/// # Errors
/// [`Error::NotElf`] when the file is no shared object, [`Error::File`] when it cannot be read.
pub fn exported(path: &Path) -> Result<BTreeSet<String>, Error> {
    let not_elf = |message: String| Error::NotElf { path: path.to_path_buf(), message };
    let facts = heaptoll_elf::read(path).map_err(|error| match error {
        ElfError::Io(source) => Error::File { action: "read", path: path.to_path_buf(), source },
        other => not_elf(other.to_string()),
    })?;
    if !facts.dynamic_type {
        return Err(not_elf("it is no shared object".to_owned()));
    }
    Ok(facts.exports.into_iter().collect())
}

/// Proves that an object exports all of `wanted`.
///
/// # Errors
/// [`Error::Missing`] with the names that are not there, and those of [`exported`].
pub fn require(path: &Path, wanted: &[&str]) -> Result<(), Error> {
    let exported = exported(path)?;
    let missing: Vec<String> =
        wanted.iter().filter(|name| !exported.contains(**name)).map(ToString::to_string).collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::Missing { path: path.to_path_buf(), missing }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_elf::family::FAMILY;
    use std::process::Command;

    fn shared_object(dir: &Path, text: &str) -> std::path::PathBuf {
        let (source, object) = (dir.join("a.c"), dir.join("a.so"));
        std::fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-fno-builtin", "-o"]).arg(&object).arg(&source);
        assert!(compiler.status().unwrap().success());
        object
    }

    #[test]
    fn an_object_without_all_of_malloc_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let object = shared_object(
            dir.path(),
            "void *malloc(unsigned long n){return (void*)n;} void free(void*p){(void)p;}
             __attribute__((visibility(\"hidden\"))) void *calloc(unsigned long a, unsigned long b){return (void*)(a*b);}
             extern void *realloc(void*, unsigned long); void *use(void*p){return realloc(p, 1);}",
        );
        let Err(Error::Missing { missing, .. }) = require(&object, &FAMILY) else {
            panic!("must be refused")
        };
        assert!(!missing.contains(&"malloc".to_string()) && !missing.contains(&"free".to_string()));
        // One is hidden, the other only used.
        assert!(missing.contains(&"calloc".to_string()) && missing.contains(&"realloc".to_string()));
        assert_eq!(missing.len(), FAMILY.len() - 2);
    }

    #[test]
    fn files_that_are_no_shared_objects_are_distinguished() {
        let dir = tempfile::tempdir().unwrap();
        let text = dir.path().join("text.so");
        std::fs::write(&text, "not an object").unwrap();
        assert!(matches!(exported(&text), Err(Error::NotElf { .. })));
        assert!(matches!(exported(&dir.path().join("absent.so")), Err(Error::File { .. })));
    }
}
