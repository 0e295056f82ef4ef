//! The folder that keeps a study: the plan, and a folder a step with its JSON, its tables, its messages, and its
//! rows where it has any. Everything is written as soon as it is known, so a study that was stopped, by whatever,
//! goes on with `--resume`.

use heaptoll_command::failure::Failure;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::plan::Plan;
use crate::budget::Planned;
use crate::definition::Study;
use crate::figures::Cell;
use crate::results::Ran;
use heaptoll_command::labelled;
use heaptoll_experiment::places::Places;
use heaptoll_report::files::write_atomically;
use heaptoll_report::{ReportError, format};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// File of the plan of all.
const PLAN_FILE: &str = "asked.json";
/// File of a step's plan, written before it is run.
const PLANNED: &str = "planned.json";
/// File of a step's outcome.
const ENDED: &str = "ended.json";
/// File of the results.
const RESULTS: &str = "results.json";
/// File of the page.
const PAGE: &str = "report.html";

/// The outcome of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// As in the results.
    pub ran: Ran,
    /// By Ctrl-C: it is run again when the study goes on.
    pub interrupted: bool,
    /// Why it failed, where it did.
    pub why: Option<String>,
    /// What it measured.
    pub cells: Vec<Cell>,
    /// Programs and managers without figures: program, manager (all when none), why.
    pub absent: Vec<(String, Option<String>, String)>,
}

/// Something kept that cannot be used.
#[derive(Debug, Error)]
pub enum KeepError {
    /// A file cannot be read.
    #[error(
        "cannot read {path}: {source}; is it the folder of a study (heaptoll lab study prints it when it begins)?"
    )]
    Read {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be.
    #[error("{path} is not what heaptoll lab study keeps: {detail}")]
    Foreign {
        /// Which.
        path: String,
        /// Why.
        detail: String,
    },
    /// A folder cannot be made.
    #[error("cannot make {path}: {source}; name another with --keep")]
    Make {
        /// Which.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Another heaptoll uses it.
    #[error("{path} is in use: another heaptoll lab study keeps its figures there; wait until it ends")]
    Busy {
        /// Which.
        path: String,
    },
    /// There is something in it.
    #[error("{path} is not empty; name another with --keep, or go on with what it keeps by --resume {path}")]
    Taken {
        /// Which.
        path: String,
    },
}

/// The folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Held as long as figures may be written.
    _lock: Option<File>,
}

impl Folder {
    /// A new one: that which was named, or one by date and names.
    ///
    /// # Errors
    /// It cannot be made or written to, or is not empty.
    pub fn make(named: Option<&Path>, plan: &Plan) -> Result<Folder, Failure> {
        let path = match named {
            Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.into()),
            None => free_name(&plan.studies, plan.begun_unix_s),
        };
        let name = || path.display().to_string();
        let make = |source| KeepError::Make { path: name(), source };
        std::fs::create_dir_all(&path).map_err(make).map_err(refused)?;
        let mut inside = std::fs::read_dir(&path).map_err(make).map_err(refused)?;
        if inside.next().is_some() {
            return Err(refused(KeepError::Taken { path: name() }));
        }
        write(&path.join(PLAN_FILE), plan)?;
        let lock = lock(&path).map_err(refused)?;
        Ok(Folder { path, _lock: lock })
    }

    /// An existing folder, and the plan it was made with.
    ///
    /// # Errors
    /// It is no such folder, or one of another version's format.
    pub fn open(path: &Path) -> Result<(Folder, Plan), KeepError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        let file = path.join(PLAN_FILE);
        let name = || file.display().to_string();
        let text =
            std::fs::read_to_string(&file).map_err(|source| KeepError::Read { path: name(), source })?;
        let plan = labelled::read(&text)
            .map_err(|error| KeepError::Foreign { path: name(), detail: error.to_string() })?;
        let lock = lock(&path)?;
        Ok((Folder { path, _lock: lock }, plan))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of its results.
    pub fn results(&self) -> PathBuf {
        self.path.join(RESULTS)
    }

    /// The file of its page.
    pub fn page(&self) -> PathBuf {
        self.path.join(PAGE)
    }

    /// The folder of a step, made.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn step(&self, id: &str) -> Result<StepFolder, KeepError> {
        let path = self.path.join(folder_name(id));
        std::fs::create_dir_all(&path)
            .map_err(|source| KeepError::Make { path: path.display().to_string(), source })?;
        Ok(StepFolder { path })
    }
}

/// A step's folder.
#[derive(Debug)]
pub struct StepFolder {
    path: PathBuf,
}

impl StepFolder {
    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The plan, where the step was begun.
    pub fn planned(&self) -> Option<Planned> {
        read(&self.file(PLANNED)).ok()
    }

