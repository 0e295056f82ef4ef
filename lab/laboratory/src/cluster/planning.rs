//! Making a plan: the experiment is described and proved as `run` does it, each program runs once under each manager, and
//! what that took cuts the experiment into shards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::SystemTime;

use heaptoll_experiment::experiment::{Experiment, StackInfo};
use heaptoll_experiment::kept_input;
use heaptoll_experiment::observation::{Observation, Phase};
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::runner::Ending;
use heaptoll_experiment::slow::leave_slow_apart;
use heaptoll_experiment::store::Store;
use heaptoll_scratch::Scratch;

use super::cutting::{self, ProgramTime};
use super::digests::{self, FileDigest};
use super::format::{FORMAT, VERSION};
use super::machine_class::MachineClass;
use super::plan::{CatalogEntries, Plan};
use super::role::Role;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_compare::run;
use heaptoll_gate::request::Request as GateRequest;
use heaptoll_gate::sharded::{self, PlannedGate};
use heaptoll_runs::cells;
use heaptoll_runs::measurement;
use heaptoll_runs::preparation::settings_in_environment;

/// What a start-up run takes with its launcher, roughly, s.
const STARTUP_S: f64 = 0.01;

/// A traced run takes so many times a run, roughly; a gate makes three of them, and two recordings.
const COUNTS: f64 = 150.0;

/// How an experiment is cut.
pub struct Cut {
    /// Time of a shard, s.
    pub shard_s: f64,
    /// The classes of machines; this machine's without any.
    pub classes: Vec<MachineClass>,
}

/// Makes a plan; each program runs under each manager twice: for the proof, and for the time that it takes.
///
/// # Errors
/// The request cannot be carried out, the baseline fails, or Ctrl-C.
pub fn plan(request: &run::RunRequest, how: &Cut, context: &Context) -> Result<Plan, Failure> {
    check(request)?;
    let experiment = run::describe(request, context)?;
    let catalog = catalog(request, &experiment);
    cut(Described { experiment, catalog, gate: None }, how, context)
}

/// Makes the plan of a gate; both builds of each program run twice: to see that they run, and for the time that it takes.
///
/// # Errors
/// The request cannot be carried out, a build fails, or Ctrl-C.
pub fn plan_gate(request: &GateRequest, how: &Cut, context: &Context) -> Result<Plan, Failure> {
    let (experiment, gate) = sharded::describe(request, context)?;
    let described = Described { experiment, catalog: None, gate: Some(gate) };
    cut(described, how, context)
}

/// What is cut.
struct Described {
    experiment: Experiment,
    catalog: Option<CatalogEntries>,
    gate: Option<PlannedGate>,
}

/// Cuts an experiment.
fn cut(described: Described, how: &Cut, context: &Context) -> Result<Plan, Failure> {
    let Described { mut experiment, catalog, gate } = described;
    if kept_input::is_read_by(&experiment.programs) {
        return Err(Failure::Usage(
            "standard input was a pipe, and is kept only until this command ends; write it to a file that \
             all nodes see, and give --stdin FILE"
                .into(),
        ));
    }
    let others = gate.as_ref().map_or(vec![], |gate| gate.files(context.places));
    let before = files(&experiment, &others, context)?;
    let times = try_out(&mut experiment, context)?;
    let files = without_outputs(before);
    let classes = match how.classes.as_slice() {
        [] => vec![MachineClass::here()],
        named => named.to_vec(),
    };
    check_names(&classes)?;
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    let settings = &mut experiment.settings;
    let mut shards = cutting::cut(&times, &names, settings.repetitions, settings.warmup, how.shard_s);
    let counted = gate.iter().flat_map(|gate| &gate.programs);
    let counted: Vec<(&str, f64)> =
        counted.map(|program| (program.name.as_str(), COUNTS * program.run_s)).collect();
    shards.extend(cutting::counts(&counted, &names, settings.repetitions));
    settings.repetitions *= names.len() as u32;
    let plan = Plan {
        format: FORMAT.into(),
        version: VERSION,
        heaptoll: env!("CARGO_PKG_VERSION").into(),
        identity: String::new(),
        environment: settings_in_environment::set(),
        catalog,
        gate,
        files,
        experiment,
        classes,
        shards,
    };
    Ok(plan.sealed()?)
}

/// Refuses what cannot be cut.
fn check(request: &run::RunRequest) -> Result<(), Failure> {
    request.workload.require("--set or --all")?;
    let protocol = &request.protocol;
    let refused = [
        (
            protocol.precision.is_some() || protocol.budget_s.is_some(),
            "--precision and --budget decide from the rows so far, but a shard has only its own: give -n",
        ),
        (protocol.exact, "--exact counts on one machine: `heaptoll exact instructions` does it there"),
        (request.db.is_some(), "--db: each shard has a file of its own; name the whole file when you merge"),
    ];
    match refused.into_iter().find(|(is_requested, _)| *is_requested) {
        Some((_, why)) => Err(Failure::Usage(why.into())),
        None => Ok(()),
    }
}

fn check_names(classes: &[MachineClass]) -> Result<(), Failure> {
    let twice = classes
        .iter()
        .enumerate()
        .find(|(at, class)| classes[..*at].iter().any(|other| other.name == class.name));
    match twice {
        Some((_, class)) => Err(Failure::Usage(format!(
            "two classes of machines are called {}: give each its own name, --class NAME=FILE",
            class.name
        ))),
        None => Ok(()),
    }
}

