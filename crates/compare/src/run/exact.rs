//! The exact axis of `run`: once everything is measured, each program runs once more under each manager and the tracer.
//!
//! Runs that cannot be made, or do not come out whole, are left out with the reason; what was measured stays as it is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use heaptoll_experiment::experiment::{Experiment, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::observation::{LocalityFigures, Observation, Outcome, Phase};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::runner::Ending;
use heaptoll_experiment::store::Store;
use heaptoll_locality::machine::Machine;
use heaptoll_locality::machine_only::MachineOnly;
use heaptoll_locality::simulation::Partial;
pub use heaptoll_reftrace_host::Tracer;
use heaptoll_reftrace_host::{Fitness, Options, Traced};
use heaptoll_statistics::median;

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::estimate::Estimate;
use heaptoll_runs::traced::{
    Cell, LIMIT_S, NOT_MEASURABLE, Run, TracedRunner, fitness_of, other_path, remarks_of,
};
use heaptoll_traced::simulated_machine;

/// A traced run takes this many times the program's CPU time, with the machine's caches simulated: 45 to 85 (gawk, lua,
/// espresso, on a machine with other work).
const SLOWER: f64 = 60.0;
/// Bytes that the simulation of a process image may take.
const MEMORY_LIMIT: u64 = 4 << 30;
/// The beginning of the reason for which a program has no exact counts.
const LEFT_OUT: &str = "left out of the exact counts";

/// The tracer, before anything is measured.
///
/// # Errors
/// It cannot run here: what to install.
pub fn tracer(places: &Places) -> Result<Tracer, Failure> {
    Tracer::find(places).map_err(|error| Failure::Refused(Box::new(error)))
}

/// Adds exact counts to an experiment that was begun without them.
///
/// # Errors
/// The file cannot be written.
pub fn add(experiment: &mut Experiment, store: &Store) -> Result<(), Failure> {
    if experiment.settings.exact {
        return Ok(());
    }
    experiment.settings.exact = true;
    let words = &mut experiment.settings.repeat_command;
    words.insert(words.len().min(2), "--exact".into());
    Ok(store.describe(experiment)?)
}

/// Makes the traced runs that an experiment lacks, and stores each.
///
/// # Errors
/// The tracer does not work at all, or a row cannot be stored.
pub fn count(
    experiment: &mut Experiment,
    store: &Store,
    tracer: &Tracer,
    context: &Context,
) -> Result<Ending, Failure> {
    let mut cells = lacking(experiment);
    leave_out_servers(experiment);
    if cells.is_empty() {
        store.describe(experiment)?;
        return Ok(Ending::Complete);
    }
    experiment.complete = false;
    store.describe(experiment)?;
    if let Some(text) = announced(experiment, &cells).sentence() {
        context.messages.note(&text);
    }
    let fitness = match fitness_of(cells.iter().map(|cell| &cell.stack), tracer, context) {
        Err(Failure::Interrupted) => return Ok(Ending::Interrupted),
        // There is something that was measured.
        Err(Failure::Refused(error)) => return Err(Failure::Trouble(error)),
        other => other?,
    };
    judge(experiment, &mut cells, &fitness);
    let settings = experiment.settings.clone();
    let folder = settings.working_copy.then(|| PathBuf::from(&settings.directory));
    let runner = TracedRunner {
        copied: folder.as_deref(),
        tracer,
        context: *context,
        protocol: &Protocol { timeout_s: settings.timeout_s.max(LIMIT_S), ..settings },
    };
    if all(experiment, store, &runner, &cells)? == Ending::Interrupted {
        return Ok(Ending::Interrupted);
    }
    experiment.complete = true;
    store.describe(experiment)?;
    Ok(Ending::Complete)
}

/// The runs one after the other; of a program whose baseline was not counted, none.
fn all(
    experiment: &mut Experiment,
    store: &Store,
    runner: &TracedRunner,
    cells: &[Cell],
) -> Result<Ending, Failure> {
    let (machine, _) = simulated_machine::choose(None, None).map_err(Failure::Usage)?;
    for (number, cell) in cells.iter().enumerate() {
        if !cell.is_baseline && !baseline_is_counted(experiment, &cell.program.name) {
            let why = format!("{LEFT_OUT}: there are none of {} to compare with", experiment.baseline);
            note(experiment, &cell.program.name, &cell.stack.name, vec![why]);
            continue;
        }
        let place = format!("exact counts {}/{}", number + 1, cells.len());
        let stops = runner.context.interrupt.is_set();
        if stops || one(experiment, store, runner, cell, &place, &machine)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
    }
    Ok(Ending::Complete)
}

/// The traced runs that are still to be made, each program's baseline first: of stacks with a good run to compare with.
fn lacking(experiment: &Experiment) -> Vec<Cell> {
    let lacks = |stack: &&StackInfo| {
        let mut rows = experiment.rows(&stack.program, &stack.name);
        rows.clone().any(|row| row.phase.is_measured() && row.outcome.is_ok())
            && !rows.any(|row| row.phase == Phase::Traced && row.outcome != Outcome::Interrupted)
    };
    let mut cells = Vec::new();
    for program in experiment.programs.iter().filter(|program| program.serve.is_none()) {
        let stacks = experiment.stacks_of(&program.name).filter(lacks);
        let mut of_it: Vec<Cell> = stacks.map(|stack| cell(program, stack, &experiment.baseline)).collect();
        of_it.sort_by_key(|cell| !cell.is_baseline);
        cells.extend(of_it);
    }
    cells
}

