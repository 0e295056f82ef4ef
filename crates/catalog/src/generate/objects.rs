//! An archive of object files (ELF for x86-64) as a compiler makes them with a section for each function: what a linker
//! reads.

use std::io::{self, Write};
use std::num::NonZeroU32;

use object::elf::{R_X86_64_64, R_X86_64_PLT32, SHF_ALLOC, SHF_MERGE, SHF_STRINGS};
use object::write::{Object, Relocation, SectionId, StandardSection, Symbol, SymbolId, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationFlags, SectionFlags, SectionKind, SymbolFlags,
};
use object::{SymbolKind, SymbolScope};
use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `files` object files with `functions` functions each, which call functions of the other files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objects {
    seed: u64,
    files: NonZeroU32,
    functions: NonZeroU32,
}

impl Generate for Objects {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        out.write_all(b"!<arch>\n")?;
        for number in 0..u64::from(self.files.get()) {
            let mut file = File::new(number);
            for function in 0..u64::from(self.functions.get()) {
                file.function(&mut dice, function, self).map_err(io::Error::other)?;
            }
            let bytes = file.object.write().map_err(io::Error::other)?;
            // A member's header: name, time, owner, group, mode, size, each padded with blanks.
            let (member, size) = (format!("m{number}.o/"), bytes.len());
            writeln!(out, "{member:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`", 0, 0, 0, 100_644)?;
            out.write_all(&bytes)?;
            if bytes.len() % 2 == 1 {
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    }
}

/// The name of a function that other files can call, as long as those of C++.
fn name(file: u64, function: u64) -> String {
    format!("_ZN{}{}_{file}_{function}Ev", word(file), word(function))
}

/// One object file while it is made.
struct File {
    object: Object<'static>,
    number: u64,
    strings: SectionId,
}

impl File {
    fn new(number: u64) -> Self {
        let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        object.add_file_symbol(format!("m{number}.c").into_bytes());
        let strings = object.add_section(Vec::new(), b".rodata.str1.1".to_vec(), SectionKind::ReadOnlyString);
        let flags = u64::from(SHF_ALLOC | SHF_MERGE | SHF_STRINGS);
        object.section_mut(strings).flags = SectionFlags::Elf { sh_flags: flags };
        File { object, number, strings }
    }

    /// Adds a function that loads strings and calls others, its entry in a table of pointers, and a variable.
    fn function(&mut self, dice: &mut Dice, number: u64, all: &Objects) -> Result<(), object::write::Error> {
        let name = name(self.number, number);
        let text =
            self.object.add_section(Vec::new(), format!(".text.{name}").into_bytes(), SectionKind::Text);
        let mut relocations = Vec::new();
        let mut code = Vec::new();
        for _ in 0..dice.between(1, 6) {
            if dice.one_in(3) {
                let string: Vec<String> = (0..dice.between(1, 4)).map(|_| word(dice.zipf(4000))).collect();
                let string = string.join(" ") + "\0";
                let at = self.object.append_section_data(self.strings, string.as_bytes(), 1);
                let string = self.object.section_symbol(self.strings);
                // mov rdi, imm64
                code.extend([0x48, 0xbf]);
                relocations.push((code.len(), string, at as i64, R_X86_64_64));
                code.extend([0; 8]);
            }
            let callee = self.callee(dice, all);
            // call rel32, counted from the end of the field
            code.push(0xe8);
            relocations.push((code.len(), callee, -4, R_X86_64_PLT32));
            code.extend([0; 4]);
        }
        code.push(0xc3);
        let size = code.len() as u64;
        let at = self.object.append_section_data(text, &code, 16);
        for (offset, symbol, addend, r_type) in relocations {
            let flags = RelocationFlags::Elf { r_type };
            self.object
                .add_relocation(text, Relocation { offset: at + offset as u64, symbol, addend, flags })?;
        }
        let symbol =
            self.define(&name, SymbolSection::Section(text), SymbolKind::Text, size, SymbolScope::Dynamic);

        let data = self.object.section_id(StandardSection::Data);
        let at = self.object.append_section_data(data, &[0; 8], 8);
        let flags = RelocationFlags::Elf { r_type: R_X86_64_64 };
        self.object.add_relocation(data, Relocation { offset: at, symbol, addend: 0, flags })?;
        let variable = self.define(
            &format!("v{number}"),
            SymbolSection::None,
            SymbolKind::Data,
            0,
            SymbolScope::Compilation,
        );
        let zeros = self.object.section_id(StandardSection::UninitializedData);
        self.object.add_symbol_bss(variable, zeros, dice.between(1, 64), 8);
        Ok(())
    }

    /// Any function of any file.
    fn callee(&mut self, dice: &mut Dice, all: &Objects) -> SymbolId {
        let file = dice.below(u64::from(all.files.get()));
        let name = name(file, dice.below(u64::from(all.functions.get())));
        match self.object.symbol_id(name.as_bytes()) {
            Some(known) => known,
            None => {
                self.define(&name, SymbolSection::Undefined, SymbolKind::Unknown, 0, SymbolScope::Unknown)
            }
        }
    }

    /// Adds a symbol, or defines one that was called before it was there.
    fn define(
        &mut self,
        name: &str,
        section: SymbolSection,
        kind: SymbolKind,
        size: u64,
        scope: SymbolScope,
    ) -> SymbolId {
        let symbol = Symbol {
            name: name.as_bytes().to_vec(),
            value: 0,
            size,
            kind,
            scope,
            weak: false,
            section,
            flags: SymbolFlags::None,
        };
        match self.object.symbol_id(name.as_bytes()) {
            Some(known) => {
                *self.object.symbol_mut(known) = symbol;
                known
            }
            None => self.object.add_symbol(symbol),
        }
    }
}
