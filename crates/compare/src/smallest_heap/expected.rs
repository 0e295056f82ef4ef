//! What a program gives when it completes, and what became of a run in a limited heap.

use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::extension::extension;
use heaptoll_launcher::Ended;

use super::search::Outcome;
use heaptoll_command::failure::Failure;
use heaptoll_runs::attempt::{Attempt, Runs, Set};

/// Runs under glibc that determine the right result.
pub const RIGHT_RUNS: u32 = 2;
/// Messages of managers without a count of refused calls when their heap is full.
const OWN_WORDS: [&str; 2] = ["GC Warning: Out of Memory", "GC Warning: Failed to expand heap"];

/// What a run must give to have completed.
pub struct ExpectedResult {
    status: i32,
    /// `None`: the output varies by itself.
    digest: Option<String>,
}

impl ExpectedResult {
    /// What the program gives under the C library's own malloc.
    ///
    /// # Errors
    /// Ctrl-C, it does not complete there (`NothingToCompare`), or heaptoll's own machinery failed.
    pub fn of(runs: Runs, program: &ProgramInfo) -> Result<ExpectedResult, Failure> {
        let mut expected = ExpectedResult { status: runs.protocol.expect_status, digest: None };
        let mut digests = Vec::new();
        for _ in 0..RIGHT_RUNS {
            let attempt = runs.attempt(program, &Set::default())?;
            if !expected.is(&attempt) {
                return Err(Failure::NothingToCompare(format!(
                    "{} does not complete under glibc and without a limit: {}; pass --expect-status if another exit status is a good one",
                    program.name,
                    attempt.ending(runs.protocol.timeout_s)
                )));
            }
            digests.push(attempt.finished.digest);
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
    pub fn is(&self, attempt: &Attempt) -> bool {
        attempt.finished.ended == Ended::Exit(self.status)
            && self.digest.as_ref().is_none_or(|digest| *digest == attempt.finished.digest)
    }

    /// The three outcomes. Lack of memory counts when the manager reports it: an exit status or a signal alone may
    /// come from anything.
    pub fn judge(&self, attempt: &Attempt, timeout_s: f64) -> Outcome {
        if self.is(attempt) {
            return Outcome::Done;
        }
        let last_line = |words: &str| attempt.finished.error_tail.contains(words);
        let output = String::from_utf8_lossy(&attempt.finished.output_head);
        let java = extension().is_out_of_memory(&attempt.finished.error_tail)
            || extension().is_out_of_memory(&output);
        if attempt.sum(|slot| slot.refused_calls) > 0 || OWN_WORDS.into_iter().any(last_line) || java {
            return Outcome::OutOfMemory;
        }
        Outcome::Other(match attempt.finished.ended {
            Ended::Exit(status) if status == self.status => "wrong output".into(),
            _ => attempt.ending(timeout_s),
        })
    }
}
