//! The variables that a file keeps in writable memory.

use std::path::Path;

use object::elf::SHF_WRITE;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionFlags, SymbolKind};

use crate::error::ElfError;
use crate::file;

/// The variables of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Data {
    /// Address of the first byte that is loaded, in the file's own address space.
    pub first: u64,
    /// Those with a size, by address; of several at one address the first.
    pub variables: Vec<Variable>,
}

/// A variable in writable memory: initialised or not, exported or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name as in the file.
    pub name: String,
    /// In the file's own address space.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
}

/// The variables that a file has in writable memory, but those that each thread has its own of. Of a stripped file they are
/// those that it exports.
///
/// # Errors
/// [`ElfError`].
pub fn data(path: &Path) -> Result<Data, ElfError> {
    let cache = file::open(path)?;
    let file = file::parse(&cache)?;
    let is_writable = |section: object::SectionIndex| {
        let flags = file.section_by_index(section).map(|section| section.flags());
        matches!(flags, Ok(SectionFlags::Elf { sh_flags }) if sh_flags & u64::from(SHF_WRITE) != 0)
    };
    let mut variables: Vec<Variable> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Data && symbol.size() > 0)
        .filter(|symbol| symbol.section_index().is_some_and(is_writable))
        .filter_map(|symbol| {
            let name = symbol.name().ok()?.split('@').next()?.to_owned();
            Some(Variable { name, address: symbol.address(), bytes: symbol.size() })
        })
        .collect();
    variables.sort_by_key(|variable| variable.address);
    variables.dedup_by_key(|variable| variable.address);
    let first = file.segments().map(|segment| segment.address()).min().unwrap_or(0);
    Ok(Data { first, variables })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn variables_in_writable_memory_are_found_with_their_sizes() {
        let dir = tempfile::tempdir().unwrap();
        let (source, object) = (dir.path().join("a.c"), dir.path().join("a.so"));
        let text = "static char zeroes[5000]; int set[100] = { 7 }; const int constant[50] = { 8 };\n\
            extern int also[100] __attribute__((alias(\"set\"))); __thread char own[300];\n\
            const char *const relocated[4] = { zeroes }; int code(void) { return zeroes[set[3]] + own[2]; }\n";
        std::fs::write(&source, text).unwrap();
        let mut compile = Command::new("cc");
        compile.args(["-O0", "-shared", "-fPIC", "-o"]).arg(&object).arg(&source);
        assert!(compile.status().unwrap().success());
        let found = data(&object).unwrap();
        let sizes: Vec<u64> = found.variables.iter().map(|variable| variable.bytes).collect();
        assert!(sizes.contains(&5000) && sizes.contains(&400) && sizes.contains(&32), "{found:?}");
        assert!(!sizes.contains(&200) && !sizes.contains(&300), "{found:?}");
        assert_eq!(sizes.iter().filter(|size| **size == 400).count(), 1, "one of two names");
        assert!(found.variables.is_sorted_by_key(|variable| variable.address));
        assert!(matches!(data(&source), Err(ElfError::NotElf(_))));
    }
}
