//! Steps whose command is run in parts: a program, or a program under a manager where it is recorded. What a whole part
//! gave is kept at once: a step that was stopped measures only the parts that it lacks.

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::definition::StepKind;
use heaptoll_facts::{Fact, Facts};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::child::EndCause;
use super::commands::Extent;
use super::folder::{StepFolder, read, write};
use super::started::{Heaptoll, MeasureError, StepFigures, forget, found, with_files, written};

/// Whether a kind of step is: its command keeps no rows that it resumes with.
pub fn has(kind: StepKind) -> bool {
    kind.records() || matches!(kind, StepKind::Instructions | StepKind::Locality)
}

/// What a whole part gave.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// How: a part of another plan is another one.
    commands: Vec<String>,
    facts: Facts,
    warnings: Vec<String>,
}

/// One part, and its files in the step's folder.
struct Part<'a> {
    extent: &'a Extent<'a>,
    folder: &'a StepFolder,
    program: &'a str,
    /// What it is recorded under; none where the command has all managers.
    manager: Option<&'a str>,
    number: usize,
}

impl Part<'_> {
    fn file(&self, name: &str, end: &str) -> PathBuf {
        self.folder.file(&format!("{name}-{}.{end}", self.number))
    }

    /// Its command without the files that it writes, or the recording's.
    fn words(&self, trace: &Path) -> Vec<String> {
        match self.extent.step.kind.records() {
            true => self.extent.recording(self.program, self.manager, trace),
            false => self.extent.arguments_for(&[self.program.to_owned()]),
        }
    }

    /// All that decides what it gives.
    fn commands(&self) -> Vec<String> {
        let none = Path::new("");
        let mut commands = self.words(none);
        if self.extent.step.kind.records() {
            commands.extend(self.extent.analysis(none, none));
        }
        commands
    }
}

impl StepFigures {
    fn is_whole(&self) -> bool {
        self.ended == Some(EndCause::Itself) && self.why.is_none() && !self.facts.measured.is_empty()
    }

    fn add(&mut self, part: StepFigures) {
        let StepFigures { facts, warnings, why, ended } = part;
        self.facts.measured.extend(facts.measured);
        self.facts.absent.extend(facts.absent);
        for (all, more) in [(&mut self.warnings, warnings), (&mut self.facts.pairing, facts.pairing)] {
            let new: Vec<String> = more.into_iter().filter(|words| !all.contains(words)).collect();
            all.extend(new);
        }
        self.why = why.or(self.why.take());
        self.ended = ended;
    }
}

/// Measures the parts of a step that are not kept.
///
/// # Errors
/// heaptoll cannot be started, or files cannot be written.
pub fn measured(
    heaptoll: &Heaptoll,
    extent: &Extent,
    folder: &StepFolder,
    until: Option<Instant>,
    poll: &mut dyn FnMut(),
) -> Result<StepFigures, MeasureError> {
    let mut all = StepFigures::default();
    let (programs, managers) = (extent.run_programs(), extent.recorded_under());
    let cells = programs.iter().flat_map(|program| managers.iter().map(move |one| (program, *one)));
    for (at, (program, manager)) in cells.enumerate() {
        let manager = manager.map(String::as_str);
        let part = Part { extent, folder, program, manager, number: at + 1 };
        let file = part.file("kept", "json");
        let commands = part.commands();
        if let Some(kept) = read::<Kept>(&file).ok().filter(|kept| kept.commands == commands) {
            let Kept { facts, warnings, .. } = kept;
            all.add(StepFigures { facts, warnings, ended: Some(EndCause::Itself), why: None });
            continue;
        }
        let found = match extent.step.kind.records() {
            true => recorded(heaptoll, &part, until, poll)?,
            false => counted(heaptoll, &part, until, poll)?,
        };
        if found.is_whole() {
            let StepFigures { facts, warnings, .. } = &found;
            write(&file, &Kept { commands, facts: facts.clone(), warnings: warnings.clone() })?;
        }
        all.add(found);
        if all.ended != Some(EndCause::Itself) {
            break;
        }
    }
    Ok(all)
}

/// Counts a program under all managers.
fn counted(
    heaptoll: &Heaptoll,
    part: &Part,
    until: Option<Instant>,
    poll: &mut dyn FnMut(),
) -> Result<StepFigures, MeasureError> {
    let (json, out) = (part.file("figures", "json"), part.file("tables", "txt"));
    let words = with_files(part.extent, part.words(Path::new("")), &json, &part.file("rows", "db"));
    let (end, messages) = heaptoll.run(&words, part.folder, &out, until, Signal::INT, poll)?;
    Ok(found(part.extent, &json, end, &messages))
}

/// Records a program, and then analyses the trace.
fn recorded(
    heaptoll: &Heaptoll,
    part: &Part,
    until: Option<Instant>,
    poll: &mut dyn FnMut(),
) -> Result<StepFigures, MeasureError> {
    let Part { extent, folder, program, manager, .. } = *part;
    let (json, out, trace) =
        (part.file("figures", "json"), part.file("tables", "txt"), folder.file("trace.heaptoll"));
    forget(&json);
    // A supervisor's signal goes to the program, which ends the recording.
    let (end, mut messages) = heaptoll.run(&part.words(&trace), folder, &out, until, Signal::TERM, poll)?;
    let mut ended = end.why;
    if end.why == EndCause::Itself && end.code == Some(0) {
        let words = extent.analysis(&trace, &json);
        let (end, more) = heaptoll.run(&words, folder, &out, until, Signal::TERM, poll)?;
        ended = end.why;
        messages.warnings.extend(more.warnings);
        messages.errors.extend(more.errors);
    }
    forget(&trace);
    let name = manager.unwrap_or("glibc");
    let named = |words: &str| format!("{program} under {name}: {words}");
    let warnings = messages.warnings.iter().map(|words| named(words)).collect();
    let mut found = StepFigures { warnings, ended: Some(ended), ..StepFigures::default() };
    if ended != EndCause::Itself {
        return Ok(found);
    }
    let why = match written(&json).map(|text| extent.step.kind.command().facts(&text)) {
        Some(Ok(facts)) => {
            // Collectors that replay the trace are the command's.
            let recorded_under = (!extent.step.kind.replays()).then_some(name);
            add(&mut found.facts, facts, program, recorded_under);
            return Ok(found);
        }
        Some(Err(error)) => error.to_string(),
        None => {
            let status = end.code.map_or("a signal".into(), |code| format!("exit status {code}"));
            let why = messages.reason().map_or_else(|| format!("it ended with {status}"), str::to_owned);
            found.why = Some(named(&why));
            why
        }
    };
    found.warnings.push(named(&why));
    found.facts.lack(program, name, &why);
    Ok(found)
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
}
