//! Hints of commands that read a trace.

use std::path::Path;

use heaptoll_command::failure::Failure;
use heaptoll_report::format::{plural, shell_command};
use heaptoll_runs::siblings;

use crate::hints::{is_found, is_program};
use crate::terminal;

/// Adds to a failure how a program is measured, where one was given in place of a trace.
pub fn with_dashes(failure: Failure, command: &str, trace: &Path) -> Failure {
    match failure {
        Failure::Refused(_) if is_program(trace) || is_found(trace) => Failure::Usage(format!(
            "{failure}; to measure a program, put it after `--`: heaptoll {command} -- {}",
            shell_command(&[trace.display().to_string()])
        )),
        other => other,
    }
}

/// A note on the other process images of a recording, where one of them has a longer trace: a daemon's first process does
/// next to nothing.
pub fn longest_trace(command: &str, trace: &Path) {
    if let Some((images, longest)) = siblings::longest(trace) {
        let words: Vec<String> = std::iter::once("heaptoll")
            .chain(command.split(' '))
            .map(str::to_owned)
            .chain([longest.display().to_string()])
            .collect();
        terminal::note(&format!(
            "{} covers the first of {}; the longest trace is {}",
            trace.display(),
            plural(images, "process image"),
            shell_command(&words)
        ));
    }
}
