//! A question for a solver of linear programs: which of many offers cover all needs at the least cost?

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `rows` needs, each covered by some of `columns` offers (CPLEX's LP format).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinearProgram {
    seed: u64,
    rows: NonZeroU32,
    columns: NonZeroU32,
}

impl Generate for LinearProgram {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let columns = u64::from(self.columns.get());
        writeln!(out, "Minimize\n cost:")?;
        for at in 0..columns {
            writeln!(out, " + {} x{at}", dice.between(10, 99))?;
        }
        writeln!(out, "Subject To")?;
        for row in 0..self.rows.get() {
            write!(out, " r{row}:")?;
            // Consecutive offers from a random one on, so that none is named twice in a row.
            let (first, step) = (dice.below(columns), dice.between(1, 7));
            for at in 0..dice.between(3, 12).min(columns) {
                let column = if step * 12 < columns { (first + at * step) % columns } else { at };
                write!(out, " + {} x{column}", dice.between(1, 9))?;
            }
            writeln!(out, " >= {}", dice.between(20, 200))?;
        }
        writeln!(out, "End")
    }
}
