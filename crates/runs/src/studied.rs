//! Runs shared by the studies: which programs run how often, which rows are kept, and, of `delay`, `frequency` and
//! `reclamation`, an experiment over stacks that the study chose. Rows are stored as `heaptoll run` stores them, so
//! `heaptoll report` shows them too, and Ctrl-C loses nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heaptoll_experiment::compare::judge_outputs;
use heaptoll_experiment::experiment::{Experiment, Pairing, ProgramInfo, Protocol};
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::observation::Phase;
use heaptoll_experiment::runner::Ending;
use heaptoll_report::document::{Document, Section};
use heaptoll_report::format::{self, NONE, date, plural, shell_command};
use heaptoll_statistics::{FEWEST_PAIRS, Interval, student};
use heaptoll_units::each_once;
use schemars::{JsonSchema, Labelled};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::measurement::{StopReason, measure, measure_unless};
use crate::preparation::beginning::{self, Beginning};
use crate::preparation::experiment_file;
use crate::preparation::resume::{come_back, go_where_it_began, resume};
use crate::workload::Workload;
use heaptoll_command::context::{Context, Messages};
use heaptoll_command::failure::Failure;

/// What a study runs, but for its stacks.
#[derive(Debug, Clone)]
pub struct Request {
    /// The programs.
    pub workload: Workload,
    /// How runs are made.
    pub protocol: Protocol,
    /// The file that keeps the rows; a new one in `$XDG_STATE_HOME/heaptoll` without one.
    pub db: Option<PathBuf>,
    /// The file of a study that goes on, which determines what is run, and its repetitions where they are more.
    pub resume: Option<(PathBuf, Option<u32>)>,
}

/// An experiment that was carried out, or the part of it that was.
pub struct StudyOutcome {
    /// Its description and rows; outputs have been judged.
    pub experiment: Experiment,
    /// How it ended.
    pub ending: Ending,
    /// The file that keeps it.
    pub path: PathBuf,
}

/// The JSON of a study: its own figures, and the fields that all studies share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures<F, P> {
    /// Whether all runs were made.
    pub complete: bool,
    /// The file that keeps the rows.
    pub experiment: String,
    /// Timed repetitions.
    pub repetitions: u32,
    /// Seed of every random choice.
    pub seed: u64,
    /// What was found.
    #[serde(flatten)]
    pub found: F,
    /// What the paper published, and what was found of it.
    pub published: Vec<P>,
    /// Stacks that were refused, runs that failed, an early end.
    pub warnings: Vec<String>,
}

impl<F: Labelled, P: Serialize + DeserializeOwned> Labelled for Figures<F, P> {
    const SCHEMA: &'static str = F::SCHEMA;
}

/// What a study found, and the document that shows it.
pub struct Findings<F, P> {
    /// The experiment.
    pub outcome: StudyOutcome,
    /// The document.
    pub document: Document,
    /// The figures, as in the JSON.
    pub figures: Figures<F, P>,
}

impl<F, P> Findings<F, P> {
    /// The findings on an experiment, with what the paper published. `subjects` are those that were swept.
    ///
    /// # Errors
    /// There are no subjects: a resumed file is of another study than `study`, whose stacks have `part`.
    pub fn of(
        outcome: StudyOutcome,
        (study, part): (&str, &str),
        subjects: &[String],
        found: F,
        published: Vec<P>,
        document: Document,
    ) -> Result<Findings<F, P>, Failure> {
        if subjects.is_empty() {
            return Err(Failure::Usage(format!(
                "{} is not a {study} study: it has no stack with {part}. Show it with `heaptoll report`",
                outcome.path.display()
            )));
        }
        let figures = Figures {
            complete: outcome.ending == Ending::Complete,
            experiment: outcome.path.display().to_string(),
            repetitions: outcome.experiment.settings.repetitions,
            seed: outcome.experiment.settings.seed,
            found,
            published,
            warnings: outcome.warnings(),
        };
        Ok(Findings { outcome, document, figures })
    }
}

/// What a study measured that takes one program after the other.
pub struct Visited<P> {
    /// What there is of each program of which there is something.
    pub programs: Vec<P>,
    /// All programs had their turn: no Ctrl-C.
    pub complete: bool,
    /// A program could not be measured, which was reported.
    pub failed: bool,
}

