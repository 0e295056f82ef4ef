//! The verdict on a manager from the end of a case.

use std::time::Duration;

use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::places::Places;
use serde::Serialize;

use crate::deviation::{self, Deviation};
use crate::error::Error;
use crate::process::{End, Ending};
use crate::suite::{Case, Suite, in_parallel};

/// The status of a case that does not apply to this manager.
const NOT_APPLICABLE: i32 = 77;
/// Seconds that a case may take, longer than any watchdog of its own: the longest needs about one on an idle machine.
const LIMIT_S: u64 = 120;
/// The same for a case that is known to hang and would otherwise need milliseconds.
const HANGING_LIMIT_S: u64 = 2;

/// The verdict on a manager in a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// All holds.
    Holds,
    /// The case does not apply to this manager.
    #[serde(rename = "not_asked")]
    NotApplicable(String),
    /// It fails, as the list of deviations states: its message this time.
    Known(String),
    /// It fails.
    Fails(String),
    /// It holds although the list of deviations states that it fails.
    NoLongerDeviates(String),
}

impl Verdict {
    /// Whether this verdict is acceptable.
    pub fn is_expected(&self) -> bool {
        !matches!(self, Verdict::Fails(_) | Verdict::NoLongerDeviates(_))
    }
}

/// One cell of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The manager's name.
    pub manager: String,
    /// The case's name.
    pub case: String,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What the case noted, one a line.
    pub notes: Vec<String>,
    /// Wall time, seconds.
    pub took_s: f64,
}

/// The message of a case, in one line.
fn reason(end: &End) -> String {
    let line = end.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    match end.ending {
        Ending::Status(1) if !line.is_empty() => line.to_string(),
        ending if line.is_empty() => ending.to_string(),
        ending => format!("{ending}: {line}"),
    }
}

/// The case's notes, without their prefix.
pub fn notes(stdout: &str) -> Vec<String> {
    stdout.lines().filter_map(|line| line.strip_prefix("note: ")).map(str::to_string).collect()
}

/// Judges the end of a case, given the manager's known deviation.
pub fn judge(end: &End, known: Option<&Deviation>) -> Verdict {
    match (end.ending, known) {
        (Ending::Status(0), Some(known)) if known.always => {
            Verdict::NoLongerDeviates(format!("take it out of the list: {}", known.reason))
        }
        (Ending::Status(0), _) => Verdict::Holds,
        (Ending::Status(NOT_APPLICABLE), _) => {
            let why = notes(&end.stdout)
                .into_iter()
                .find_map(|n| n.strip_prefix("not applicable: ").map(str::to_string));
            Verdict::NotApplicable(why.unwrap_or_default())
        }
        (_, Some(_)) => Verdict::Known(reason(end)),
        (_, None) => Verdict::Fails(reason(end)),
    }
}

/// Runs every case of `cases` under every manager, several at once.
///
/// # Errors
/// Only the system's.
pub fn run(
    suite: &Suite,
    places: &Places,
    managers: &[Manager],
    cases: &[&Case],
    quick: bool,
) -> Result<Vec<Cell>, Error> {
    // Case by case, so that two runs of one manager's most expensive case are rarely concurrent.
    let jobs: Vec<(&Case, &Manager)> =
        cases.iter().flat_map(|case| managers.iter().map(move |manager| (*case, manager))).collect();
    in_parallel(&jobs, |(case, manager)| {
        let known = deviation::known(manager, &case.name);
        let limit = match &known {
            Some(known) if known.hangs => HANGING_LIMIT_S,
            _ => LIMIT_S,
        };
        let limit = Duration::from_secs(limit);
        let end = suite.run(case, &manager.preload(places), &manager.environment, quick, limit)?;
        Ok(Cell {
            manager: manager.name.clone(),
            case: case.name.clone(),
            verdict: judge(&end, known.as_ref()),
            notes: notes(&end.stdout),
            took_s: end.took.as_secs_f64(),
        })
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(ending: Ending, stderr: &str) -> End {
        End {
            ending,
            stdout: "note: a\nnote: not applicable: no page\n".into(),
            stderr: stderr.into(),
            took: Duration::ZERO,
            cpu: Duration::ZERO,
        }
    }

    const KNOWN: Deviation =
        Deviation { managers: &["m"], cases: &["c"], always: true, hangs: false, reason: "r", source: "s" };

    #[test]
    fn a_deviation_that_disappears_is_reported() {
        let holds = end(Ending::Status(0), "");
        assert_eq!(judge(&holds, None), Verdict::Holds);
        assert!(!judge(&holds, Some(&KNOWN)).is_expected());
        let sometimes = Deviation { always: false, ..KNOWN };
        assert_eq!(judge(&holds, Some(&sometimes)), Verdict::Holds);
    }

    #[test]
    fn failures_give_the_reason() {
        let fails = end(Ending::Status(1), "\nbyte 3 changed\nmore\n");
        assert_eq!(judge(&fails, None), Verdict::Fails("byte 3 changed".into()));
        assert_eq!(judge(&fails, Some(&KNOWN)), Verdict::Known("byte 3 changed".into()));
        assert_eq!(judge(&end(Ending::Signal(11), ""), None), Verdict::Fails("SIGSEGV".into()));
        assert_eq!(
            judge(&end(Ending::Status(NOT_APPLICABLE), ""), None),
            Verdict::NotApplicable("no page".into())
        );
    }
}
