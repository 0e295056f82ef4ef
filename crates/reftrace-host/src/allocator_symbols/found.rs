//! The families whose routines a file contains, by its own symbol table. Nothing is executed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use heaptoll_elf::{ElfError, defined_names};
use heaptoll_reftrace::Routine;

use crate::allocator_symbols::names;
use crate::allocator_symbols::table::Table;

/// A family, as a file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Its name; of a part the name of the whole.
    pub name: String,
    /// Whether it only forwards to another, where there is one.
    pub forwards: bool,
    /// Whether the file has a function by which it forwards to malloc.
    pub sends_to_malloc: bool,
    /// Symbols of routines that make blocks.
    pub allocates: Vec<String>,
    /// Symbols of routines that free blocks, or may do so by resizing them.
    pub frees: Vec<String>,
}

impl Found {
    /// Whether both ends of a block's life can be seen.
    pub fn is_whole(&self) -> bool {
        !self.allocates.is_empty() && !self.frees.is_empty()
    }
}

/// The families of which a file has a routine, in the order of the table.
///
/// # Errors
/// [`ElfError`]: the file cannot be read, or is no whole ELF file for this machine.
pub fn in_file(table: &Table, file: &Path) -> Result<Vec<Found>, ElfError> {
    let names: BTreeSet<String> = defined_names(file)?.into_iter().collect();
    let mut found: BTreeMap<usize, Found> = BTreeMap::new();
    for (index, family) in table.families().iter().enumerate() {
        let whole = |name: &String| table.families().iter().position(|other| other.name == *name);
        let place = family.part_of.as_ref().and_then(whole).unwrap_or(index);
        let of_signs = family.symbols.iter().filter(|symbol| symbol.is_sign).map(|symbol| &symbol.name);
        if family.has_signs && !of_signs.chain(&family.inside).any(|name| contains(&names, name)) {
            continue;
        }
        for symbol in &family.symbols {
            if !contains(&names, &symbol.name) {
                continue;
            }
            let one = found.entry(place).or_insert_with(|| Found {
                name: table.families()[place].name.clone(),
                forwards: family.forwards,
                sends_to_malloc: family.sends_to_malloc.iter().any(|pattern| contains(&names, pattern)),
                ..Found::default()
            });
            match symbol.routine {
                Routine::UsableSize => {}
                routine if routine.frees() => one.frees.push(symbol.name.clone()),
                _ => one.allocates.push(symbol.name.clone()),
            }
        }
    }
    Ok(found.into_values().collect())
}

/// The routines of C by which a file makes and frees blocks itself: of a static program its malloc.
///
/// # Errors
/// As [`in_file`].
pub fn of_c(file: &Path) -> Result<Found, ElfError> {
    let names: BTreeSet<String> = defined_names(file)?.into_iter().collect();
    let there = |wanted: &[&str]| -> Vec<String> {
        wanted.iter().filter(|name| names.contains(**name)).map(|name| (*name).to_owned()).collect()
    };
    Ok(Found {
        name: "malloc".into(),
        allocates: there(&["malloc", "__libc_malloc"]),
        frees: there(&["free", "__libc_free"]),
        ..Found::default()
    })
}

fn contains(names: &BTreeSet<String>, pattern: &str) -> bool {
    match pattern.contains('*') {
        true => names.iter().any(|name| names::fits(pattern, name)),
        false => names.contains(pattern),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn names_that_others_have_too_are_no_family_without_its_signs() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("menu.c"), folder.path().join("menu"));
        let text = "__attribute__((noipa)) void *mi_new(char *name) { return name; }\n\
            __attribute__((noipa)) void mi_free(void *item) { (void)item; }\n\
            int main(void) { mi_free(mi_new(\"open\")); return 0; }";
        std::fs::write(&source, text).unwrap();
        assert!(Command::new("cc").arg("-o").arg(&program).arg(&source).status().unwrap().success());
        let table =
            Table::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("allocator-symbols.toml")).unwrap();
        assert_eq!(in_file(&table, &program).unwrap(), []);
    }

    #[test]
    fn local_functions_and_those_of_parts_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("p.c"), folder.path().join("p"));
        let text = "__attribute__((noipa)) static void *mi_heap_malloc(void *h, unsigned long n) { (void)n; return h; }\n\
            __attribute__((noipa)) static void mi_free(void *p) { (void)p; }\n\
            __attribute__((noipa)) static void _mi_malloc_generic(void) { __asm__ volatile (\"\"); }\n\
            int main(void) { _mi_malloc_generic(); mi_free(mi_heap_malloc(0, 1)); return 0; }";
        std::fs::write(&source, text).unwrap();
        assert!(Command::new("cc").arg("-o").arg(&program).arg(&source).status().unwrap().success());
        let table =
            Table::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("allocator-symbols.toml")).unwrap();
        let [found] = &in_file(&table, &program).unwrap()[..] else { panic!("one family") };
        assert_eq!((found.name.as_str(), found.is_whole()), ("mimalloc", true));
        assert_eq!(
            (&found.allocates[..], &found.frees[..]),
            (&["mi_heap_malloc".to_owned()][..], &["mi_free".to_owned()][..])
        );
        assert!(Command::new("strip").arg(&program).status().unwrap().success());
        assert_eq!(in_file(&table, &program).unwrap(), []);
    }
}
