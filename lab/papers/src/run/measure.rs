//! One step: its command is run, its output is read, and missing figures get a reason.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::budget::{Planned, precision};
use crate::definition::{Step, StepKind};
use crate::results::{Ended as Ending, Ran};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_report::ReportError;
use rustix::process::Signal;
use thiserror::Error;

use super::child::{ChildError, End, EndCause, Run};
use super::commands::Extent;
use super::folder::{Ended, StepFolder};
use super::log::Logged;
use crate::figures::Cell;
use crate::originals::name_kin;
use heaptoll_facts::{Fact, Facts};

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

/// What all steps share.
pub struct Measure<'a> {
    /// heaptoll itself.
    pub heaptoll: &'a Path,
    /// The commit that it was built of, where that is known.
    pub commit: Option<&'a str>,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
    /// Managers by name.
    pub known: &'a [Manager],
    /// Seed of random choices.
    pub seed: u64,
    /// Folder with the user's own catalog entries.
    pub catalog: Option<&'a Path>,
}

/// Figures of a step, with its warnings and failures.
#[derive(Default)]
struct StepFigures {
    facts: Facts,
    warnings: Vec<String>,
    why: Option<String>,
    ended: Option<EndCause>,
}

impl Measure<'_> {
    /// Runs a step in its folder; `poll` is called at intervals. One that was begun there is resumed where that is
    /// possible.
    ///
    /// # Errors
    /// heaptoll cannot be started, or files cannot be written.
    pub fn step(
        &self,
        step: &Step,
        planned: &Planned,
        folder: &StepFolder,
        poll: &mut dyn FnMut(),
    ) -> Result<Ended, MeasureError> {
        let goes_on = goes_on(step.kind) && folder.planned().is_some() && folder.file(ROWS).exists();
        // The file of rows fixes what is run.
        let planned = match folder.planned() {
            Some(begun) if goes_on => {
                Planned { deadline_s: planned.deadline_s, seconds: planned.seconds, ..begun }
            }
            _ => planned.clone(),
        };
        // Its figures and time from before it was stopped.
        let earlier = folder.ended().filter(|_| goes_on);
        folder.begin(&planned)?;
        let extent = Extent { step, planned: &planned, seed: self.seed, catalog: self.catalog };
        let begun = Instant::now();
        let until = deadline(begun, planned.deadline_s);
        let mut found = match step.kind {
            kind if kind.records() => self.recordings(&extent, folder, until, poll)?,
            _ => self.one_command(&extent, folder, goes_on, until, poll)?,
        };
        let seconds =
            begun.elapsed().as_secs_f64() + earlier.as_ref().map_or(0.0, |earlier| earlier.ran.seconds);
        self.name_managers(&extent, &mut found);
        let originals = name_kin(&mut found.facts, step);
        explain(&extent, &mut found);
        // No reasons why a figure is missing.
        found.warnings.append(&mut found.facts.pairing);
        let ending = match found.ended {
            Some(EndCause::Deadline | EndCause::Interrupt) => Ending::Cut,
            _ if found.facts.measured.is_empty() => Ending::Failed,
            _ => Ending::Whole,
        };
        // Stopped again before it could write: its rows are still there, and so are its figures.
        if let Some(mut earlier) =
            earlier.filter(|_| ending == Ending::Cut && found.facts.measured.is_empty())
        {
            (earlier.ran.seconds, earlier.interrupted) = (seconds, found.ended == Some(EndCause::Interrupt));
            folder.end(&earlier)?;
            return Ok(earlier);
        }
        let why = match ending {
            Ending::Failed => Some(found.why.unwrap_or_else(|| "it gave no figures".into())),
            Ending::Cut if found.facts.measured.is_empty() => Some("it was cut before it had figures".into()),
            _ => None,
        };
        found.warnings.extend(why.iter().filter(|_| ending == Ending::Failed).cloned());
        found.warnings.dedup();
        let ended = Ended {
            ran: Ran {
                command: extent.repeat(),
                precision: precision(&planned, step),
                seconds,
                ending,
                commit: self.commit.map(str::to_owned),
                warnings: found.warnings,
                originals,
                reserves: BTreeMap::new(),
                planned,
            },
            interrupted: found.ended == Some(EndCause::Interrupt),
            why,
            cells: found
                .facts
                .measured
                .into_iter()
                .map(|fact| Cell { step: step.id.clone(), fact })
                .collect(),
            absent: found.facts.absent,
        };
        folder.end(&ended)?;
        Ok(ended)
    }

    fn run(
        &self,
        arguments: &[String],
        folder: &StepFolder,
        until: Option<Instant>,
        signal: Signal,
        poll: &mut dyn FnMut(),
    ) -> Result<(End, Logged), MeasureError> {
        let log = folder.file("log.txt");
        let before = std::fs::metadata(&log).map_or(0, |file| file.len());
        let run = Run {
            program: self.heaptoll,
            arguments,
            out: &folder.file("tables.txt"),
            err: &log,
            until,
            signal,
        };
        let end = run.to_end(self.interrupt, poll)?;
        let bytes = std::fs::read(&log).unwrap_or_default();
        let new = bytes.get(usize::try_from(before).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok((end, Logged::of(&String::from_utf8_lossy(new))))
    }

    fn one_command(
        &self,
        extent: &Extent,
        folder: &StepFolder,
        goes_on: bool,
        until: Option<Instant>,
        poll: &mut dyn FnMut(),
    ) -> Result<StepFigures, MeasureError> {
        let (json, rows) = (folder.file("figures.json"), folder.file(ROWS));
        let text = |path: &Path| path.display().to_string();
        let mut files = vec!["--json".to_owned(), text(&json)];
        forget(&json);
        if goes_on {
            let mut words = extent.step.kind.command().words();
            words.extend(["--resume".into(), text(&rows)]);
            // What repetitions make no more precise has its own number of them.
            if extent.step.kind.is_timed() {
                words.extend(["-n".to_owned(), extent.planned.repetitions.to_string()]);
            }
            words.extend(files.iter().cloned());
            let (end, messages) = self.run(&words, folder, until, Signal::INT, poll)?;
            // Rows that cannot be resumed (the command had not got so far) are made again.
            if json.exists() || end.why != EndCause::Itself {
                return Ok(found(extent, &json, end, &messages));
            }
        }
        set_aside(folder);
        files.extend(["--db".to_owned(), text(&rows)]);
        let mut words = extent.arguments();
        let at = extent.step.kind.command().words().len();
        words.splice(at..at, files);
        let (end, messages) = self.run(&words, folder, until, Signal::INT, poll)?;
        Ok(found(extent, &json, end, &messages))
    }

    /// Records each program under each manager, and then analyses the traces.
    fn recordings(
        &self,
        extent: &Extent,
        folder: &StepFolder,
        until: Option<Instant>,
        poll: &mut dyn FnMut(),
    ) -> Result<StepFigures, MeasureError> {
        let managers = extent.recorded_under();
        let mut all = StepFigures::default();
        let trace = folder.file("trace.heaptoll");
        let programs = extent.run_programs();
        let cells = programs.iter().flat_map(|program| managers.iter().map(move |one| (program, *one)));
        for (number, (program, manager)) in cells.enumerate() {
            let json = folder.file(&format!("figures-{}.json", number + 1));
            forget(&json);
            let recording = extent.recording(program, manager.map(String::as_str), &trace);
            // A supervisor's signal goes to the program, which ends the recording.
            let (end, mut messages) = self.run(&recording, folder, until, Signal::TERM, poll)?;
            let mut ended = end.why;
            if end.why == EndCause::Itself && end.code == Some(0) {
                let words = extent.analysis(&trace, &json);
                let (end, more) = self.run(&words, folder, until, Signal::TERM, poll)?;
                ended = end.why;
                messages.warnings.extend(more.warnings);
                messages.errors.extend(more.errors);
            }
            forget(&trace);
            let name = manager.map_or("glibc", String::as_str);
            all.warnings
                .extend(messages.warnings.iter().map(|words| format!("{program} under {name}: {words}")));
            if ended != EndCause::Itself {
                all.ended = Some(ended);
                break;
            }
            match written(&json).map(|text| extent.step.kind.command().facts(&text)) {
                // Collectors that replay the trace are the command's.
                Some(Ok(facts)) if extent.step.kind.replays() => add(&mut all.facts, facts, program, None),
                Some(Ok(facts)) => add(&mut all.facts, facts, program, Some(name)),
                Some(Err(error)) => {
                    all.warnings.push(format!("{program} under {name}: {error}"));
                    all.facts.lack(program, name, &error.to_string());
                }
                None => {
                    let status = end.code.map_or("a signal".into(), |code| format!("exit status {code}"));
                    let why =
                        messages.reason().map_or_else(|| format!("it ended with {status}"), str::to_owned);
                    let words = format!("{program} under {name}: {why}");
                    all.warnings.push(words.clone());
                    all.why = Some(words);
                    all.facts.lack(program, name, &why);
                }
            }
        }
        Ok(all)
    }

    /// Commands call a stack by its first spelling (`sweep/mimalloc3` for `sweep/mimalloc`); the study by its own.
    fn name_managers(&self, extent: &Extent, found: &mut StepFigures) {
        for wanted in extent.managers().iter().filter(|name| !manager::is_group(self.known, name)) {
            let Ok(manager) = manager::find(self.known, wanted) else { continue };
            if manager.name == *wanted {
                continue;
            }
            for fact in found.facts.measured.iter_mut().filter(|fact| fact.manager == manager.name) {
                fact.manager.clone_from(wanted);
            }
            for (_, of, _) in &mut found.facts.absent {
                if of.as_ref() == Some(&manager.name) {
                    *of = Some(wanted.clone());
                }
            }
        }
    }
}

