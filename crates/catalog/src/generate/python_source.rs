//! A program in Python with types, written carelessly enough that a formatter has work.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `classes` classes of `methods` methods each, which call those before them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PythonSource {
    seed: u64,
    classes: NonZeroU32,
    methods: NonZeroU32,
}

impl Generate for PythonSource {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(out, "class C:\n    def __init__(self, start: int) -> None:\n        self.start = start")?;
        for class in 0..u64::from(self.classes.get()) {
            writeln!(out, "class C{class}(C):\n    '''{} {}'''", word(class), word(dice.below(5000)))?;
            for method in 0..u64::from(self.methods.get()) {
                self.method(&mut dice, class, method, out)?;
            }
        }
        Ok(())
    }
}

impl PythonSource {
    fn method(&self, dice: &mut Dice, class: u64, method: u64, out: &mut dyn Write) -> io::Result<()> {
        let name = word(dice.below(4000));
        writeln!(out, "    def m{method}(self,{name}: int,rest: list[int])->dict[str,int]:")?;
        writeln!(
            out,
            "        found:dict[str,int]={{'{}':{},\"{}\":{name}}}",
            word(dice.below(300)),
            dice.below(100),
            word(dice.below(300))
        )?;
        for _ in 0..dice.between(1, 4) {
            let (a, b, key) = (dice.below(1000), dice.between(1, 9), word(dice.below(300)));
            match dice.below(4) {
                0 => writeln!(
                    out,
                    "        for each in rest:\n            if each%{b}==0 : found['{key}']=each*{a}+self.start"
                )?,
                1 => writeln!(
                    out,
                    "        found['{key}']=sum([each*{b} for each in rest if each>{a}],{name})"
                )?,
                2 if method > 0 => writeln!(
                    out,
                    "        found.update(self.m{}({name}+{a},rest[:{b}]))",
                    dice.below(method)
                )?,
                2 | 3 if class > 0 => {
                    writeln!(
                        out,
                        "        found.update(C{}(self.start+{a}).m{}({name},[each for each in rest]))",
                        dice.below(class),
                        dice.below(u64::from(self.methods.get()))
                    )?;
                }
                _ => writeln!(out, "        while {name}>{a}: {name}-={b}")?,
            }
        }
        writeln!(out, "        return found")
    }
}
