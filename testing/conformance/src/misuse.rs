//! The effects of program defects under each manager: a matrix, recorded and not judged.

use std::time::Duration;

use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::places::Places;
use serde::Serialize;

use crate::error::Error;
use crate::process::{End, Ending};
use crate::suite::{Case, CaseKind, Suite, in_parallel};
use crate::verdict::notes;

/// The line that a case prints after its defect, if the program still runs.
const PAST: &str = "past the defect";
/// The status of a case that found blocks overlapping or damaged.
const CORRUPTED: i32 = 3;
const LIMIT: Duration = Duration::from_secs(20);

/// The effect of a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MisuseOutcome {
    /// The program was ended at the defect, with a message.
    Detected,
    /// The program was ended at a later call, with a message.
    DetectedLater,
    /// Nothing happened, then or later.
    Ignored,
    /// The program crashed at the defect, without a message.
    CrashWithoutMessage,
    /// Later blocks overlapped or changed, or a later call crashed or hung.
    CorruptedLater,
    /// It did not return from the defect.
    Hung,
}

impl std::fmt::Display for MisuseOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            MisuseOutcome::Detected => "detected",
            MisuseOutcome::DetectedLater => "detected later",
            MisuseOutcome::Ignored => "ignored",
            MisuseOutcome::CrashWithoutMessage => "crash without message",
            MisuseOutcome::CorruptedLater => "corrupted later",
            MisuseOutcome::Hung => "hangs",
        })
    }
}

/// One cell of the matrix.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// The manager's name.
    pub manager: String,
    /// The case's name.
    pub case: String,
    /// The effect.
    #[serde(rename = "fate")]
    pub outcome: MisuseOutcome,
    /// The first line of the manager's message, or how the process ended.
    pub message: String,
    /// What the case noted.
    pub notes: Vec<String>,
}

/// The effect of the defect that a process committed.
pub fn outcome(end: &End) -> MisuseOutcome {
    let past = end.stdout.lines().any(|line| line == PAST);
    let message = end.stderr.lines().any(|line| !line.trim().is_empty());
    match (end.ending, past, message) {
        // A message without an end is a warning: the defect was detected.
        (Ending::Status(0), _, true) => MisuseOutcome::Detected,
        (Ending::Status(0), _, false) => MisuseOutcome::Ignored,
        (Ending::Status(CORRUPTED), true, _) | (Ending::Hung, true, _) => MisuseOutcome::CorruptedLater,
        (Ending::Hung, false, _) => MisuseOutcome::Hung,
        (_, false, true) => MisuseOutcome::Detected,
        (_, true, true) => MisuseOutcome::DetectedLater,
        (_, false, false) => MisuseOutcome::CrashWithoutMessage,
        (_, true, false) => MisuseOutcome::CorruptedLater,
    }
}

/// Runs the misuse cases among `cases` under every manager.
///
/// # Errors
/// Only the system's.
pub fn run(
    suite: &Suite,
    places: &Places,
    managers: &[Manager],
    cases: &[&Case],
) -> Result<Vec<Record>, Error> {
    let jobs: Vec<(&Case, &Manager)> = cases
        .iter()
        .filter(|case| case.kind == CaseKind::Misuse)
        .flat_map(|case| managers.iter().map(move |manager| (*case, manager)))
        .collect();
    in_parallel(&jobs, |(case, manager)| {
        let end = suite.run(case, &manager.preload(places), &manager.environment, true, LIMIT)?;
        let line = end.stderr.lines().find(|line| !line.trim().is_empty());
        Ok(Record {
            manager: manager.name.clone(),
            case: case.name.clone(),
            outcome: outcome(&end),
            message: line.map_or_else(|| end.ending.to_string(), |line| line.trim().to_string()),
            notes: notes(&end.stdout),
        })
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_distinguished() {
        let of = |ending, stdout: &str, stderr: &str| {
            outcome(&End {
                ending,
                stdout: stdout.into(),
                stderr: stderr.into(),
                took: Duration::ZERO,
                cpu: Duration::ZERO,
            })
        };
        let past = "past the defect\n";
        assert_eq!(of(Ending::Status(0), past, ""), MisuseOutcome::Ignored);
        assert_eq!(of(Ending::Signal(libc::SIGABRT), "", "double free\n"), MisuseOutcome::Detected);
        assert_eq!(of(Ending::Signal(libc::SIGABRT), past, "corrupted list\n"), MisuseOutcome::DetectedLater);
        assert_eq!(of(Ending::Signal(libc::SIGSEGV), "", " \n"), MisuseOutcome::CrashWithoutMessage);
        assert_eq!(of(Ending::Signal(libc::SIGSEGV), past, ""), MisuseOutcome::CorruptedLater);
        assert_eq!(of(Ending::Status(CORRUPTED), past, ""), MisuseOutcome::CorruptedLater);
        assert_eq!(of(Ending::Hung, "", ""), MisuseOutcome::Hung);
        assert_eq!(of(Ending::Status(0), past, "warning: freed twice\n"), MisuseOutcome::Detected);
    }
}
