//! Running text, one sentence a line.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `words` words out of `vocabulary`, drawn by Zipf's law.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    seed: u64,
    words: NonZeroU32,
    vocabulary: NonZeroU32,
}

impl Generate for Text {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let mut left = self.words.get();
        while left > 0 {
            let length = (dice.between(4, 18) as u32).min(left);
            for at in 0..length {
                let mut next = word(dice.zipf(u64::from(self.vocabulary.get())));
                if at == 0 {
                    next[..1].make_ascii_uppercase();
                }
                let after = match (at + 1 == length, dice.below(12)) {
                    (true, 0) => "?\n",
                    (true, 1) => "!\n",
                    (true, _) => ".\n",
                    (false, 0) => ", ",
                    (false, _) => " ",
                };
                write!(out, "{next}{after}")?;
            }
            left -= length;
        }
        Ok(())
    }
}