fn cell(program: &ProgramInfo, stack: &StackInfo, baseline: &str) -> Cell {
    // The warnings of the preflight are under the measured table already.
    let shown = StackInfo { warnings: vec![], ..stack.clone() };
    Cell { is_baseline: stack.name == baseline, ..Cell::alone(program, shown) }
}

fn baseline_is_counted(experiment: &Experiment, program: &str) -> bool {
    let counts = |row: &Observation| row.outcome.is_ok() && row.exact.is_some_and(|exact| exact.whole);
    let mut rows = experiment.rows(program, &experiment.baseline);
    rows.any(|row| row.phase == Phase::Traced && counts(row))
}

/// Replaces the notes of a cell.
fn note(experiment: &mut Experiment, program: &str, stack: &str, texts: Vec<String>) {
    experiment.exact_notes.retain(|(of, under, _)| of != program || under != stack);
    experiment.exact_notes.extend(texts.into_iter().map(|text| (program.into(), stack.into(), text)));
}

fn leave_out_servers(experiment: &mut Experiment) {
    let servers = experiment.programs.iter().filter(|program| program.serve.is_some());
    let names: Vec<String> = servers.map(|program| program.name.clone()).collect();
    for name in names {
        let why = format!("{LEFT_OUT}: a server under a timed load would not repeat");
        note(experiment, &name, "", vec![why]);
    }
}

/// How long it will take, by what the runs have taken.
fn announced(experiment: &Experiment, cells: &[Cell]) -> Estimate {
    let seconds = |cell: &Cell| {
        let good = experiment.observations.iter().filter(|row| {
            row.program == cell.program.name
                && row.stack == cell.stack.name
                && row.phase.is_measured()
                && row.outcome.is_ok()
        });
        median(&good.map(Observation::cpu_s).collect::<Vec<_>>())
    };
    Estimate {
        what: format!("{} traced runs to make for exact counts", cells.len()),
        seconds: SLOWER * cells.iter().map(seconds).sum::<f64>(),
        at_least: false,
        provided: format!("each takes {SLOWER:.0} times the program's CPU time; Ctrl-C keeps what there is"),
    }
}

/// Leaves out managers that do not run under the tracer, and all of a program whose baseline does not.
fn judge(experiment: &mut Experiment, cells: &mut Vec<Cell>, fitness: &BTreeMap<String, Fitness>) {
    cells.retain_mut(|cell| match fitness.get(&cell.stack.name) {
        Some(Fitness::NotMeasurable(why)) => {
            let why = format!("{LEFT_OUT}: {NOT_MEASURABLE}: {why}");
            note(experiment, &cell.program.name, &cell.stack.name, vec![why]);
            false
        }
        Some(Fitness::OtherPath(why)) => {
            cell.cautions = vec![other_path(&cell.stack.name, why)];
            true
        }
        _ => true,
    });
}

/// One traced run, stored with its figures.
fn one(
    experiment: &mut Experiment,
    store: &Store,
    runner: &TracedRunner,
    cell: &Cell,
    place: &str,
    machine: &Machine,
) -> Result<Ending, Failure> {
    let options = Options { references: true, ..Options::default() };
    let run = runner.run(cell, &options, place, &mut |_, _| MachineOnly::new(machine, MEMORY_LIMIT))?;
    let (program, stack) = (&cell.program.name, &cell.stack.name);
    match run {
        Err(_) if runner.context.interrupt.is_set() => return Ok(Ending::Interrupted),
        Err(error) => note(experiment, program, stack, vec![format!("{LEFT_OUT}: {error}")]),
        Ok(Run { row, .. }) if row.outcome == Outcome::Interrupted => return Ok(Ending::Interrupted),
        Ok(Run { traced, mut row }) => {
            row.order = experiment.observations.last().map_or(0, |last| last.order + 1);
            let mut texts = match traced.stopped.is_none() && row.outcome.is_ok() {
                true => remarks_of(cell, &traced, &row.outcome),
                // Why the row is left out is stated by its outcome.
                false => traced.stopped.iter().cloned().collect(),
            };
            let (locality, doubt) = locality(traced, machine);
            (row.locality, texts) = (locality, texts.into_iter().chain(doubt).collect());
            note(experiment, program, stack, texts);
            store.append(&row)?;
            experiment.observations.push(row);
        }
    }
    store.describe(experiment)?;
    Ok(Ending::Complete)
}

/// Simulated misses of the process image that executed most, and reasons to doubt them.
fn locality(mut traced: Traced<MachineOnly>, machine: &Machine) -> (Option<LocalityFigures>, Vec<String>) {
    let images = traced.images.len();
    let Some(main) = traced.main_at() else { return (None, vec![]) };
    let found = traced.images.swap_remove(main).sink.finish();
    let mut doubts = Vec::new();
    if images > 1 {
        doubts.push(format!(
            "instructions are sums over all {images} process images; misses and pages are from the image \
             that executed most"
        ));
    }
    if let Some(Partial::Memory { limit, unsimulated }) = found.partial {
        doubts.push(format!(
            "pages are counted until the simulation needed more than {}, {unsimulated} references before the \
             end",
            heaptoll_units::size_text(limit)
        ));
    }
    let figures = LocalityFigures {
        references: simulated_machine::owners(&found.references),
        line_bytes: found.line_bytes,
        page_bytes: found.page_bytes,
        caches: simulated_machine::misses(machine, &found.levels),
        pages_touched: found.pages_touched,
        sampled_one_in: 1,
    };
    (Some(figures), doubts)
}
