//! heaptoll started for a step, and what it wrote read.

use std::path::Path;
use std::time::Instant;

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_facts::Facts;
use heaptoll_report::ReportError;
use rustix::process::Signal;
use thiserror::Error;

use super::child::{ChildError, End, EndCause, Run};
use super::commands::Extent;
use super::folder::StepFolder;
use super::log::Logged;

/// A step that the machine cannot carry out; the study ends there.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// A command does not start.
    #[error(transparent)]
    Child(#[from] ChildError),
    /// Its figures cannot be kept.
    #[error(transparent)]
    Keep(#[from] ReportError),
}

/// What starts commands.
pub struct Heaptoll<'a> {
    /// heaptoll itself.
    pub program: &'a Path,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

/// Figures of a step, with its warnings and failures.
#[derive(Default)]
pub struct StepFigures {
    /// What was measured.
    pub facts: Facts,
    /// Sentences.
    pub warnings: Vec<String>,
    /// Why there is none.
    pub why: Option<String>,
    /// Why the last command ended.
    pub ended: Option<EndCause>,
    /// How long that took, in earlier runs too where their figures are kept.
    pub seconds: f64,
}

impl Heaptoll<'_> {
    /// Runs a command to its end; `out` gets its tables. Returns what it logged, too.
    ///
    /// # Errors
    /// It does not start, or its output cannot be kept.
    pub fn run(
        &self,
        arguments: &[String],
        folder: &StepFolder,
        out: &Path,
        until: Option<Instant>,
        signal: Signal,
        poll: &mut dyn FnMut(),
    ) -> Result<(End, Logged), MeasureError> {
        let log = folder.file("log.txt");
        let before = std::fs::metadata(&log).map_or(0, |file| file.len());
        let run = Run { program: self.program, arguments, out, err: &log, until, signal };
        let end = run.to_end(self.interrupt, poll)?;
        let bytes = std::fs::read(&log).unwrap_or_default();
        let new = bytes.get(usize::try_from(before).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok((end, Logged::of(&String::from_utf8_lossy(new))))
    }
}

/// Removes what an earlier run left; a file that is not there is as well.
pub fn forget(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// A path as a word.
pub fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The command with the files that it writes, which are not there then. Rows that are there are kept under another name:
/// they may have taken an hour.
pub fn with_files(extent: &Extent, mut words: Vec<String>, json: &Path, rows: &Path) -> Vec<String> {
    forget(json);
    // The next database would take a journal that is left alone for its own.
    for end in ["", "-journal"] {
        let name = |before: &str| {
            let name = rows.file_name().unwrap_or_default().to_string_lossy();
            rows.with_file_name(format!("{before}{name}{end}"))
        };
        let _ = std::fs::rename(name(""), name("before-"));
    }
    let at = extent.step.kind.command().words().len();
    words.splice(at..at, ["--json", &text(json), "--db", &text(rows)].map(str::to_owned));
    words
}

/// What a command wrote; nothing where it did not get so far.
pub fn written(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The figures in one command's JSON.
pub fn found(extent: &Extent, json: &Path, end: End, messages: &Logged) -> StepFigures {
    let mut found =
        StepFigures { warnings: messages.warnings.clone(), ended: Some(end.why), ..StepFigures::default() };
    let Some(text) = written(json) else {
        found.why = messages.reason().map(str::to_owned).or_else(|| {
            Some(match end.code {
                Some(code) => format!("it ended with exit status {code} and wrote no JSON that can be read"),
                None => "a signal killed it: was memory short?".into(),
            })
        });
        return found;
    };
    match extent.step.kind.command().facts(&text) {
        Ok(facts) => found.facts = facts,
        Err(error) => found.why = Some(error.to_string()),
    }
    found.warnings.extend(messages.errors.iter().cloned());
    found.warnings.append(&mut found.facts.warnings);
    found.warnings.extend(found.facts.reasons());
    found
}
