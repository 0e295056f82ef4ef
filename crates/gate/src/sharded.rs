//! A gate on many machines: what its plan has, what a shard of it counts, and the verdict over all shards.
//!
//! Paired runs are cells of an experiment as those of `run` are: whole repetitions of both builds on one node. What is
//! counted does not depend on how often a program runs, so one shard of each class of machines counts it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::places::Places;
use heaptoll_experiment::store::Store;
use heaptoll_reftrace_host::Tracer;
use heaptoll_statistics::ALPHA;
use heaptoll_units::plural;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::evidence::Evidence;
use super::exact::{self, Exact};
use super::figures::{Figures, Program, Side, Verdict};
use super::judge::Remedy;
use super::judged::Judged;
use super::limits::Limits;
use super::measured::{Measured, TABLE};
use super::prepare::{BASE, NEW, Prepared, Sides, prepare};
use super::request::{Entry, Request};
use super::side::{self, BuiltSide};
use super::subject::Subject;
use super::{Findings, document, notes};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::traced::symbol_table;

/// The name under which each shard's file has the gate.
pub const ATTACHED: &str = "gate";

/// The gate of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedGate {
    /// Its programs.
    pub programs: Vec<PlannedProgram>,
    /// A file with families of allocator symbols besides those of the installation.
    pub allocator_symbols: Option<PathBuf>,
    /// The words of the command that planned it.
    pub command: Vec<String>,
}

/// One program of a gate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedProgram {
    /// Its name.
    pub name: String,
    /// What it is compared with.
    pub base: Side,
    /// What is gated.
    pub new: Side,
    /// Its limits.
    pub limits: Limits,
    /// Whether both may write different output.
    pub outputs_differ: bool,
    /// Wall time of a watched run, s.
    pub run_s: f64,
    /// Memory that is no file's, of the larger of both, bytes.
    pub together_bytes: u64,
    /// What the reader must know before anything is measured.
    pub notes: Vec<String>,
}

impl PlannedGate {
    /// One of its programs.
    fn program(&self, name: &str) -> Option<&PlannedProgram> {
        self.programs.iter().find(|program| program.name == name)
    }

    /// The files that its counts need besides those of its runs.
    pub fn files(&self, places: &Places) -> Vec<PathBuf> {
        let tracer = Tracer::find(places).ok().map(|tracer| tracer.tool().to_path_buf());
        let tables = std::iter::once(places.allocator_symbols()).chain(self.allocator_symbols.clone());
        tables.chain([places.record_layer()]).chain(tracer).collect()
    }
}

/// Describes a gate as one experiment: both builds of each program are run once, watched.
///
/// # Errors
/// It cannot be cut into shards, a build cannot be run, or Ctrl-C.
pub fn describe(request: &Request, context: &Context) -> Result<(Experiment, PlannedGate), Failure> {
    check(request)?;
    let mut whole: Option<Experiment> = None;
    let mut programs = Vec::new();
    for entry in &request.programs {
        let (program, experiment) = described(entry, request, context)?;
        programs.push(program);
        match &mut whole {
            None => whole = Some(experiment),
            Some(whole) => {
                whole.programs.extend(experiment.programs);
                whole.stacks.extend(experiment.stacks);
            }
        }
    }
    let mut whole = whole.ok_or_else(|| Failure::Usage("nothing to gate".into()))?;
    // One analysis, of all repetitions.
    whole.settings.level = Some(TABLE * ALPHA);
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    let allocator_symbols = request.allocator_symbols.as_ref().map(absolute);
    Ok((whole, PlannedGate { programs, allocator_symbols, command: request.protocol.repeat_command.clone() }))
}

/// Refuses what cannot be cut.
fn check(request: &Request) -> Result<(), Failure> {
    let status = request.programs.first().map(|entry| entry.expect_status);
    let refused = [
        (
            request.refs.is_some(),
            "--base-ref builds in a scratch folder of this machine: build both commits where all nodes can \
             read them, and give --base and --new",
        ),
        (
            request.budget_s.is_some(),
            "--budget decides from the rows so far, but a shard has only its own: give -n",
        ),
        (
            request.programs.iter().any(|entry| Some(entry.expect_status) != status),
            "the programs end with different exit statuses: plan them one by one (--only NAME)",
        ),
    ];
    match refused.into_iter().find(|(is_requested, _)| *is_requested) {
        Some((_, why)) => Err(Failure::Usage(why.into())),
        None => Ok(()),
    }
}

