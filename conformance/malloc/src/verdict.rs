//! What the end of a case means for a manager.

use std::time::Duration;

use heaptoll_lab::manager::Manager;
use heaptoll_lab::places::Places;
use serde::Serialize;

use crate::deviation::{self, Deviation};
use crate::error::Error;
use crate::process::{End, Ending};
use crate::suite::{Case, Suite, in_parallel};

/// The status by which a case says that it has nothing to ask of this manager.
const NOT_ASKED: i32 = 77;
/// Seconds that a case may take: the longest needs about one on a quiet machine.
const LIMIT_S: u64 = 60;
/// The same for the quick form.
const QUICK_LIMIT_S: u64 = 20;
/// The same for a case that is known to hang: it would need milliseconds otherwise.
const HANGING_LIMIT_S: u64 = 2;

/// How a manager did in a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "why")]
pub enum Verdict {
    /// All holds.
    Holds,
    /// The case has nothing to ask of this manager.
    NotAsked(String),
    /// It fails, as is known: what it said this time.
    Known(String),
    /// It fails.
    Fails(String),
    /// It holds, and the list of deviations says that it does not.
    NoLongerDeviates(String),
}

impl Verdict {
    /// Whether this is as it should be.
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
    /// How it did.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What the case noted, one a line.
    pub notes: Vec<String>,
    /// Wall time, seconds.
    pub took_s: f64,
}

/// What a case said, in one line.
fn reason(end: &End) -> String {
    let line = end.complained.lines().find(|line| !line.trim().is_empty()).unwrap_or("").trim();
    match end.ending {
        Ending::Status(1) if !line.is_empty() => line.to_string(),
        ending if line.is_empty() => ending.to_string(),
        ending => format!("{ending}: {line}"),
    }
}

/// The case's notes, without the word.
pub fn notes(said: &str) -> Vec<String> {
    said.lines().filter_map(|line| line.strip_prefix("note: ")).map(str::to_string).collect()
}

/// Judges the end of a case in the light of what is known of the manager.
pub fn judge(end: &End, known: Option<&Deviation>) -> Verdict {
    match (end.ending, known) {
        (Ending::Status(0), Some(known)) if known.always => {
            Verdict::NoLongerDeviates(format!("take it out of the list: {}", known.reason))
        }
        (Ending::Status(0), _) => Verdict::Holds,
        (Ending::Status(NOT_ASKED), _) => {
            let why =
                notes(&end.said).into_iter().find_map(|n| n.strip_prefix("not asked: ").map(str::to_string));
            Verdict::NotAsked(why.unwrap_or_default())
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
    // Case by case: two runs of one manager's most expensive case are then rarely side by side.
    let jobs: Vec<(&Case, &Manager)> =
        cases.iter().flat_map(|case| managers.iter().map(move |manager| (*case, manager))).collect();
    in_parallel(&jobs, |(case, manager)| {
        let known = deviation::known(manager, &case.name);
        let limit = match &known {
            Some(known) if known.hangs => HANGING_LIMIT_S,
            _ if quick => QUICK_LIMIT_S,
            _ => LIMIT_S,
        };
        let limit = Duration::from_secs(limit);
        let end = suite.run(case, &manager.preload(places), &manager.environment, quick, limit)?;
        Ok(Cell {
            manager: manager.name.clone(),
            case: case.name.clone(),
            verdict: judge(&end, known.as_ref()),
            notes: notes(&end.said),
            took_s: end.took.as_secs_f64(),
        })
    })
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(ending: Ending, complained: &str) -> End {
        End {
            ending,
            said: "note: a\nnote: not asked: no page\n".into(),
            complained: complained.into(),
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
    fn failures_say_why() {
        let fails = end(Ending::Status(1), "\nbyte 3 changed\nmore\n");
        assert_eq!(judge(&fails, None), Verdict::Fails("byte 3 changed".into()));
        assert_eq!(judge(&fails, Some(&KNOWN)), Verdict::Known("byte 3 changed".into()));
        assert_eq!(judge(&end(Ending::Signal(11), ""), None), Verdict::Fails("SIGSEGV".into()));
        assert_eq!(judge(&end(Ending::Status(NOT_ASKED), ""), None), Verdict::NotAsked("no page".into()));
    }
}
