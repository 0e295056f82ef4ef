//! A drawing in the FIG format (version 3.2) of Xfig: nested compounds of polylines, splines, ellipses and texts.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;
use super::vocabulary::word;

/// `groups` compounds of `objects` objects each, on sheets that overlap.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    seed: u64,
    groups: NonZeroU32,
    objects: NonZeroU32,
}

impl Generate for Figure {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        writeln!(out, "#FIG 3.2\nLandscape\nCenter\nMetric\nA4\n100.00\nSingle\n-2\n1200 2")?;
        for colour in FIRST_COLOUR..FIRST_COLOUR + COLOURS {
            writeln!(out, "0 {colour} #{:06x}", dice.below(1 << 24))?;
        }
        for _ in 0..self.groups.get() {
            writeln!(out, "6 0 0 {WIDTH} {HEIGHT}")?;
            for _ in 0..self.objects.get() {
                object(&mut dice, out)?;
            }
            writeln!(out, "-6")?;
        }
        Ok(())
    }
}

/// FIG's own colours are 0 to 31; those of a drawing follow.
const FIRST_COLOUR: u64 = 32;
const COLOURS: u64 = 40;

/// The page in FIG's units (1/1200 inch): A4 across.
const WIDTH: u64 = 14_000;
const HEIGHT: u64 = 9_900;

/// What every kind of object begins with: line style, thickness, pen and fill colour, depth, pen style, area fill, and
/// the length of dashes.
fn style(dice: &mut Dice) -> String {
    let (line, dash) = if dice.one_in(4) { (dice.between(1, 2), 4) } else { (0, 0) };
    let fill = if dice.one_in(3) { dice.between(0, 40).to_string() } else { "-1".to_owned() };
    format!(
        "{line} {} {} {} {} 0 {fill} {dash}.000",
        dice.between(1, 4),
        FIRST_COLOUR + dice.below(COLOURS),
        FIRST_COLOUR + dice.below(COLOURS),
        dice.between(10, 90)
    )
}

fn object(dice: &mut Dice, out: &mut dyn Write) -> io::Result<()> {
    let kind = dice.below(10);
    let style = style(dice);
    match kind {
        0..6 => {
            let points = dice.between(2, 60);
            let arrow = u64::from(dice.one_in(4));
            writeln!(out, "2 1 {style} 0 0 -1 {arrow} 0 {points}")?;
            if arrow == 1 {
                writeln!(out, "\t1 1 1.00 60.00 120.00")?;
            }
            points_of(dice, points, out)
        }
        6 => {
            let points = dice.between(3, 14);
            writeln!(out, "3 4 {style} 0 0 0 {points}")?;
            points_of(dice, points, out)?;
            // An X-spline's shape at each point: -1 passes through it, 1 only comes near, 0 is a corner.
            let ends = |at| at == 0 || at + 1 == points;
            let shapes = (0..points).map(|at| match (ends(at), dice.below(2)) {
                (true, _) => " 0.000",
                (false, 0) => " 1.000",
                (false, _) => " -1.000",
            });
            writeln!(out, "\t{}", shapes.collect::<String>())
        }
        7 => {
            let (x, y) = (dice.between(900, WIDTH - 900), dice.between(900, HEIGHT - 900));
            let (a, b) = (dice.between(20, 800), dice.between(20, 800));
            writeln!(out, "1 1 {style} 1 0.0000 {x} {y} {a} {b} {x} {y} {} {}", x + a, y + b)
        }
        _ => {
            let text: Vec<String> = (0..dice.between(1, 5)).map(|_| word(dice.zipf(4000))).collect();
            let text = text.join(" ");
            writeln!(
                out,
                "4 0 {} 50 0 {} {} 0.0000 4 150 {} {} {} {text}\\001",
                FIRST_COLOUR + dice.below(COLOURS),
                dice.below(35),
                dice.between(6, 24),
                90 * text.len(),
                dice.below(WIDTH),
                dice.below(HEIGHT)
            )
        }
    }
}

/// A walk over the sheet, five points a line.
fn points_of(dice: &mut Dice, points: u64, out: &mut dyn Write) -> io::Result<()> {
    let (mut x, mut y) = (dice.below(WIDTH), dice.below(HEIGHT));
    for at in 0..points {
        let (before, after) =
            (if at % 5 == 0 { "\t" } else { "" }, if at % 5 == 4 || at + 1 == points { "\n" } else { "" });
        write!(out, "{before} {x} {y}{after}")?;
        x = (x + dice.below(1200)).saturating_sub(600).min(WIDTH);
        y = (y + dice.below(1200)).saturating_sub(600).min(HEIGHT);
    }
    Ok(())
}
