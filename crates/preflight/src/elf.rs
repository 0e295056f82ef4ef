//! The properties of an ELF file that matter to preloading; nothing is executed.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::elf;
use object::read::ReadCache;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSymbol, ReadRef};

/// Members of the malloc family that a manager is expected to define.
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
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`.
    pub needed: Vec<String>,
    /// Names of functions that other objects can bind to.
    pub exports: Vec<String>,
    /// Names from the symbol table that betray an allocator and are not exported.
    pub hidden: Vec<String>,
}

/// Why a file is no ELF file of use.
#[derive(Debug)]
pub enum ElfError {
    /// It cannot be read.
    Io(io::Error),
    /// It is not ELF at all; the text names its likely type.
    NotElf(String),
    /// ELF for something else, in words.
    Foreign(String),
    /// ELF whose tables lead out of the file.
    Damaged(String),
}

/// The machine that this heaptoll runs on, as [`machine_name`] calls it.
pub fn own_machine() -> &'static str {
    machine_name(OWN_MACHINE)
}

#[cfg(target_arch = "x86_64")]
const OWN_MACHINE: u16 = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
const OWN_MACHINE: u16 = elf::EM_AARCH64;

fn machine_name(machine: u16) -> &'static str {
    match machine {
        elf::EM_X86_64 => "64-bit x86-64",
        elf::EM_AARCH64 => "64-bit AArch64",
        elf::EM_386 => "32-bit x86",
        elf::EM_ARM => "32-bit Arm",
        elf::EM_RISCV => "RISC-V",
        elf::EM_PPC64 => "64-bit PowerPC",
        elf::EM_S390 => "S/390",
        _ => "another machine",
    }
}

/// Opens what may hold a program. The path may be a process's word: a FIFO is not waited for, and a device not opened.
fn open(path: &Path) -> io::Result<fs::File> {
    let is_special = |about: fs::Metadata| !about.is_file() && !about.is_dir();
    if is_special(fs::metadata(path)?) {
        return Err(io::Error::other("it is neither a file nor a folder"));
    }
    fs::File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// Reads a file's facts.
pub fn read(path: &Path) -> Result<Elf, ElfError> {
    // Read as needed: a browser's binary has hundreds of megabytes, of which a few tables matter here.
    let cache = ReadCache::new(open(path).map_err(ElfError::Io)?);
    let data = &cache;
    let length = data.len().unwrap_or(0);
    match FileKind::parse(data) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => {
            let machine = data.read_bytes_at(18, 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
            let x32 = machine == elf::EM_X86_64;
            return Err(ElfError::Foreign(if x32 { "x32" } else { machine_name(machine) }.to_owned()));
        }
        _ => {
            return Err(ElfError::NotElf(file_type(
                data.read_bytes_at(0, length.min(512)).unwrap_or_default(),
            )));
        }
    }
    let damaged = |error: object::Error| ElfError::Damaged(error.to_string());
    let file = ElfFile64::<Endianness, _>::parse(data).map_err(damaged)?;
    let endian = file.endian();
    let header = file.elf_header();
    let machine = header.e_machine(endian);
    if machine != OWN_MACHINE {
        return Err(ElfError::Foreign(machine_name(machine).to_owned()));
    }
    let kind = header.e_type(endian);
    let mut facts = Elf {
        dynamic_type: kind == elf::ET_DYN,
        loadable: kind == elf::ET_DYN || kind == elf::ET_EXEC,
        pie: false,
        loader: None,
        soname: None,
        needed: Vec::new(),
        exports: Vec::new(),
        hidden: Vec::new(),
    };
    for segment in file.elf_program_headers() {
        let end = segment.p_offset(endian).saturating_add(segment.p_filesz(endian));
        if segment.p_type(endian) == elf::PT_LOAD && end > length {
            return Err(ElfError::Damaged(format!(
                "a segment ends at byte {end}, the file at {}; it is truncated",
                length
            )));
        }
        if let Some(name) = segment.interpreter(endian, data).map_err(damaged)? {
            facts.loader = Some(String::from_utf8_lossy(name).into_owned());
        }
    }
    dynamic_section(&file, data, &mut facts).map_err(damaged)?;
    for symbol in file.dynamic_symbols() {
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

/// A first guess, from its beginning, at what a file is that is not ELF.
fn file_type(data: &[u8]) -> String {
    let text = String::from_utf8_lossy(data);
    if data.is_empty() {
        "the file is empty".to_owned()
    } else if data.starts_with(b"!<arch>") {
        "it is a static archive".to_owned()
    } else if text.contains("GNU ld script") || text.contains("INPUT(") || text.contains("INPUT (") {
        "it is a linker script, not the library itself; give the .so.N file that it names".to_owned()
    } else if data.starts_with(b"#!") {
        "it is a script".to_owned()
    } else if data.starts_with(b"\x7fELF") {
        "its ELF header is cut short".to_owned()
    } else {
        "it does not begin with an ELF header".to_owned()
    }
}