/// Measures one program after the other, until Ctrl-C. Of several the others go on where one cannot be measured.
/// `measure` adds what there is of a program, even where it then fails.
///
/// # Errors
/// Any other error of `measure`; where there is nothing of any program, Ctrl-C, or that `nothing` was measured.
pub fn visit<P>(
    programs: &[ProgramInfo],
    messages: &dyn Messages,
    nothing: &str,
    mut measure: impl FnMut(&ProgramInfo, &mut Vec<P>) -> Result<(), Failure>,
) -> Result<Visited<P>, Failure> {
    let mut visited = Visited { programs: vec![], complete: true, failed: false };
    for program in programs {
        match measure(program, &mut visited.programs) {
            Ok(()) => {}
            Err(Failure::Interrupted) => {
                visited.complete = false;
                break;
            }
            Err(failure @ Failure::NothingToCompare(_)) if programs.len() > 1 => {
                messages.warning(&failure.to_string());
                visited.failed = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    match (visited.programs.is_empty(), visited.complete) {
        (false, _) => Ok(visited),
        (true, true) => Err(Failure::NothingToCompare(nothing.into())),
        (true, false) => Err(Failure::Interrupted),
    }
}

/// Runs every program under every stack and keeps the rows. In lockstep the stacks of one subject run at once: those
/// for which `subject` gives the same name, since ratios are taken to others of it. The first stack is the
/// baseline of the experiment: a program that does not run under it is left out, and its output is the right one.
/// When `stop_reason` returns a reason the rest is cancelled with it. With `--resume` the file determines what is run
/// and `stacks` is not used: read the stacks of the experiment.
///
/// # Errors
/// The request cannot be carried out, Ctrl-C came before anything was measured, or the file cannot be written.
pub fn carry_out(
    request: &Request,
    context: &Context,
    stacks: &[Manager],
    subject: &dyn Fn(&str) -> Option<String>,
    stop_reason: StopReason,
) -> Result<StudyOutcome, Failure> {
    if let Some((path, repetitions)) = &request.resume {
        return go_on(path, *repetitions, context);
    }
    request.workload.require("--set, --all, --serve, or --resume")?;
    if stacks.is_empty() {
        return Err(Failure::Usage("no manager to study: name one with -m (`heaptoll managers`)".into()));
    }
    experiment_file::check(request.db.as_deref())?;
    let beginning = Beginning {
        programs: request.workload.resolve(context)?,
        managers: stacks,
        blocks: blocks(stacks, subject),
        protocol: request.protocol.clone(),
        ..Beginning::default()
    };
    let mut experiment = beginning::describe(beginning, context)?;
    if experiment.stacks.is_empty() {
        let reasons: Vec<String> = refusals(&experiment).collect();
        return Err(Failure::NothingToCompare(format!(
            "nothing is left to run:\n  {}",
            reasons.join("\n  ")
        )));
    }
    let mut store = beginning::keep(&mut experiment, request.db.as_deref(), context)?;
    context.messages.note(&format!("every row is kept in {}", store.path().display()));
    let (ended, stop_reason) = measure_unless(&mut experiment, &mut store, context, stop_reason);
    if let Some(why) = stop_reason {
        return Err(Failure::NothingToCompare(why));
    }
    finish(experiment, store.path().into(), ended)
}

/// The block of each stack: one for each subject, and one for all that have none.
fn blocks(stacks: &[Manager], subject: &dyn Fn(&str) -> Option<String>) -> Vec<u32> {
    let own: Vec<Option<String>> = stacks.iter().map(|stack| subject(&stack.name)).collect();
    let subjects = each_once(&own);
    own.iter().map(|own| subjects.iter().take_while(|other| **other != own).count() as u32).collect()
}

/// Resumes a study's experiment where it was stopped.
fn go_on(path: &Path, repetitions: Option<u32>, context: &Context) -> Result<StudyOutcome, Failure> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let here = std::env::current_dir().ok();
    let (mut store, mut experiment) = resume(&absolute, None, repetitions, context.messages)?;
    go_where_it_began(&experiment)?;
    let ended = measure(&mut experiment, &mut store, context);
    come_back(here)?;
    finish(experiment, absolute, ended)
}

fn finish(
    mut experiment: Experiment,
    path: PathBuf,
    ended: Result<Ending, heaptoll_experiment::runner::RunError>,
) -> Result<StudyOutcome, Failure> {
    let ending = ended?;
    let measured = experiment.observations.iter().any(|row| row.phase == Phase::Timed);
    if ending == Ending::Interrupted && !measured {
        return Err(Failure::Interrupted);
    }
    judge_outputs(&mut experiment);
    Ok(StudyOutcome { experiment, ending, path })
}

fn refusals(experiment: &Experiment) -> impl Iterator<Item = String> {
    experiment
        .refused
        .iter()
        .map(|(program, stack, reason)| format!("{program} under {stack} is left out: {reason}"))
}

impl StudyOutcome {
    /// Warnings: stacks that were refused, runs that failed, an early end.
    pub fn warnings(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        if self.ending == Ending::Interrupted {
            all.push("interrupted: not all runs were made".into());
        }
        all.extend(self.company());
        all.extend(refusals(&self.experiment));
        let mut failed: BTreeMap<(&str, &str), BTreeMap<String, u32>> = BTreeMap::new();
        for row in self.failed() {
            let of_stack = failed.entry((&row.program, &row.stack)).or_default();
            *of_stack.entry(row.outcome.to_string()).or_default() += 1;
        }
        for ((program, stack), outcomes) in failed {
            let words: Vec<String> =
                outcomes.iter().map(|(what, times)| format!("{times}x {what}")).collect();
            all.push(format!("{program} under {stack}: {}", words.join(", ")));
        }
        all
    }

    fn failed(&self) -> impl Iterator<Item = &heaptoll_experiment::observation::Observation> {
        let rows = self.experiment.observations.iter();
        rows.filter(|row| row.phase != Phase::Startup && row.outcome.is_failure())
    }

    /// Machine, plan and file, for the end of a document.
    pub fn facts(&self) -> Vec<(String, String)> {
        let Experiment { machine, settings, .. } = &self.experiment;
        let load = machine.load.map(|load| format!("{load:.2}")).join(", ");
        [
            ("begun", date(self.experiment.created_unix_s)),
            (
                "plan",
                format!(
                    "{} repetitions, each stack once in each, {}in random order; seed {}; {} before them, not \
                     compared",
                    settings.repetitions,
                    self.at_once(),
                    settings.seed,
                    settings.warmup
                ),
            ),
            ("rows", self.path.display().to_string()),
            (
                "machine",
                format!(
                    "{}, {} cores, {} MiB, {}, Linux {}",
                    machine.cpu,
                    machine.cores,
                    machine.memory_kib / 1024,
                    machine.distribution,
                    machine.kernel
                ),
            ),
            ("load when it began", format!("{load} (1, 5, 15 minutes)")),
            ("huge pages", machine.thp.clone()),
        ]
        .map(|(name, text)| (name.to_string(), text))
        .into()
    }

    /// Warnings about runs in lockstep, where that was requested.
    fn company(&self) -> Vec<String> {
        if self.experiment.settings.pairing != Pairing::Lockstep {
            return vec![];
        }
        let mut all = vec![
            "CPU times come from runs in lockstep on one processor. Caches are colder there, and timer-driven \
             managers do extra work; confirm differences with `--pairing interleaved`"
                .to_owned(),
        ];
        for program in &self.experiment.programs {
            let of_it = self.experiment.stacks_of(&program.name);
            let mut apart: Vec<String> = of_it.filter_map(|stack| stack.apart.clone()).collect();
            apart.dedup();
            all.extend(apart.into_iter().map(|why| format!("{}: not all in lockstep: {why}", program.name)));
        }
        all
    }

    /// Which stacks run at once, where any do.
    fn at_once(&self) -> String {
        let all = &self.experiment.programs;
        match all.iter().filter(|program| self.experiment.is_in_lockstep(&program.name)).count() {
            0 => String::new(),
            some if some == all.len() => "in lockstep and separately, ".into(),
            some => format!("in lockstep and separately for {some} of {} programs, ", all.len()),
        }
    }

    /// The command that repeats it.
    pub fn command(&self) -> String {
        shell_command(&self.experiment.settings.repeat_command)
    }

    /// The document of what was studied.
    pub fn document(&self, title: &str, what: &str, sections: Vec<Section>) -> Document {
        Document {
            title: title.into(),
            subtitle: format!("{what}; {}", plural(self.experiment.programs.len(), "program")),
            warnings: self.warnings(),
            sections,
            facts: self.facts(),
            command: self.command(),
            ..Document::default()
        }
    }

    /// Whether a run failed or a stack was refused.
    pub fn has_trouble(&self) -> bool {
        self.failed().next().is_some() || !self.experiment.refused.is_empty()
    }
}

/// A ratio with its interval as a cell.
pub fn ratio_cell(interval: Option<Interval>) -> String {
    interval.map_or_else(|| NONE.into(), |interval| format::interval(&interval))
}

/// Managers by name, each once: a study pairs a manager with itself.
pub fn without_repeats(managers: Vec<Manager>) -> Vec<Manager> {
    let mut seen = std::collections::HashSet::new();
    managers.into_iter().filter(|manager| seen.insert(manager.name.clone())).collect()
}

/// The fewest programs that are taken as a sample of programs.
const FEWEST_PROGRAMS: usize = 3;

/// The geometric mean of one ratio a program, with its 95 % interval by Student's t on the programs' logarithms: what
/// other programs of this kind would show, where an interval over repetitions is of these programs only. Programs with
/// too few pairs are left out; `pairs` is the number of programs. `None` below three.
pub fn between_programs(ratios: impl IntoIterator<Item = Option<Interval>>) -> Option<Interval> {
    let of_enough = |interval: &Interval| interval.pairs as usize >= FEWEST_PAIRS && interval.ratio > 0.0;
    let logs: Vec<f64> =
        ratios.into_iter().flatten().filter(of_enough).map(|interval| interval.ratio.ln()).collect();
    if logs.len() < FEWEST_PROGRAMS {
        return None;
    }
    let (mean, half) = student::mean(&logs, 1)?;
    let (low, high) = ((mean - half).exp(), (mean + half).exp());
    Some(Interval {
        ratio: mean.exp(),
        low,
        high,
        differs: low > 1.0 || high < 1.0,
        pairs: u32::try_from(logs.len()).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use heaptoll_command::context::Silent;

    use super::*;

    fn one(ratio: f64, pairs: u32) -> Option<Interval> {
        Some(Interval { ratio, low: ratio, high: ratio, differs: false, pairs })
    }

    #[test]
    fn an_interval_between_programs_is_students_on_their_logarithms() {
        let found = between_programs([one(1.0, 8), one(1.1, 8), one(1.21, 8), None]).expect("three programs");
        // t of two degrees of freedom at 97.5 % is 4.3027; the standard error of 0, l, 2l is l / sqrt 3.
        let half = 4.302_653 * 1.1f64.ln() / 3f64.sqrt();
        assert!(
            (found.ratio - 1.1).abs() < 1e-9 && (found.high / 1.1 - half.exp()).abs() < 1e-5,
            "{found:?}"
        );
        assert!((found.low * found.high / 1.21 - 1.0).abs() < 1e-9);
        assert_eq!((found.pairs, found.differs), (3, false));
    }

    #[test]
    fn what_there_is_of_each_program_is_kept_until_one_is_interrupted() {
        let programs =
            ["a", "b", "c"].map(|name| ProgramInfo { name: name.into(), ..ProgramInfo::default() });
        let visited = |ends: &dyn Fn(&str) -> Result<(), Failure>, keeps: bool| {
            visit(&programs, &Silent, "nothing", |program, kept| {
                kept.extend(keeps.then(|| program.name.clone()));
                ends(&program.name)
            })
        };
        let lacking = |_: &str| Err(Failure::NothingToCompare("no".into()));
        let all = visited(&lacking, true).map(|it| (it.programs.len(), it.complete, it.failed));
        assert_eq!(all.map_err(|failure| failure.to_string()), Ok((3, true, true)));
        let stops = |name: &str| if name == "b" { Err(Failure::Interrupted) } else { Ok(()) };
        let first = visited(&stops, true).map(|it| (it.programs.len(), it.complete, it.failed));
        assert_eq!(first.map_err(|failure| failure.to_string()), Ok((2, false, false)));
        assert!(matches!(visited(&lacking, false), Err(Failure::NothingToCompare(why)) if why == "nothing"));
        assert!(matches!(visited(&stops, false), Err(Failure::Interrupted)));
    }

    #[test]
    fn programs_with_too_few_pairs_are_not_in_it_and_two_are_no_sample() {
        assert_eq!(between_programs([one(1.0, 8), one(1.1, 8), one(9.0, 5)]), None);
        let alike = between_programs([one(1.2, 8), one(1.21, 8), one(1.2, 6)]).expect("three programs");
        assert!(alike.differs && alike.low > 1.1);
    }
}
