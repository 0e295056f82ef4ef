//! When a stack that fails is not tried again.

use crate::experiment::Experiment;
use crate::observation::{Observation, Outcome};

/// A stack that failed this often in a row on a program, and not less often than it ran well, is not tried again. A
/// program that fails now and then goes on.
const GIVE_UP_AFTER: usize = 2;

/// Whether a server was never ready: another try would wait as long for the same.
pub(crate) fn never_ready(row: &Observation) -> bool {
    matches!(row.outcome, Outcome::ServeFailed(_))
        && row.serve.as_ref().is_some_and(|serve| serve.ready_s == 0.0)
}

/// Whether a stack is not tried again on its program.
pub fn given_up(experiment: &Experiment, program: &str, stack: &str) -> bool {
    let rows = experiment.rows(program, stack).rev();
    let rows = rows.filter(|row| row.phase.is_measured() && row.outcome != Outcome::Interrupted);
    if rows.clone().take(1).any(never_ready) {
        return true;
    }
    let newest = rows.clone().take(GIVE_UP_AFTER);
    // All rows are counted only then: this is called before each run.
    newest.filter(|row| !row.outcome.is_ok()).count() == GIVE_UP_AFTER && {
        let good = rows.clone().filter(|row| row.outcome.is_ok()).count();
        2 * good <= rows.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{experiment, row};

    /// Whether a stack is given up after rows that ran well (`.`) and that failed (`x`).
    fn gives_up(rows: &str) -> bool {
        let mut made = experiment(&["glibc"]);
        made.observations = (0..)
            .zip(rows.chars())
            .map(|(number, how)| {
                let outcome = if how == 'x' { Outcome::Exit(42) } else { Outcome::Ok };
                Observation { outcome, ..row("glibc", number, 1.0, 1000) }
            })
            .collect();
        given_up(&made, "prog", "glibc")
    }

    /// Before, two failures in a row among many good runs ended the experiment, as "interrupted".
    #[test]
    fn a_program_that_fails_now_and_then_goes_on_and_one_that_fails_from_the_start_or_mostly_does_not() {
        for going_on in ["", "x", "x.", "...xx", "..x..xx"] {
            assert!(!gives_up(going_on), "{going_on}");
        }
        for given_up in ["xx", ".xx", "..xx", ".x.xx", ".x.x.xx"] {
            assert!(gives_up(given_up), "{given_up}");
        }
    }
}
