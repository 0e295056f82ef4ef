//! The exit status of a command.
//!
//! 0: all well. 1: something was measured and something went wrong (a manager failed, a trace is damaged and its figures
//! are of what is whole, an output file could not be written, ...). 2: nothing was measured because the request cannot be
//! carried out. 3: a gate could not be decided. 130: Ctrl-C.

use std::ffi::OsString;

use heaptoll_command::failure::Failure;
use heaptoll_preflight::Refusal;
use heaptoll_runs::findings::Ending;
use thiserror::Error;

/// Exit status: something measured went wrong.
pub const TROUBLE: u8 = 1;
/// Exit status: the request cannot be carried out.
pub const REFUSED: u8 = 2;
/// Exit status: a gate could not be decided.
pub const UNDECIDED: u8 = 3;
/// Exit status: what `git bisect run` takes for a commit that cannot be tested.
pub const SKIPPED: u8 = 125;
/// Exit status: Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// A defect of the process's own surroundings.
#[derive(Debug, Error)]
enum ProcessError {
    /// Signals could not be caught.
    #[error("cannot watch for Ctrl-C: {0}")]
    Signals(std::io::Error),
    /// Standard output is closed or full.
    #[error("cannot write to standard output, which was closed or is full: {0}")]
    Stdout(std::io::Error),
}

/// The failure that signals which cannot be caught are.
pub fn cannot_watch(error: std::io::Error) -> Failure {
    Failure::Refused(Box::new(ProcessError::Signals(error)))
}

/// The failure that a full standard output is.
pub fn cannot_print(error: std::io::Error) -> Failure {
    Failure::Trouble(Box::new(ProcessError::Stdout(error)))
}

/// The exit status of a command that has shown the figures of a trace, otherwise ending with `code`.
pub fn of_trace(code: u8, is_whole: bool) -> u8 {
    if code == 0 && !is_whole { TROUBLE } else { code }
}

/// The exit status of a command whose runs ended so, otherwise ending with `code`.
pub fn of_runs(ending: Ending, code: u8) -> u8 {
    match ending {
        Ending::Complete => code,
        Ending::Trouble => TROUBLE,
        Ending::Interrupted => INTERRUPTED,
    }
}

/// The exit status of a command that failed.
pub fn code(failure: &Failure) -> u8 {
    match failure {
        Failure::Run(_) | Failure::Report(_) | Failure::Trouble(_) => TROUBLE,
        Failure::Interrupted | Failure::Preflight(Refusal::Cancelled) => INTERRUPTED,
        _ => REFUSED,
    }
}

/// The exit status of a command line that is refused before it is a gate's: `git bisect run` takes 2 for a bad commit.
pub fn of_usage(words: &[OsString], code: i32) -> i32 {
    let is = |at: usize, word: &str| words.get(at).is_some_and(|found| found == word);
    let bisects = words.iter().take_while(|word| *word != "--").any(|word| word == "--bisect");
    if code != 0 && is(1, "gate") && bisects { SKIPPED.into() } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bisection_skips_what_its_command_line_does_not_decide() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(of_usage(&words("heaptoll gate --bisect --speed"), 2), 125);
        assert_eq!(of_usage(&words("heaptoll gate --help --bisect"), 0), 0);
        assert_eq!(of_usage(&words("heaptoll gate --speed -- --bisect"), 2), 2);
        assert_eq!(of_usage(&words("heaptoll run --bisect"), 2), 2);
    }
}
