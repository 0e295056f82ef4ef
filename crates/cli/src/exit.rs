//! The exit status of a command.
//!
//! 0: all well. 1: something was measured and something went wrong (a manager failed, a trace is damaged and its figures
//! are of what is whole, an output file could not be written, ...). 2: nothing was measured because the request cannot be
//! carried out. 3: a gate could not be decided. 130: Ctrl-C.

use heaptoll_command::failure::Failure;
use heaptoll_preflight::Refusal;
use thiserror::Error;

/// Exit status: something measured went wrong.
pub const TROUBLE: u8 = 1;
/// Exit status: the request cannot be carried out.
pub const REFUSED: u8 = 2;
/// Exit status: a gate could not be decided.
pub const UNDECIDED: u8 = 3;
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

/// The exit status of a command that has shown the figures of runs, otherwise ending with `code`.
pub fn of_runs(complete: bool, failed: bool, code: u8) -> u8 {
    match complete {
        false => INTERRUPTED,
        true if failed => TROUBLE,
        true => code,
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