fn described(
    entry: &Entry,
    request: &Request,
    context: &Context,
) -> Result<(PlannedProgram, Experiment), Failure> {
    let (base, new) = (BuiltSide::of(&entry.base, None), BuiltSide::of(&entry.new, None));
    let note = side::check(&base, &new)?.note;
    let sides = Sides { entry, base: &base, new: &new };
    let begun = match prepare(&sides, &request.protocol, context)? {
        Prepared::Runs(begun) => *begun,
        Prepared::NewFails(how) => {
            return Err(Failure::NothingToCompare(format!(
                "{}: the new build {how}, and the base does not: use `heaptoll gate` without shards to \
                 report that",
                entry.name
            )));
        }
    };
    let program = PlannedProgram {
        name: entry.name.clone(),
        base: base.described(),
        new: new.described(),
        limits: entry.limits.clone(),
        outputs_differ: entry.outputs_differ,
        run_s: begun.run_s,
        together_bytes: begun.together_bytes,
        notes: note.into_iter().collect(),
    };
    Ok((program, begun.experiment))
}

/// Counts one program of a plan on this node: what its shard's file has.
///
/// # Errors
/// The plan has no such program, a scratch folder cannot be made, or Ctrl-C.
pub fn count(
    gate: &PlannedGate,
    experiment: &Experiment,
    program: &str,
    folder: &Path,
    context: &Context,
) -> Result<Exact, Failure> {
    let missing = || Failure::Usage(format!("the plan has no program {program}"));
    let planned = gate.program(program).ok_or_else(missing)?;
    let info = experiment.program(program).ok_or_else(missing)?;
    let stack = |name: &str| experiment.stack(program, name).ok_or_else(missing);
    let subject = Subject {
        program: info,
        stacks: [stack(BASE)?, stack(NEW)?],
        managers: [planned.base.manager.as_ref(), planned.new.manager.as_ref()],
        protocol: &experiment.settings,
        run_s: planned.run_s,
        together_bytes: planned.together_bytes,
        folder,
    };
    let tracer = Tracer::find(context.places).map_err(|error| error.to_string());
    let table = Arc::new(symbol_table(gate.allocator_symbols.as_deref(), context.places)?);
    let counted = exact::count(&subject, tracer.as_ref(), &table, context)?;
    if context.interrupt.is_set() { Err(Failure::Interrupted) } else { Ok(counted) }
}

/// The name under which a shard's file has what was counted of a program on a class of machines.
pub fn counts_of(class: &str, program: &str) -> String {
    format!("counts:{class}:{program}")
}

/// The verdict over the merged shards of one class of machines.
///
/// # Errors
/// The file is no gate's, shards are missing, it has several classes of machines, or outputs differ that must not.
pub fn decide(path: &Path) -> Result<Findings, Failure> {
    let read = Store::read(path)?;
    let gate: PlannedGate = attached(path, ATTACHED)?.ok_or_else(|| {
        let path = path.display();
        Failure::Usage(format!(
            "{path} does not come from a gate: `heaptoll lab shards plan gate` and `heaptoll lab shards \
             merge` make such a file"
        ))
    })?;
    check_whole(&read, path)?;
    let class = read.classes().first().map(|class| (*class).to_owned()).unwrap_or_default();
    let Some((_, whole)) = read.into_classes().into_iter().next() else {
        return Err(Failure::Usage(format!("{} contains no shard", path.display())));
    };
    let mut sight = vec![measured_where(&whole, &class)];
    let mut programs = Vec::new();
    for planned in &gate.programs {
        let exact: Option<Exact> = attached(path, &counts_of(&class, &planned.name))?;
        let exact = exact.ok_or_else(|| {
            let (path, name) = (path.display(), &planned.name);
            Failure::Usage(format!(
                "{path} has no counts of {name} on {class}: measure that shard and merge again"
            ))
        })?;
        let (program, seen) = judge(planned, exact, of_program(&whole, &planned.name))?;
        sight.extend(seen.map(|sentence| format!("{}: {sentence}", planned.name)));
        programs.push(program);
    }
    let figures = Figures {
        complete: true,
        created_unix_s: whole.created_unix_s,
        machine: whole.machine,
        sight,
        refused: vec![],
        verdict: programs.iter().map(|program| program.verdict).max().unwrap_or(Verdict::Undecided),
        programs,
    };
    let facts = document::facts(&figures);
    Ok(Findings { figures, facts, command: gate.command })
}

