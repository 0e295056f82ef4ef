//! A PostScript document: pages of filled and stroked curves, clipped patterns and lines of text in a built-in font.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `pages` pages with `shapes` drawings each.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postscript {
    seed: u64,
    pages: NonZeroU32,
    shapes: NonZeroU32,
}

impl Generate for Postscript {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(out, "%!PS-Adobe-3.0\n%%Pages: {}\n%%EndComments", self.pages)?;
        for page in 1..=self.pages.get() {
            writeln!(out, "%%Page: {page} {page}\ngsave")?;
            for _ in 0..self.shapes.get() {
                shape(&mut dice, out)?;
            }
            writeln!(out, "grestore showpage")?;
        }
        writeln!(out, "%%EOF")
    }
}

fn shape(dice: &mut Dice, out: &mut dyn Write) -> io::Result<()> {
    let mut point = || format!("{} {}", dice.below(595), dice.below(842));
    let (start, first, second, end) = (point(), point(), point(), point());
    let grey = dice.below(10);
    match dice.below(5) {
        0 => writeln!(
            out,
            "newpath {start} moveto {first} {second} {end} curveto closepath .{grey} setgray fill"
        ),
        1 => writeln!(
            out,
            "newpath {start} moveto {first} {second} {end} curveto {} setlinewidth [{} 3] 0 setdash stroke",
            dice.between(1, 9),
            dice.between(2, 9)
        ),
        2 => writeln!(
            out,
            "gsave newpath {start} {} 0 360 arc clip newpath {first} moveto {end} lineto 12 setlinewidth stroke \
             grestore",
            dice.between(9, 90)
        ),
        _ => {
            write!(out, "/{} {} selectfont {start} moveto (", dice.pick(&FONTS), dice.between(6, 30))?;
            for _ in 0..dice.between(2, 9) {
                write!(out, "{} ", word(dice.zipf(4000)))?;
            }
            writeln!(out, ") show")
        }
    }
}

const FONTS: [&str; 4] = ["Times-Roman", "Helvetica-Bold", "Courier", "Times-Italic"];
