//! A build file for Ninja, as a generator of builds writes it: one statement for every object.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `modules` libraries of `sources` objects each, which are made of generated sources.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ninja {
    seed: u64,
    modules: NonZeroU32,
    sources: NonZeroU32,
}

impl Generate for Ninja {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(out, "ninja_required_version = 1.5\nflags = -O2 -g -Wall")?;
        writeln!(
            out,
            "rule make\n  command = generate $out\nrule cc\n  command = cc $flags $defines -c $in -o $out"
        )?;
        writeln!(out, "rule ar\n  command = ar rcs $out $in\nrule link\n  command = cc -o $out $in")?;
        let mut libraries = String::new();
        for module in 0..u64::from(self.modules.get()) {
            let name = format!("{}{module}", word(module));
            let mut objects = String::new();
            for source in 0..self.sources.get() {
                let file = format!("{name}/{}{source}", word(dice.below(5000)));
                writeln!(
                    out,
                    "build src/{file}.c: make\nbuild build/{file}.o: cc src/{file}.c || src/{name}/ready"
                )?;
                write!(out, "  defines =")?;
                for _ in 0..dice.between(1, 4) {
                    write!(out, " -D{}={}", word(dice.below(900)).to_uppercase(), dice.below(100))?;
                }
                writeln!(out)?;
                objects.push_str(&format!(" build/{file}.o"));
            }
            writeln!(out, "build src/{name}/ready: make\nbuild build/lib{name}.a: ar{objects}")?;
            libraries.push_str(&format!(" build/lib{name}.a"));
        }
        writeln!(out, "build build/program: link{libraries}\ndefault build/program")
    }
}
