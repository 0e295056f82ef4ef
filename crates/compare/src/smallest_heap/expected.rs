//! What a program gives when it completes, and what became of a run in a limited heap.

use heaptoll_experiment::experiment::{ProgramInfo, StackInfo};
use heaptoll_experiment::extension::extension;
use heaptoll_experiment::observation::Observation;

use super::runs::run;
use super::search::Outcome;
use heaptoll_command::failure::Failure;
use heaptoll_runs::chosen::{Rows, ending};

/// Runs under glibc that determine the right result.
const RIGHT_RUNS: u32 = 2;
/// Messages of managers without a count of refused calls when their heap is full.
const OWN_WORDS: [&str; 2] = ["GC Warning: Out of Memory", "GC Warning: Failed to expand heap"];

/// What a run must give to have completed.
pub struct ExpectedResult {
    /// `None`: the output varies by itself.
    digest: Option<String>,
    /// What a run took there, s.
    pub run_s: f64,
}

impl ExpectedResult {
    /// What the program gives under the C library's own malloc.
    ///
    /// # Errors
    /// Ctrl-C, it does not complete there (`NothingToCompare`), or heaptoll's own machinery failed.
    pub fn of(program: &ProgramInfo, rows: &mut Rows) -> Result<ExpectedResult, Failure> {
        let (program, name) = (program.name.clone(), "glibc".into());
        let alone = StackInfo { program, name, ..StackInfo::default() };
        let mut expected = ExpectedResult { digest: None, run_s: 0.0 };
        let mut digests = Vec::new();
        for repetition in 0..RIGHT_RUNS {
            let row = run(rows, &alone, repetition)?;
            if !expected.is(&row) {
                return Err(Failure::NothingToCompare(format!(
                    "{} does not complete under glibc and without a limit: {}; pass --expect-status if another exit status is a good one",
                    alone.program,
                    ending(&row)
                )));
            }
            expected.run_s += row.wall_s / f64::from(RIGHT_RUNS);
            digests.push(row.output_digest);
        }
        digests.dedup();
        expected.digest = (digests.len() == 1).then(|| digests.remove(0));
        Ok(expected)
    }

    /// Whether the output is the same in each run, so that a wrong one is recognised.
    pub fn is_steady(&self) -> bool {
        self.digest.is_some()
    }

    /// Whether a run has completed.
    pub fn is(&self, row: &Observation) -> bool {
        row.outcome.is_ok() && self.digest.as_ref().is_none_or(|digest| *digest == row.output_digest)
    }

    /// The three outcomes. Lack of memory counts when the manager reports it: an exit status or a signal alone may
    /// come from anything.
    pub fn judge(&self, row: &Observation) -> Outcome {
        if self.is(row) {
            return Outcome::Done;
        }
        let states = OWN_WORDS.into_iter().any(|words| row.stderr_tail.contains(words))
            || extension().is_out_of_memory(&row.stderr_tail);
        if states || row.refused_calls.is_some_and(|calls| calls > 0) {
            return Outcome::OutOfMemory;
        }
        Outcome::Other(if row.outcome.is_ok() { "wrong output".into() } else { ending(row) })
    }
}
