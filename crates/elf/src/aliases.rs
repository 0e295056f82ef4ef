//! Under which names an object's functions may appear in a profile: where several symbols have one address (glibc's
//! `malloc` and `__libc_malloc`; two functions that the compiler found to be the same), callgrind picks one of them.

use std::path::Path;

use object::{Object, ObjectSymbol};

use crate::error::ElfError;
use crate::file;

/// For each of `functions` that `path` defines, every symbol at its address, its own name first; nothing for one that
/// it does not define.
///
/// # Errors
/// [`ElfError`].
pub fn aliases(path: &Path, functions: &[&str]) -> Result<Vec<Vec<String>>, ElfError> {
    let cache = file::open(path)?;
    let file = file::parse(&cache)?;
    let defined: Vec<(&str, u64)> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter(|symbol| symbol.is_definition() && symbol.address() != 0)
        // A version may be appended: `pvalloc@GLIBC_2.2.5`.
        .filter_map(|symbol| Some((symbol.name().ok()?.split('@').next()?, symbol.address())))
        .collect();
    let of = |function: &&str| -> Vec<String> {
        let Some((own, address)) = defined.iter().find(|(name, _)| name == function) else { return vec![] };
        let mut names = vec![(*own).to_owned()];
        for (name, at) in &defined {
            if at == address && !names.iter().any(|known| known == name) {
                names.push((*name).to_owned());
            }
        }
        names
    };
    Ok(functions.iter().map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn functions_at_one_address_are_known_by_all_names() {
        let dir = tempfile::tempdir().unwrap();
        let (source, object) = (dir.path().join("a.c"), dir.path().join("a.so"));
        let text = "int here(void) { return 1; } int also(void) __attribute__((alias(\"here\")));\n\
            int there(void) { return 2; } extern int nowhere(void); int calls(void) { return nowhere(); }\n";
        std::fs::write(&source, text).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source);
        assert!(compile.status().unwrap().success());
        let found = aliases(&object, &["here", "there", "nowhere"]).unwrap();
        assert_eq!(found[0], ["here", "also"]);
        assert_eq!((found[1].as_slice(), found[2].len()), (["there".to_owned()].as_slice(), 0));
        assert!(matches!(aliases(&source, &["here"]), Err(ElfError::NotElf(_))));
        assert!(aliases(dir.path(), &["here"]).is_err());
    }
}
