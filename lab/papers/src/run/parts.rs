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
    /// The commit of the heaptoll that measured it: another one's part is measured again.
    commit: Option<String>,
    /// How long that took.
    seconds: f64,
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
        !self.is_stopped() && self.why.is_none() && !self.facts.measured.is_empty()
    }

    fn is_stopped(&self) -> bool {
        self.ended.is_some_and(|cause| cause != EndCause::Itself)
    }

    fn add(&mut self, part: StepFigures) {
        let StepFigures { facts, warnings, why, ended, seconds } = part;
        self.facts.measured.extend(facts.measured);
        self.facts.absent.extend(facts.absent);
        for (all, more) in [(&mut self.warnings, warnings), (&mut self.facts.pairing, facts.pairing)] {
            let new: Vec<String> = more.into_iter().filter(|words| !all.contains(words)).collect();
            all.extend(new);
        }
        self.why = why.or(self.why.take());
        self.seconds += seconds;
        if !self.is_stopped() {
            self.ended = ended;
        }
    }
}

/// Measures the parts of a step that are not kept. Once one was stopped, no further ones; what is kept of them counts.
///
/// # Errors
/// heaptoll cannot be started, or files cannot be written.
pub fn measured(
    heaptoll: &Heaptoll,
    commit: Option<&str>,
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
        let is_same = |kept: &Kept| kept.commands == commands && kept.commit.as_deref() == commit;
        if let Some(kept) = read::<Kept>(&file).ok().filter(is_same) {
            let Kept { facts, warnings, seconds, .. } = kept;
            all.add(StepFigures { facts, warnings, ended: Some(EndCause::Itself), why: None, seconds });
            continue;
        }
        if all.is_stopped() {
            continue;
        }
        let begun = Instant::now();
        let mut found = match extent.step.kind.records() {
            true => recorded(heaptoll, &part, until, poll)?,
            false => counted(heaptoll, &part, until, poll)?,
        };
        found.seconds = begun.elapsed().as_secs_f64();
        if found.is_whole() {
            let (facts, warnings, commit) =
                (found.facts.clone(), found.warnings.clone(), commit.map(str::to_owned));
            write(&file, &Kept { commands, commit, seconds: found.seconds, facts, warnings })?;
        }
        all.add(found);
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
    use heaptoll_experiment::interrupt::Interrupt;
    use heaptoll_facts::Value;

    use super::super::folder::Folder;
    use super::super::plan::Plan;
    use super::*;
    use crate::budget::Planned;
    use crate::definition::Step;

    /// A step of two programs that Ctrl-C stops at the first one; the second's part is kept, of commit `a`.
    fn stopped_at_the_first(commit: &str) -> StepFigures {
        let step: Step = toml::from_str(
            "id = 's'\nkind = 'instructions'\nprograms = ['cfrac', 'gawk']\nmanagers = ['lea']",
        )
        .expect("a step");
        let planned = Planned {
            study: "zorn1992".into(),
            step: "s".into(),
            programs: 2,
            of_programs: 2,
            managers: 1,
            of_managers: 1,
            repetitions: 1,
            of_repetitions: 1,
            size: "quick".into(),
            seconds: 1.0,
            deadline_s: 10.0,
        };
        let scratch = tempfile::tempdir().expect("a folder");
        let made = Folder::make(Some(&scratch.path().join("kept")), &Plan::of(vec![])).expect("it is made");
        let folder = made.step("s").expect("it is made");
        let extent = Extent { step: &step, planned: &planned, seed: 7, catalog: None };
        let second = Part { extent: &extent, folder: &folder, program: "gawk", manager: None, number: 2 };
        let mut facts = Facts::default();
        facts.of("gawk", "lea").put("instructions", None, Value::Single(4.0));
        let commands = second.commands();
        let kept = Kept { commands, commit: Some("a".into()), seconds: 1e9, facts, warnings: vec![] };
        write(&second.file("kept", "json"), &kept).expect("it is kept");
        let interrupt = Interrupt::default();
        interrupt.set();
        let heaptoll = Heaptoll { program: Path::new("/bin/false"), interrupt: &interrupt };
        measured(&heaptoll, Some(commit), &extent, &folder, None, &mut || ()).expect("it runs")
    }

    /// Before, parts after a stopped one were not read, and the time that kept ones had taken was lost.
    #[test]
    fn what_is_kept_counts_also_after_a_part_that_was_stopped() {
        let found = stopped_at_the_first("a");
        let programs: Vec<&str> = found.facts.measured.iter().map(|fact| fact.program.as_str()).collect();
        assert_eq!((programs, found.ended), (vec!["gawk"], Some(EndCause::Interrupt)));
        assert!(found.seconds >= 1e9, "{}", found.seconds);
    }

    /// Before, it was given as a figure of the commit that resumed the step.
    #[test]
    fn a_part_of_another_commit_is_measured_again() {
        let found = stopped_at_the_first("b");
        assert_eq!((found.facts.measured.len(), found.ended), (0, Some(EndCause::Interrupt)));
        assert!(found.seconds < 1e9, "{}", found.seconds);
    }

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
