//! A text in Markdown: headings, paragraphs with emphasis and links, lists, quotations and code.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `sections` sections of some paragraphs and lists.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Markdown {
    seed: u64,
    sections: NonZeroU32,
}

impl Generate for Markdown {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        for _ in 0..self.sections.get() {
            writeln!(out, "{} {}\n", "#".repeat(dice.between(1, 4) as usize), words(&mut dice, 5))?;
            for _ in 0..dice.between(1, 5) {
                match dice.below(6) {
                    0 => {
                        for _ in 0..dice.between(2, 6) {
                            writeln!(out, "- {}\n  * {}", words(&mut dice, 8), words(&mut dice, 6))?;
                        }
                    }
                    1 => writeln!(out, "> {}\n> {}", words(&mut dice, 10), words(&mut dice, 10))?,
                    2 => writeln!(out, "    {} = {};", word(dice.below(900)), dice.below(900))?,
                    _ => paragraph(&mut dice, out)?,
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

fn words(dice: &mut Dice, most: u64) -> String {
    let words: Vec<String> = (0..dice.between(1, most)).map(|_| word(dice.zipf(6000))).collect();
    words.join(" ")
}

fn paragraph(dice: &mut Dice, out: &mut dyn Write) -> io::Result<()> {
    for _ in 0..dice.between(2, 7) {
        let link = word(dice.below(9000));
        let text = words(dice, 9);
        writeln!(
            out,
            "{text} *{}* [{}](https://example.org/{link}) `{link}` **{}**.",
            words(dice, 2),
            words(dice, 3),
            words(dice, 2)
        )?;
    }
    Ok(())
}
