//! A Makefile of the kind that a generated build system writes: many modules, each with its own variables, lists
//! derived from lists, and an explicit dependency line for every object.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `modules` archives of `sources` objects each, which depend on some of `headers` headers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Makefile {
    seed: u64,
    modules: NonZeroU32,
    sources: NonZeroU32,
    headers: NonZeroU32,
}

impl Generate for Makefile {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let modules = u64::from(self.modules.get());
        let sources = u64::from(self.sources.get());
        let headers = u64::from(self.headers.get());
        writeln!(out, "MAKEFLAGS += --no-builtin-rules\nCC := cc\nCFLAGS := -O2 -g -Wall")?;
        writeln!(out, "objects-of = $(patsubst %.c,build/$(1)/%.o,$(sort $($(1)_sources)))")?;
        writeln!(
            out,
            "flags-of = $(CFLAGS) $(addprefix -I,$($(1)_include)) $(addprefix -D,$($(1)_defines))"
        )?;
        // What a recipe derives from its own prerequisites, as Makefiles that track headers do; it prints only a count.
        writeln!(out, "guard = $(subst /,_,$(patsubst include/%.h,GUARD_%,$(1)))")?;
        writeln!(out, "guards = -DGUARDS=$(words $(sort $(foreach header,$(1),$(call guard,$(header)))))")?;
        writeln!(out, ".PHONY: all\nall: build/program")?;
        for header in 0..headers {
            writeln!(out, "include/{}.h:", word(header))?;
        }
        let mut names = Vec::new();
        for module in 0..modules {
            let name = format!("{}{module}", word(module));
            writeln!(out, "\n{name}_include := include include/{name} $(patsubst %,include/%,{name}/api)")?;
            write!(out, "{name}_defines :=")?;
            for _ in 0..dice.between(2, 6) {
                write!(out, " {}={}", word(dice.below(900)).to_uppercase(), dice.below(100))?;
            }
            write!(out, "\n{name}_sources :=")?;
            for source in 0..sources {
                write!(out, " {}{source}.c", word(dice.below(5000)))?;
            }
            writeln!(out, "\n{name}_objects := $(call objects-of,{name})")?;
            writeln!(out, "$({name}_objects): private flags = $(call flags-of,{name})")?;
            writeln!(out, "$({name}_objects): build/{name}/%.o: | build/{name}")?;
            writeln!(out, "\t$(CC) $(flags) $(call guards,$^) -c -o $@ src/{name}/$*.c")?;
            writeln!(out, "build/{name}:\n\tmkdir -p $@")?;
            for source in 0..sources {
                write!(out, "$(word {},$({name}_objects)):", source + 1)?;
                for _ in 0..dice.between(10, 40) {
                    write!(out, " include/{}.h", word(dice.below(headers)))?;
                }
                writeln!(out)?;
            }
            writeln!(out, "build/lib{name}.a: $({name}_objects)\n\tar rcs $@ $^")?;
            names.push(name);
        }
        write!(out, "\nmodules :=")?;
        for name in &names {
            write!(out, " {name}")?;
        }
        writeln!(out, "\nbuild/program: $(foreach module,$(modules),build/lib$(module).a)\n\t$(CC) -o $@ $^")
    }
}