/// Adds what a trace showed, of the program and the manager as the step names them: the trace knows neither.
fn add(all: &mut Facts, of_trace: Facts, program: &str, recorded_under: Option<&str>) {
    let named = |manager: String| recorded_under.map_or(manager, str::to_owned);
    all.measured.extend(of_trace.measured.into_iter().map(|fact| {
        let manager = named(fact.manager);
        Fact { program: program.to_owned(), manager, ..fact }
    }));
    let absent = of_trace.absent.into_iter();
    all.absent.extend(absent.map(|(_, manager, why)| (program.to_owned(), manager.map(named), why)));
}

/// Rows of commands that keep them.
const ROWS: &str = "rows.db";

/// Whether a command that was stopped resumes with its rows.
fn goes_on(kind: StepKind) -> bool {
    !kind.records() && !matches!(kind, StepKind::Instructions | StepKind::Locality)
}

fn deadline(begun: Instant, seconds: f64) -> Option<Instant> {
    let after = Duration::try_from_secs_f64(seconds).ok()?;
    begun.checked_add(after)
}

/// Removes what an earlier run left; a file that is not there is as well.
fn forget(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Rows that are there already are kept under another name: they may have taken an hour.
fn set_aside(folder: &StepFolder) {
    // A journal without its file would be taken for that of the next.
    for end in ["", "-journal"] {
        let before = folder.file(&format!("before-{ROWS}{end}"));
        let _ = std::fs::rename(folder.file(&format!("{ROWS}{end}")), before);
    }
}

/// What a command wrote; nothing where it did not get so far.
fn written(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The figures in one command's JSON.
fn found(extent: &Extent, json: &Path, end: End, messages: &Logged) -> StepFigures {
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

/// Whether a text has a name as a whole word: `release` does not have `lea`.
fn mentions(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || "-_:/=,.+".contains(c);
    text.split(|c| !part(c)).any(|word| word == name || word.trim_end_matches([':', ',', '.']) == name)
}

/// Gives each program under each manager that has no figure a reason.
fn explain(extent: &Extent, found: &mut StepFigures) {
    for program in extent.programs() {
        for manager in extent.managers() {
            let has =
                found.facts.measured.iter().any(|fact| fact.program == *program && fact.manager == *manager);
            let is_covered = found
                .facts
                .absent
                .iter()
                .any(|(other, of, _)| other == program && of.as_ref().is_none_or(|of| of == manager));
            if has || is_covered {
                continue;
            }
            let runs = extent.step.run_as(program);
            let names = |warning: &&String| {
                (mentions(warning, program) || mentions(warning, runs)) && mentions(warning, manager)
            };
            let why = match found.warnings.iter().find(names) {
                Some(warning) => warning.clone(),
                None => match found.ended {
                    Some(EndCause::Deadline) => "the step was cut before it was run".into(),
                    Some(EndCause::Interrupt) => "Ctrl-C came before it was run".into(),
                    _ => found.why.clone().unwrap_or_else(|| "the command gave no figure of it".into()),
                },
            };
            found.facts.lack(program, manager, &why);
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_facts::Value;

    use super::*;

    /// Before, the collectors of `lab replay-graph` that were refused had no reason.
    #[test]
    fn what_a_trace_lacks_is_of_the_program_and_the_collector_that_the_step_names() {
        let added = |recorded_under| {
            let (mut all, mut of_trace) = (Facts::default(), Facts::default());
            of_trace.of("lua.graph", "mmtk:immix").put("copied_kib", None, Value::Single(4.0));
            of_trace.lack("lua.graph", "mmtk:nogc", "it collects nothing");
            add(&mut all, of_trace, "lua", recorded_under);
            let fact = &all.measured[0];
            (format!("{} {}", fact.program, fact.manager), all.reasons().collect::<Vec<_>>())
        };
        let why = |manager: &str| vec![format!("lua under {manager}: it collects nothing")];
        assert_eq!(added(None), ("lua mmtk:immix".into(), why("mmtk:nogc")));
        assert_eq!(added(Some("tithe")), ("lua tithe".into(), why("tithe")));
    }

    /// A warning about a release was once given as the reason why `lea` had no figure.
    #[test]
    fn a_name_is_a_word_of_its_own() {
        assert!(mentions("lea on cfrac: refused", "lea") && mentions("cfrac under lea: it failed", "cfrac"));
        assert!(mentions("cfrac under sweep/mimalloc3, which", "sweep/mimalloc3"));
        assert!(!mentions("cfrac: release at the end", "lea"));
        assert!(!mentions("cfrac:gc under lea", "cfrac"), "a variant is another program");
    }
}
