//! A Boolean function with several outputs as a Berkeley PLA, the input of the espresso minimiser.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `terms` random product terms over `inputs` variables, each in at least one of `outputs` functions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pla {
    seed: u64,
    inputs: NonZeroU32,
    outputs: NonZeroU32,
    terms: NonZeroU32,
}

impl Generate for Pla {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let outputs = u64::from(self.outputs.get());
        writeln!(out, ".i {}\n.o {outputs}\n.p {}\n.type f", self.inputs, self.terms)?;
        for _ in 0..self.terms.get() {
            for _ in 0..self.inputs.get() {
                // Three variables in ten are free, so that terms overlap and can be merged.
                let value = if dice.below(10) < 3 { "-" } else { dice.pick(&["0", "1"]) };
                write!(out, "{value}")?;
            }
            let certain = dice.below(outputs);
            write!(out, " ")?;
            for output in 0..outputs {
                let on = output == certain || dice.one_in(4);
                write!(out, "{}", if on { "1" } else { "0" })?;
            }
            writeln!(out)?;
        }
        writeln!(out, ".e")
    }
}
