//! Under which names an object's functions may appear in a profile: where several symbols have one address (glibc's
//! `malloc` and `__libc_malloc`; two functions that the compiler found to be the same), callgrind picks one of them.

use std::path::Path;

use object::{Object, ObjectSymbol};

use crate::error::Error;

/// For each of `functions` that `path` defines, every symbol at its address, its own name first; nothing for one that
/// it does not define.
///
/// # Errors
/// [`Error::File`] and [`Error::NotElf`].
pub fn aliases(path: &Path, functions: &[&str]) -> Result<Vec<Vec<String>>, Error> {
    let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.to_path_buf(), source })?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| Error::NotElf { path: path.to_path_buf(), message: error.to_string() })?;
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
    use crate::tools::{Compilers, Language, run};

    #[test]
    fn functions_at_one_address_are_known_by_all_names() {
        let dir = tempfile::tempdir().unwrap();
        let (source, object) = (dir.path().join("a.c"), dir.path().join("a.so"));
        let text = "int here(void) { return 1; } int also(void) __attribute__((alias(\"here\")));\n\
            int there(void) { return 2; } extern int nowhere(void); int calls(void) { return nowhere(); }\n";
        std::fs::write(&source, text).unwrap();
        let mut compile = Compilers::find(false).unwrap().driver(Language::C);
        compile.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source);
        run(&mut compile, "compiling a.c", "gcc libc6-dev").unwrap();
        let found = aliases(&object, &["here", "there", "nowhere"]).unwrap();
        assert_eq!(found[0], ["here", "also"]);
        assert_eq!((found[1].as_slice(), found[2].len()), (["there".to_owned()].as_slice(), 0));
        assert!(matches!(aliases(&source, &["here"]), Err(Error::NotElf { .. })));
        assert!(matches!(aliases(dir.path(), &["here"]), Err(Error::File { .. })));
    }
}
