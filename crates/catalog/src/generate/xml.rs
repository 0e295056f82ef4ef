//! An XML document: the records of a library, with nested elements, attributes and mixed text.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `records` books by some hundreds of authors.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Xml {
    seed: u64,
    records: NonZeroU32,
}

impl Generate for Xml {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<library>")?;
        for number in 0..self.records.get() {
            writeln!(
                out,
                "  <book id=\"b{number}\" year=\"{}\" shelf=\"{}\">",
                dice.between(1850, 2020),
                dice.zipf(40)
            )?;
            writeln!(out, "    <title>{}</title>", words(&mut dice, 2, 7))?;
            for _ in 0..dice.between(1, 3) {
                let author = dice.zipf(300);
                writeln!(
                    out,
                    "    <author><first>{}</first><last>{}</last></author>",
                    word(author % 60),
                    word(author)
                )?;
            }
            writeln!(
                out,
                "    <price currency=\"{}\">{}.{:02}</price>",
                dice.pick(&["EUR", "GBP", "USD"]),
                dice.between(3, 90),
                dice.below(100)
            )?;
            for _ in 0..dice.below(4) {
                let (before, inside, after) =
                    (words(&mut dice, 3, 9), words(&mut dice, 1, 2), words(&mut dice, 2, 9));
                writeln!(
                    out,
                    "    <note>{before} <em>{inside}</em> {after} &amp; {}</note>",
                    dice.below(1000)
                )?;
            }
            writeln!(out, "  </book>")?;
        }
        writeln!(out, "</library>")
    }
}

fn words(dice: &mut Dice, least: u64, most: u64) -> String {
    let words: Vec<String> = (0..dice.between(least, most)).map(|_| word(dice.zipf(4000))).collect();
    words.join(" ")
}
