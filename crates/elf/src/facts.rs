//! The properties of an ELF file that matter to preloading; nothing is executed.

use std::path::Path;

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, ReadRef};

use crate::error::{ElfError, damaged};
use crate::family::OWN_HEAP;
use crate::file;

/// Names that only an allocator defines; found in a program they betray one inside.
const ALLOCATORS: [&str; 12] = [
    "malloc",
    "free",
    "je_malloc",
    "_rjem_malloc",
    "mi_malloc",
    "tc_malloc",
    "rpmalloc",
    "dlmalloc",
    "GC_malloc",
    "sn_rust_alloc",
    "runtime.mallocgc",
    "_mi_malloc_generic",
];

/// The facts of one file.
#[derive(Debug)]
pub struct Elf {
    /// `ET_DYN`: a shared object or a position-independent program.
    pub dynamic_type: bool,
    /// `ET_EXEC` or `ET_DYN`, not an object file or a core.
    pub loadable: bool,
    /// `DF_1_PIE`: a program, though of type `ET_DYN`.
    pub pie: bool,
    /// `PT_INTERP`.
    pub loader: Option<String>,
    /// Whether Go's linker made it.
    pub is_go: bool,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`.
    pub needed: Vec<String>,
    /// Names of functions that other objects can bind to.
    pub exports: Vec<String>,
    /// Names from the symbol table that betray an allocator and are not exported.
    pub hidden: Vec<String>,
    /// Names of [`OWN_HEAP`] that it refers to and does not define.
    pub own_heap_calls: Vec<String>,
}

/// The machine that this heaptoll runs on, as errors call it.
pub fn own_machine() -> &'static str {
    file::machine_name(file::OWN_MACHINE)
}

/// Reads a file's facts.
///
/// # Errors
/// [`ElfError`]: the file cannot be read, or is no whole ELF file for this machine.
pub fn read(path: &Path) -> Result<Elf, ElfError> {
    let cache = file::open(path)?;
    let data = &cache;
    let length = data.len().unwrap_or(0);
    let file = file::parse(data)?;
    let endian = file.endian();
    let header = file.elf_header();
    let kind = header.e_type(endian);
    let mut facts = Elf {
        dynamic_type: kind == elf::ET_DYN,
        loadable: kind == elf::ET_DYN || kind == elf::ET_EXEC,
        pie: false,
        loader: None,
        is_go: file.section_by_name(".go.buildinfo").is_some(),
        soname: None,
        needed: Vec::new(),
        exports: Vec::new(),
        hidden: Vec::new(),
        own_heap_calls: Vec::new(),
    };
    facts.loader = loader(&file, data)?;
    for segment in file.elf_program_headers() {
        let end = segment.p_offset(endian).saturating_add(segment.p_filesz(endian));
        if segment.p_type(endian) == elf::PT_LOAD && end > length {
            return Err(ElfError::Damaged(format!(
                "a segment ends at byte {end}, the file at {length}; it is truncated"
            )));
        }
    }
    dynamic_section(&file, data, &mut facts).map_err(damaged)?;
    for symbol in file.dynamic_symbols() {
        if symbol.is_undefined()
            && let Ok(name) = symbol.name()
            && OWN_HEAP.contains(&name)
        {
            facts.own_heap_calls.push(name.to_owned());
        }
        if symbol.is_definition()
            && symbol.elf_symbol().st_visibility() != elf::STV_HIDDEN
            && symbol.is_global()
        {
            facts.exports.extend(symbol.name().ok().map(str::to_owned));
        }
    }
    for symbol in file.symbols() {
        if symbol.is_definition()
            && let Ok(name) = symbol.name()
            && ALLOCATORS.contains(&name)
            && !facts.exports.iter().any(|e| e == name)
        {
            facts.hidden.push(name.to_owned());
        }
    }
    facts.hidden.sort();
    facts.hidden.dedup();
    Ok(facts)
}

/// Whether a program has a loader, which would preload a layer. Only its headers are read.
///
/// # Errors
/// As [`read`].
pub fn has_loader(path: &Path) -> Result<bool, ElfError> {
    let cache = file::open(path)?;
    Ok(loader(&file::parse(&cache)?, &cache)?.is_some())
}

/// The path in `PT_INTERP`.
fn loader<'data, R: ReadRef<'data>>(
    file: &ElfFile64<'data, Endianness, R>,
    data: R,
) -> Result<Option<String>, ElfError> {
    let endian = file.endian();
    for segment in file.elf_program_headers() {
        if let Some(name) = segment.interpreter(endian, data).map_err(damaged)? {
            return Ok(Some(String::from_utf8_lossy(name).into_owned()));
        }
    }
    Ok(None)
}

fn dynamic_section<'data, R: ReadRef<'data>>(
    file: &ElfFile64<'data, Endianness, R>,
    data: R,
    facts: &mut Elf,
) -> object::Result<()> {
    let endian = file.endian();
    let sections = file.elf_section_table();
    let Some((entries, link)) = sections.dynamic(endian, data)? else { return Ok(()) };
    let strings = sections.strings(endian, data, link).unwrap_or_default();
    for entry in entries {
        let name = || {
            let offset = u32::try_from(entry.d_val(endian)).ok()?;
            Some(String::from_utf8_lossy(strings.get(offset).ok()?).into_owned())
        };
        match u32::try_from(entry.d_tag(endian)).unwrap_or(0) {
            elf::DT_NULL => break,
            elf::DT_SONAME => facts.soname = name(),
            elf::DT_NEEDED => facts.needed.extend(name()),
            elf::DT_FLAGS_1 => facts.pie = entry.d_val(endian) & u64::from(elf::DF_1_PIE) != 0,
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program, its first bytes changed by `change`, read again.
    fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Result<Elf, ElfError> {
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        change(&mut bytes);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        read(file.path())
    }

    #[test]
    fn this_program_has_a_loader_and_names_what_it_needs() {
        let facts = changed(|_| {}).unwrap();
        assert!(facts.loadable && facts.loader.is_some());
        assert!(facts.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", facts.needed);
        assert!(has_loader(Path::new("/proc/self/exe")).unwrap());
        assert!(matches!(has_loader(Path::new("/etc/passwd")), Err(ElfError::NotElf(_))));
        assert!(matches!(has_loader(Path::new("/no/such/file")), Err(ElfError::Io(_))));
    }

    #[test]
    fn truncated_files_and_counts_that_lead_out_of_them_are_damaged() {
        assert!(matches!(changed(|bytes| bytes.truncate(bytes.len() / 2)), Err(ElfError::Damaged(_))));
        assert!(matches!(
            changed(|bytes| bytes.truncate(20)),
            Err(ElfError::Damaged(_) | ElfError::NotElf(_))
        ));
        // e_phnum, e_phoff, e_shoff (ELF-64 Object File Format, Figure 2).
        assert!(changed(|bytes| bytes[56..58].copy_from_slice(&[0xfe, 0xff])).is_err());
        assert!(changed(|bytes| bytes[32..40].fill(0xff)).is_err());
        assert!(changed(|bytes| bytes[40..48].fill(0xff)).is_err());
    }

    #[test]
    fn another_machines_program_is_named() {
        let Err(ElfError::Foreign(machine)) = changed(|bytes| bytes[18..20].copy_from_slice(&[243, 0]))
        else {
            panic!("RISC-V is not this machine")
        };
        assert_eq!(machine, "RISC-V");
    }
}
