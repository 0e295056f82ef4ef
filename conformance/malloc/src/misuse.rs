//! What managers make of defects of the program: a matrix, recorded and judged by nobody.

use std::time::Duration;

use heaptoll_lab::manager::Manager;
use heaptoll_lab::places::Places;
use serde::Serialize;

use crate::error::Error;
use crate::process::{End, Ending};
use crate::suite::{Case, Kind, Suite, in_parallel};
use crate::verdict::notes;

/// What a case prints once the defect has been committed and the manager has let it pass.
const PAST: &str = "past the defect";
/// The status by which a case says that the heap no longer keeps blocks apart.
const CORRUPTED: i32 = 3;
const LIMIT: Duration = Duration::from_secs(20);

/// What became of a defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
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

impl std::fmt::Display for Fate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Fate::Detected => "detected",
            Fate::DetectedLater => "detected later",
            Fate::Ignored => "ignored",
            Fate::CrashWithoutMessage => "crash without message",
            Fate::CorruptedLater => "corrupted later",
            Fate::Hung => "hangs",
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
    /// What became of it.
    pub fate: Fate,
    /// The first line of the manager's message, or how the process ended.
    pub message: String,
    /// What the case noted.
    pub notes: Vec<String>,
}

/// What became of the defect that a process committed.
pub fn fate(end: &End) -> Fate {
    let past = end.said.lines().any(|line| line == PAST);
    let message = end.complained.lines().any(|line| !line.trim().is_empty());
    match (end.ending, past, message) {
        // A message and going on is a warning: it was noticed.
        (Ending::Status(0), _, true) => Fate::Detected,
        (Ending::Status(0), _, false) => Fate::Ignored,
        (Ending::Status(CORRUPTED), true, _) | (Ending::Hung, true, _) => Fate::CorruptedLater,
        (Ending::Hung, false, _) => Fate::Hung,
        (_, false, true) => Fate::Detected,
        (_, true, true) => Fate::DetectedLater,
        (_, false, false) => Fate::CrashWithoutMessage,
        (_, true, false) => Fate::CorruptedLater,
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
        .filter(|case| case.kind == Kind::Misuse)
        .flat_map(|case| managers.iter().map(move |manager| (*case, manager)))
        .collect();
    in_parallel(&jobs, |(case, manager)| {
        let end = suite.run(case, &manager.preload(places), &manager.environment, true, LIMIT)?;
        let line = end.complained.lines().find(|line| !line.trim().is_empty());
        Ok(Record {
            manager: manager.name.clone(),
            case: case.name.clone(),
            fate: fate(&end),
            message: line.map_or_else(|| end.ending.to_string(), |line| line.trim().to_string()),
            notes: notes(&end.said),
        })
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_are_told_apart() {
        let of = |ending, said: &str, complained: &str| {
            fate(&End {
                ending,
                said: said.into(),
                complained: complained.into(),
                took: Duration::ZERO,
                cpu: Duration::ZERO,
            })
        };
        let past = "past the defect\n";
        assert_eq!(of(Ending::Status(0), past, ""), Fate::Ignored);
        assert_eq!(of(Ending::Signal(libc::SIGABRT), "", "double free\n"), Fate::Detected);
        assert_eq!(of(Ending::Signal(libc::SIGABRT), past, "corrupted list\n"), Fate::DetectedLater);
        assert_eq!(of(Ending::Signal(libc::SIGSEGV), "", " \n"), Fate::CrashWithoutMessage);
        assert_eq!(of(Ending::Signal(libc::SIGSEGV), past, ""), Fate::CorruptedLater);
        assert_eq!(of(Ending::Status(CORRUPTED), past, ""), Fate::CorruptedLater);
        assert_eq!(of(Ending::Hung, "", ""), Fate::Hung);
        assert_eq!(of(Ending::Status(0), past, "warning: freed twice\n"), Fate::Detected);
    }
}
