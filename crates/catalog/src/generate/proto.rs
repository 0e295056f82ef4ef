//! Descriptions of messages in the language of Protocol Buffers.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `messages` messages of `fields` fields each, which hold scalars and messages before them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proto {
    seed: u64,
    messages: NonZeroU32,
    fields: NonZeroU32,
}

impl Generate for Proto {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(out, "syntax = \"proto3\";\npackage records;")?;
        for message in 0..u64::from(self.messages.get()) {
            writeln!(out, "// {} {}.\nmessage M{message} {{", word(message), word(dice.below(9000)))?;
            for field in 1..=self.fields.get() {
                let kind = match dice.below(6) {
                    0 if message > 0 => format!("M{}", dice.below(message)),
                    1 => "string".to_owned(),
                    2 => format!("map<string, {}>", dice.pick(&["int32", "bytes", "double"])),
                    3 => format!("repeated {}", dice.pick(&["int64", "string", "fixed32"])),
                    _ => dice.pick(&["int32", "uint64", "bool", "bytes", "double"]).to_owned(),
                };
                writeln!(out, "  {kind} {}_{field} = {field};", word(dice.zipf(3000)))?;
            }
            writeln!(out, "}}")?;
        }
        Ok(())
    }
}
