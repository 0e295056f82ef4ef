//! Opens a file and recognises an ELF file for this machine.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::elf;
use object::read::ReadCache;
use object::read::elf::{ElfFile64, FileHeader};
use object::{Endianness, FileKind, ReadRef};
use rustix::fs::OFlags;

use crate::error::{ElfError, damaged};

#[cfg(target_arch = "x86_64")]
pub(crate) const OWN_MACHINE: u16 = elf::EM_X86_64;
#[cfg(target_arch = "aarch64")]
pub(crate) const OWN_MACHINE: u16 = elf::EM_AARCH64;

/// A machine as errors name it.
pub(crate) fn machine_name(machine: u16) -> &'static str {
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

/// Opens what may hold a program. The path may come from a process: a FIFO is not waited for, and a device not opened.
/// Read as needed: a browser's binary has hundreds of megabytes, of which a few tables matter here.
pub(crate) fn open(path: &Path) -> Result<ReadCache<fs::File>, ElfError> {
    let is_special = |about: fs::Metadata| !about.is_file() && !about.is_dir();
    if is_special(fs::metadata(path).map_err(ElfError::Io)?) {
        return Err(ElfError::Io(io::Error::other("it is neither a file nor a folder")));
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = fs::File::options().read(true).custom_flags(flags).open(path).map_err(ElfError::Io)?;
    Ok(ReadCache::new(file))
}

/// The tables of an ELF file of 64 bits for this machine.
pub(crate) fn parse<'data, R: ReadRef<'data>>(data: R) -> Result<ElfFile64<'data, Endianness, R>, ElfError> {
    match FileKind::parse(data) {
        Ok(FileKind::Elf64) => {}
        Ok(FileKind::Elf32) => {
            let machine = data.read_bytes_at(18, 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
            let x32 = machine == elf::EM_X86_64;
            return Err(ElfError::Foreign(if x32 { "x32" } else { machine_name(machine) }.to_owned()));
        }
        _ => {
            let length = data.len().unwrap_or(0).min(512);
            return Err(ElfError::NotElf(file_type(data.read_bytes_at(0, length).unwrap_or_default())));
        }
    }
    let file = ElfFile64::<Endianness, _>::parse(data).map_err(damaged)?;
    let machine = file.elf_header().e_machine(file.endian());
    if machine == OWN_MACHINE { Ok(file) } else { Err(ElfError::Foreign(machine_name(machine).to_owned())) }
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
