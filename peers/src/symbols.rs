//! Which functions a shared object exports. If a manager lacks a member of the malloc family, glibc serves that call,
//! with blocks that are not glibc's.

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object, ObjectKind, ObjectSymbol};

use crate::error::{Error, IoContext};

/// The malloc family: what every manager must export.
pub const FAMILY: [&str; 11] = [
    "malloc",
    "free",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "malloc_usable_size",
];

/// C++ `operator new` and `operator delete` in every form: plain, array, sized, aligned, nothrow.
#[cfg(target_pointer_width = "64")]
pub const OPERATORS: [&str; 20] = [
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
];

/// The symbols that other objects can bind to.
///
/// # Errors
/// [`Error::NotElf`] when the file is no shared object, [`Error::File`] when it cannot be read.
pub fn exported(path: &Path) -> Result<BTreeSet<String>, Error> {
    let bytes = std::fs::read(path).context("read", path)?;
    let not_elf = |message: String| Error::NotElf { path: path.to_path_buf(), message };
    let file = object::File::parse(&*bytes).map_err(|e| not_elf(e.to_string()))?;
    if file.kind() != ObjectKind::Dynamic {
        return Err(not_elf(format!("it is a {:?} file", file.kind())));
    }
    Ok(file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && (symbol.is_global() || symbol.is_weak()))
        .filter_map(|symbol| symbol.name().ok().map(str::to_string))
        .collect())
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