/// The catalog's entries, where the programs are some.
fn catalog(request: &run::RunRequest, experiment: &Experiment) -> Option<CatalogEntries> {
    let workload = &request.workload;
    let is_catalog = workload.serve.is_none() && workload.command.is_empty();
    is_catalog.then(|| CatalogEntries {
        names: experiment.programs.iter().map(|program| program.name.clone()).collect(),
        size: workload.size.name().into(),
        folder: workload.catalog.as_ref().map(|folder| {
            std::path::absolute(folder).unwrap_or_else(|_| folder.clone()).display().to_string()
        }),
    })
}

/// The files that take part, each with the time of its last change.
fn files(
    experiment: &Experiment,
    others: &[PathBuf],
    context: &Context,
) -> Result<Vec<(FileDigest, Option<SystemTime>)>, Failure> {
    let files = digests::of_experiment(experiment, others, context.places).map_err(refused)?;
    Ok(files.into_iter().map(|file| (changed(&file), file)).map(|(time, file)| (file, time)).collect())
}

fn changed(file: &FileDigest) -> Option<SystemTime> {
    std::fs::metadata(PathBuf::from(&file.path)).and_then(|found| found.modified()).ok()
}

/// Without the files that a word of a command names and that the runs wrote to: outputs.
fn without_outputs(files: Vec<(FileDigest, Option<SystemTime>)>) -> Vec<FileDigest> {
    let is_kept = |file: &FileDigest, before| file.role != Role::Input || changed(file) == before;
    files.into_iter().filter(|(file, before)| is_kept(file, *before)).map(|(file, _)| file).collect()
}

/// Runs each program once under each manager: what is too slow for lockstep leaves it, as it does in `run` after the
/// first warm-up, but for all shards alike.
fn try_out(experiment: &mut Experiment, context: &Context) -> Result<Vec<ProgramTime>, Failure> {
    let scratch = Scratch::make().map_err(heaptoll_experiment::runner::RunError::Scratch)?;
    let mut store = Store::create(&scratch.path().join("tried.db"), experiment)?;
    let mut tried = experiment.clone();
    tried.settings.warmup = 1;
    let first: Vec<Cell> =
        cells::all(&tried).into_iter().filter(|cell| cell.phase == Phase::Profile).collect();
    let ended = measurement::measure_cells(experiment, &mut store, &first, context)?;
    if ended == Ending::Interrupted {
        return Err(Failure::Interrupted);
    }
    let failed = |row: &&Observation| row.stack == experiment.baseline && !row.outcome.is_ok();
    if let Some(row) = experiment.observations.iter().find(failed) {
        return Err(Failure::NothingToCompare(format!(
            "{} fails under the baseline {} itself: {}\n{}",
            row.program,
            row.stack,
            row.outcome,
            row.stderr_tail.trim()
        )));
    }
    leave_slow_apart(experiment);
    let times = experiment.programs.iter().map(|program| time(experiment, &program.name)).collect();
    experiment.observations.clear();
    experiment.tracks.clear();
    Ok(times)
}

/// How long the parts of a program take, by one run under each manager.
fn time(experiment: &Experiment, program: &str) -> ProgramTime {
    let rows = experiment.observations.iter().filter(|row| row.program == program);
    let walls: BTreeMap<&str, f64> = rows.map(|row| (row.stack.as_str(), row.wall_s)).collect();
    let wall = |stack: &&StackInfo| walls.get(stack.name.as_str()).copied().unwrap_or(0.0);
    let stacks: Vec<&StackInfo> = experiment.stacks.iter().filter(|stack| stack.program == program).collect();
    let (together, alone): (Vec<&StackInfo>, Vec<&StackInfo>) =
        stacks.iter().partition(|stack| experiment.runs_in_lockstep(stack));
    let turns = f64::from(experiment.turns(program));
    // A block takes as long as its slowest stack, times their number; and each of it runs alone, too.
    let slowest = together.iter().map(wall).fold(0.0, f64::max);
    let at_once = if together.is_empty() { 0.0 } else { turns + (together.len() - 1) as f64 };
    let baseline = stacks.iter().find(|stack| stack.name == experiment.baseline).map_or(0.0, wall);
    let each: f64 = together.iter().chain(&alone).map(wall).sum::<f64>() + baseline * (turns - 1.0);
    let startups = STARTUP_S * stacks.len() as f64;
    ProgramTime {
        program: program.into(),
        repetition_s: slowest * at_once + each + startups,
        warmup_s: f64::from(experiment.settings.warmup) * stacks.iter().map(wall).sum::<f64>(),
    }
}

fn refused(error: super::ClusterError) -> Failure {
    Failure::Refused(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::experiment::Pairing;
    use heaptoll_experiment::testing::programs::{experiment, row};

    #[test]
    fn a_repetition_in_lockstep_takes_its_block_and_its_runs_alone() {
        let names = ["glibc", "one", "two"].map(String::from);
        let mut made = experiment(&["prog"], &names, 3);
        made.settings.warmup = 2;
        made.observations = names.iter().map(|stack| row("prog", stack, 0, 2.0, 1)).collect();
        let count = names.len() as f64;
        for (pairing, runs) in [(Pairing::Interleaved, count), (Pairing::Lockstep, 2.0 * count)] {
            made.settings.pairing = pairing;
            made.stacks.iter_mut().for_each(|stack| stack.apart = None);
            let time = time(&made, "prog");
            assert!((time.repetition_s - runs * 2.0 - count * STARTUP_S).abs() < 1e-9, "{time:?}");
            assert!((time.warmup_s - 2.0 * count * 2.0).abs() < 1e-9, "{time:?}");
        }
    }
}
