//! Whether an attacker gains by a program's defect under each stack: a table, recorded and not judged.
//!
//! A case commits a defect and then looks for the effect that an attacker needs, such as two owners of one block. The
//! kinds are those of the table `security` of mimalloc-bench; the cases are our own (`c/security`). Those of Juliet's
//! shapes (`c/juliet`) say in addition whether a freed block reads as zeroes.

use std::time::Duration;

use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::places::Places;
use serde::Serialize;

use crate::error::Error;
use crate::process::{End, Ending};
use crate::suite::{Case, Suite, in_parallel};

/// The lines that a case prints once it has looked for the effect.
const HAPPENED: &str = "happened";
const PREVENTED: &str = "prevented";
const ZEROES: &str = "zeroes";
const LIMIT: Duration = Duration::from_secs(20);

/// What became of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The manager or a layer reported the defect before it had an effect.
    Detected,
    /// The process was ended by a signal without a message, before the effect: an access that the processor refused, or an
    /// end without words.
    Stopped,
    /// Nothing was reported, and the effect did not happen.
    Prevented,
    /// The same, and what was read after its free was zeroes.
    Zeroes,
    /// The effect happened; the defect was reported, or the process ended by a signal, afterwards.
    DetectedLate,
    /// The effect happened, and nothing was reported.
    NotDetected,
    /// It did not come to its end.
    Hung,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Outcome::Detected => "detected",
            Outcome::Stopped => "stopped",
            Outcome::Prevented => "prevented",
            Outcome::Zeroes => ZEROES,
            Outcome::DetectedLate => "late",
            Outcome::NotDetected => "–",
            Outcome::Hung => "hangs",
        })
    }
}

/// One cell of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Attack {
    /// The stack's name.
    pub stack: String,
    /// The case's name.
    pub case: String,
    /// What became of it.
    pub outcome: Outcome,
    /// The first line of the message, or how the process ended.
    pub message: String,
}

/// What became of the attack of a process.
pub fn outcome(end: &End) -> Outcome {
    let printed = |line: &str| end.stdout.lines().any(|printed| printed == line);
    let reported = end.stderr.lines().any(|line| !line.trim().is_empty());
    match (end.ending, printed(HAPPENED), printed(PREVENTED)) {
        (Ending::Hung, ..) => Outcome::Hung,
        (Ending::Status(0), true, _) if !reported => Outcome::NotDetected,
        (_, true, _) => Outcome::DetectedLate,
        (Ending::Status(0), false, true) if !reported => Outcome::Prevented,
        (Ending::Status(0), false, _) if !reported && printed(ZEROES) => Outcome::Zeroes,
        (_, false, _) if reported => Outcome::Detected,
        (_, false, _) => Outcome::Stopped,
    }
}

/// Runs every case under every stack, several at once.
///
/// # Errors
/// Only the system's.
pub fn run(
    suite: &Suite,
    places: &Places,
    stacks: &[Manager],
    cases: &[&Case],
) -> Result<Vec<Attack>, Error> {
    let jobs: Vec<(&Case, &Manager)> =
        cases.iter().flat_map(|case| stacks.iter().map(move |stack| (*case, stack))).collect();
    in_parallel(&jobs, |(case, stack)| {
        let end = suite.run(case, &stack.preload(places), &stack.environment, true, LIMIT)?;
        let line = end.stderr.lines().find(|line| !line.trim().is_empty());
        Ok(Attack {
            stack: stack.name.clone(),
            case: case.name.clone(),
            outcome: outcome(&end),
            message: line.map_or_else(|| end.ending.to_string(), |line| line.trim().to_string()),
        })
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_and_the_report_decide_and_their_order() {
        let of = |ending, stdout: &str, stderr: &str| {
            let (stdout, stderr) = (stdout.into(), stderr.into());
            outcome(&End { ending, stdout, stderr, took: Duration::ZERO, cpu: Duration::ZERO })
        };
        let (abort, fault) = (Ending::Signal(libc::SIGABRT), Ending::Signal(libc::SIGSEGV));
        assert_eq!(of(abort, "", "double free\n"), Outcome::Detected);
        assert_eq!(of(Ending::Status(0), "prevented\n", "freed twice\n"), Outcome::Detected);
        assert_eq!(of(fault, "", " \n"), Outcome::Stopped);
        assert_eq!(of(Ending::Status(0), "prevented\n", ""), Outcome::Prevented);
        assert_eq!(of(Ending::Status(0), "zeroes\n", ""), Outcome::Zeroes);
        assert_eq!(of(Ending::Status(0), "zeroes\n", "written after free\n"), Outcome::Detected);
        assert_eq!(of(abort, "prevented\n", "corrupted\n"), Outcome::Detected);
        assert_eq!(of(abort, "happened\n", "corrupted\n"), Outcome::DetectedLate);
        assert_eq!(of(fault, "happened\n", ""), Outcome::DetectedLate);
        assert_eq!(of(Ending::Status(0), "happened\n", "written after free\n"), Outcome::DetectedLate);
        assert_eq!(of(Ending::Status(0), "happened\n", ""), Outcome::NotDetected);
        assert_eq!(of(Ending::Hung, "happened\n", ""), Outcome::Hung);
    }
}
