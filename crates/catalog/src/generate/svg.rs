//! A drawing in SVG: groups of shapes and paths with gradients, transformed and blended.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `groups` groups of `shapes` shapes on a square of 1000 units.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Svg {
    seed: u64,
    groups: NonZeroU32,
    shapes: NonZeroU32,
}

const GRADIENTS: u64 = 8;

impl Generate for Svg {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1000\" height=\"1000\" viewBox=\"0 0 1000 1000\">"
        )?;
        writeln!(out, "<defs>")?;
        for at in 0..GRADIENTS {
            writeln!(
                out,
                "<linearGradient id=\"g{at}\"><stop offset=\"0\" stop-color=\"{}\"/>",
                colour(&mut dice)
            )?;
            writeln!(out, "<stop offset=\"1\" stop-color=\"{}\"/></linearGradient>", colour(&mut dice))?;
        }
        writeln!(out, "</defs>")?;
        for _ in 0..self.groups.get() {
            let (turn, x, y) = (dice.below(360), dice.below(1000), dice.below(1000));
            writeln!(
                out,
                "<g transform=\"translate({x} {y}) rotate({turn})\" opacity=\"0.{}\">",
                dice.between(3, 9)
            )?;
            for _ in 0..self.shapes.get() {
                shape(&mut dice, out)?;
            }
            writeln!(out, "</g>")?;
        }
        writeln!(out, "</svg>")
    }
}

fn colour(dice: &mut Dice) -> String {
    format!("#{:06x}", dice.below(1 << 24))
}

fn shape(dice: &mut Dice, out: &mut dyn Write) -> io::Result<()> {
    let fill = if dice.one_in(3) { format!("url(#g{})", dice.below(GRADIENTS)) } else { colour(dice) };
    let (x, y, width, height) = (dice.below(200), dice.below(200), dice.between(1, 90), dice.between(1, 90));
    match dice.below(3) {
        0 => {
            writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>")
        }
        1 => writeln!(out, "<ellipse cx=\"{x}\" cy=\"{y}\" rx=\"{width}\" ry=\"{height}\" fill=\"{fill}\"/>"),
        _ => {
            write!(out, "<path fill=\"{fill}\" stroke=\"{}\" d=\"M{x} {y}", colour(dice))?;
            for _ in 0..dice.between(2, 9) {
                write!(
                    out,
                    " Q{} {} {} {}",
                    dice.below(300),
                    dice.below(300),
                    dice.below(300),
                    dice.below(300)
                )?;
            }
            writeln!(out, "Z\"/>")
        }
    }
}