/// Refuses what lacks shards, or has several classes of machines.
fn check_whole(read: &Experiment, path: &Path) -> Result<(), Failure> {
    let (path, classes) = (path.display(), read.classes());
    if classes.len() > 1 {
        return Err(Failure::Usage(format!(
            "{path} was measured on {}, which are never averaged: `heaptoll lab shards merge --class NAME` \
             makes a file of one of them; decide on each",
            classes.join(" and ")
        )));
    }
    if !read.complete {
        let missing = plural(read.missing_shards().len(), "shard");
        return Err(Failure::Usage(format!("{path} lacks {missing}: measure them and merge again")));
    }
    Ok(())
}

/// A text of a merged file, read.
fn attached<T: DeserializeOwned>(path: &Path, name: &str) -> Result<Option<T>, Failure> {
    let Some(text) = Store::read_attached(path, name)? else { return Ok(None) };
    let damaged = |error: serde_json::Error| {
        Failure::Usage(format!("{} is damaged: `{name}`: {error}; merge the shards again", path.display()))
    };
    serde_json::from_str(&text).map(Some).map_err(damaged)
}

/// Which nodes measured it.
fn measured_where(whole: &Experiment, class: &str) -> String {
    let shards = plural(whole.settings.shards.len(), "shard");
    let nodes = plural(whole.nodes().len(), "node");
    format!(
        "measured in {shards} on {nodes} of the class {class}; both builds of a repetition ran on one node"
    )
}

/// The runs of one program, and the repetitions that it has on this class of machines.
fn of_program(whole: &Experiment, program: &str) -> Measured {
    let rows: Vec<Observation> =
        whole.observations.iter().filter(|row| row.program == program).cloned().collect();
    let timed =
        whole.settings.shards.iter().filter(|shard| shard.part.program == program && !shard.part.counts);
    let ends = timed.map(|shard| shard.part.first + shard.part.repetitions);
    let mut experiment = Experiment { observations: rows, tracks: vec![], ..whole.clone() };
    experiment.programs.retain(|info| info.name == program);
    experiment.stacks.retain(|stack| stack.program == program);
    experiment.settings.repetitions = ends.max().unwrap_or(0);
    // In lockstep both share a processor, so that their runs together take the time of both.
    let spent_s = experiment.observations.iter().map(Observation::cpu_s).sum();
    Measured { experiment, spent_s }
}

/// The figures of one program, and what differences were seen.
fn judge(
    planned: &PlannedProgram,
    exact: Exact,
    measured: Measured,
) -> Result<(Program, Option<String>), Failure> {
    let judged = Judged {
        name: &planned.name,
        base: planned.base.clone(),
        new: planned.new.clone(),
        limits: &planned.limits,
        outputs_differ: planned.outputs_differ,
        remedy: Remedy::Plan,
        unchanged: None,
    };
    judged.check_outputs(&measured)?;
    let seen = notes::sight(&measured, planned.outputs_differ);
    let nodes = notes::nodes(&measured, planned.outputs_differ);
    let outputs = measured.outputs();
    let evidence = Evidence { measured, exact, outputs, trouble: None, interrupted: false };
    let mut program = judged.judged(evidence);
    program.notes.extend(nodes);
    program.notes.extend(planned.notes.iter().cloned());
    Ok((program, seen))
}