    /// The outcome, where the step was run.
    pub fn ended(&self) -> Option<Ended> {
        read(&self.file(ENDED)).ok()
    }

    /// Stores the plan.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(&self, planned: &Planned) -> Result<(), ReportError> {
        write(&self.file(PLANNED), planned)
    }

    /// Stores the outcome.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn end(&self, ended: &Ended) -> Result<(), ReportError> {
        write(&self.file(ENDED), ended)
    }
}

/// A step's id as a folder's name: what is no plain letter as `%2f`, so that no two steps have one folder.
fn folder_name(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    id.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

/// The study's own file, locked; none where the file system knows no locks.
fn lock(path: &Path) -> Result<Option<File>, KeepError> {
    let Ok(file) = File::open(path.join(PLAN_FILE)) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(KeepError::Busy { path: path.display().to_string() }),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// A refusal, with exit status 2.
pub fn refused(error: KeepError) -> Failure {
    Failure::Refused(Box::new(error))
}

/// `$XDG_STATE_HOME/heaptoll/studies/<date>-<names>`, numbered when taken.
fn free_name(studies: &[Study], begun_unix_s: f64) -> PathBuf {
    let names: Vec<&str> = studies.iter().map(|study| study.name.as_str()).collect();
    let names = names.join("-").replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    let date = format::date(begun_unix_s).replace(|c: char| !c.is_ascii_digit(), "-");
    let name = format!("{}-{names}", date.trim_matches('-'));
    let folder = Places::experiments().join("studies");
    let numbered = (1..u32::MAX).map(|number| match number {
        1 => folder.join(&name),
        _ => folder.join(format!("{name}-{number}")),
    });
    numbered.into_iter().find(|path| !path.exists()).unwrap_or_else(|| folder.join(&name))
}

/// Keeps a value as JSON.
///
/// # Errors
/// The file cannot be written.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<(), ReportError> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| ReportError::Encode { form: "JSON", detail: error.to_string() })?;
    write_atomically(path, |out| {
        out.write_all(text.as_bytes()).map_err(|source| ReportError::Stream { form: "file", source })
    })
}

/// What is kept in a file.
///
/// # Errors
/// It cannot be read, or is something else.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, KeepError> {
    let name = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| KeepError::Read { path: name(), source })?;
    serde_json::from_str(&text)
        .map_err(|error| KeepError::Foreign { path: name(), detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let command = vec!["heaptoll".into(), "study".into()];
        Plan { command, quick: true, begun_unix_s: 7e8, seed: 7, ..Plan::of(vec![]) }
    }

    #[test]
    fn a_plan_is_read_back_and_nothing_is_overwritten() {
        let scratch = tempfile::tempdir().expect("a folder");
        let named = scratch.path().join("kept");
        let made = Folder::make(Some(&named), &plan()).expect("it is made");
        let again = Folder::open(made.path()).expect_err("it is in use").to_string();
        assert!(again.contains("is in use"), "{again}");
        drop(made);
        assert_eq!(Folder::open(&named).expect("it opens").1, plan());
        let again = Folder::make(Some(&named), &plan()).expect_err("it is taken").to_string();
        assert!(again.contains("--resume"), "{again}");
    }

    #[test]
    fn a_folder_of_something_else_is_refused() {
        let scratch = tempfile::tempdir().expect("a folder");
        let error = Folder::open(scratch.path()).expect_err("nothing is in it").to_string();
        assert!(error.contains("asked.json"), "{error}");
        std::fs::write(scratch.path().join(PLAN_FILE), "{}").expect("writes");
        assert!(matches!(Folder::open(scratch.path()), Err(KeepError::Foreign { .. })));
        let other = Plan { schema: "heaptoll-study-kept/9".into(), ..plan() };
        write(&scratch.path().join(PLAN_FILE), &other).expect("writes");
        let error = Folder::open(scratch.path()).expect_err("of another version").to_string();
        assert!(error.contains("/9") && error.contains("/1"), "{error}");
    }

    #[test]
    fn a_steps_folder_stays_within_the_studys() {
        let scratch = tempfile::tempdir().expect("a folder");
        let made = Folder::make(Some(&scratch.path().join("kept")), &plan()).expect("it is made");
        let step = made.step("../../etc").expect("it is made");
        assert!(step.file("x").starts_with(made.path()));
        assert_eq!((step.planned(), step.ended()), (None, None));
    }

    /// `a.b` and `a_b` had one folder: the second step took the rows of the first for its own.
    #[test]
    fn no_two_steps_have_one_folder() {
        let ids = ["a.b", "a_b", "a b", "a/b", "a%2fb", "ä-b", "zorn1992-time"];
        let mut names: Vec<String> = ids.into_iter().map(folder_name).collect();
        assert_eq!(names.last().map(String::as_str), Some("zorn1992-time"));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), ids.len(), "{names:?}");
    }
}
