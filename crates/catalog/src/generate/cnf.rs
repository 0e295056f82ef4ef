//! Questions for a SAT solver: random clauses of three literals.

use std::io::{self, Write};
use std::num::NonZeroU32;

use serde::Deserialize;

use super::dice::Dice;
use super::input::Generate;

/// `clauses` clauses over `variables` variables (DIMACS). Near 4.26 clauses a variable the question is hardest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cnf {
    seed: u64,
    variables: NonZeroU32,
    clauses: NonZeroU32,
}

impl Generate for Cnf {
    const VERSION: u32 = 1;

    fn generate(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut dice = Dice::new(self.seed);
        let variables = u64::from(self.variables.get());
        writeln!(out, "p cnf {variables} {}", self.clauses)?;
        for _ in 0..self.clauses.get() {
            for _ in 0..3 {
                let sign = if dice.one_in(2) { "-" } else { "" };
                write!(out, "{sign}{} ", dice.between(1, variables))?;
            }
            writeln!(out, "0")?;
        }
        Ok(())
    }
}
