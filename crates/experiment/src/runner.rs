//! Makes the invocations of a plan, one at a time, and stores each row before the next begins.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptoll_catalog::Varying;
use heaptoll_launcher::{Ended, Thp};
use heaptoll_preflight::IN_PROOF_RUN;
use heaptoll_scratch::Scratch;
use heaptoll_stats_page::{StatsPage, VARIABLE};
use regex_lite::Regex;

use crate::clock;
use crate::disturbance::Since;
use crate::experiment::{Experiment, ProgramInfo, StackInfo};
use crate::given_up::{given_up, never_ready};
use crate::interrupt::Interrupt;
use crate::launch::{self, Finished, Invocation, LaunchError};
use crate::lockstep;
use crate::machine;
use crate::manager;
use crate::observation::{Counters, MemoryTrack, Observation, Outcome, Phase, ServeFigures};
use crate::plan::{self, Cell};
use crate::reported::with_page;
use crate::sampler::{Sampled, Sampler};
use crate::serve;
use crate::stack::fixes_addresses;
use crate::store::Store;
use crate::working_copy;

mod around;
mod error;

pub use around::{Around, Left};
pub use error::RunError;

use error::advice;

/// Pace of memory samples in a watched run.
const PACE: Duration = Duration::from_millis(5);
/// Exit status with which the start layer reports that `main` was about to begin. A program that ran in full, because
/// it begins in a way of its own, ends with another.
pub const STARTED: i32 = 113;
/// Slots of the statistics page: one for each process of the run and each of its manager and layers.
const STAT_SLOTS: u32 = 1024;

/// What the runner needs in addition to the experiment.
#[derive(Debug, Clone)]
pub struct RunContext {
    /// The launcher binary.
    pub launcher: PathBuf,
    /// The layer that stops a program where `main` would begin.
    pub start_layer: PathBuf,
    /// Ctrl-C.
    pub interrupt: Interrupt,
}

/// Receives the progress of an experiment.
pub trait Progress {
    /// Before an invocation.
    fn begins(&mut self, cell: &Cell, stack: &StackInfo);
    /// After it, or when it was left out because its stack failed too often.
    fn ended(&mut self, cell: &Cell, row: Option<&Observation>);
    /// The rows of invocations of this program, made at once, are in the experiment.
    fn kept(&mut self, _experiment: &Experiment, _program: &str) {}
}

/// How a run of the plan ended, when nothing of heaptoll's own failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Every cell has its row (or its stack failed too often).
    Complete,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// Makes the cells in order, appending each row to the file and to the experiment, which is complete then.
///
/// # Errors
/// See [`RunError`].
pub fn execute(
    experiment: &mut Experiment,
    cells: &[Cell],
    store: &mut Store,
    context: &RunContext,
    progress: &mut dyn Progress,
) -> Result<Ending, RunError> {
    let ending = execute_part(experiment, cells, store, context, progress)?;
    if ending == Ending::Complete {
        experiment.complete = true;
        store.describe(experiment)?;
    }
    Ok(ending)
}

/// The same of a part of an experiment's cells, which is not complete then.
///
/// # Errors
/// See [`RunError`].
pub fn execute_part(
    experiment: &mut Experiment,
    cells: &[Cell],
    store: &mut Store,
    context: &RunContext,
    progress: &mut dyn Progress,
) -> Result<Ending, RunError> {
    let cells = servers_begin_under_the_baseline(experiment, cells);
    for block in plan::blocks(experiment, &cells) {
        if context.interrupt.is_set() {
            return Ok(Ending::Interrupted);
        }
        let (left_out, made): (Vec<&Cell>, Vec<&Cell>) = block.iter().partition(|cell| {
            let stack = &experiment.stacks[cell.stack];
            given_up(experiment, &stack.program, &stack.name)
                || given_up(experiment, &stack.program, &experiment.baseline)
        });
        left_out.iter().for_each(|cell| progress.ended(cell, None));
        let Some(first) = made.first() else { continue };
        progress.begins(first, &experiment.stacks[first.stack]);
        let mut observed = match made[..] {
            [cell] => {
                let observed = observe(experiment, cell, context, &mut ())?;
                observed.into_iter().map(|(row, track, _)| (row, track)).collect()
            }
            _ => observe_together(experiment, &made, context)?,
        };
        let next = experiment.observations.last().map_or(0, |last| last.order + 1);
        (next..).zip(&mut observed).for_each(|(order, (row, _))| row.order = order);
        // Rows of a block are compared with each other only, so a part of one is never kept.
        store.append_all(observed.iter().map(|(row, _)| row))?;
        for (cell, (row, track)) in made.iter().zip(observed) {
            keep(experiment, store, cell, row, track, progress)?;
        }
        for program in experiment.at_once_with(&experiment.stacks[block[0].stack].program) {
            progress.kept(experiment, program);
        }
    }
    Ok(if context.interrupt.is_set() { Ending::Interrupted } else { Ending::Complete })
}

/// The cells with each server's first watched or warm-up run moved to its baseline: one that is never ready, because its
/// pattern is wrong, then is waited for once and not once a manager. Timed runs keep their order.
fn servers_begin_under_the_baseline(experiment: &Experiment, cells: &[Cell]) -> Vec<Cell> {
    let mut cells = cells.to_vec();
    for program in experiment.programs.iter().filter(|program| program.serve.is_some()) {
        let of_it = |cell: &Cell| experiment.stacks[cell.stack].program == program.name;
        let Some(first) = cells.iter().position(of_it) else { continue };
        let of_baseline = |cell: &Cell| {
            of_it(cell)
                && experiment.stacks[cell.stack].name == experiment.baseline
                && cell.phase.is_warm_up()
        };
        if let Some(at) = cells.iter().position(of_baseline)
            && cells[at].phase == cells[first].phase
        {
            cells[first..=at].rotate_right(1);
        }
    }
    cells
}

/// Takes a row that is stored into the experiment, and stores the track of a watched run.
fn keep(
    experiment: &mut Experiment,
    store: &mut Store,
    cell: &Cell,
    row: Observation,
    track: Option<MemoryTrack>,
    progress: &mut dyn Progress,
) -> Result<(), RunError> {
    // A watched run that was cancelled is made again, and then has its track.
    if let Some(track) = track.filter(|_| row.outcome != Outcome::Interrupted) {
        store.append_track(&track)?;
        experiment.tracks.push(track);
    }
    progress.ended(cell, Some(&row));
    let failed = row.stack == experiment.baseline && cell.phase != Phase::Startup && row.outcome.is_failure();
    let (program, stack) = (row.program.clone(), row.stack.clone());
    experiment.observations.push(row);
    // Of several programs the others go on.
    if failed && experiment.programs.len() == 1 && given_up(experiment, &program, &stack) {
        return Err(baseline_fails(experiment));
    }
    Ok(())
}

/// The advice for programs without a single good run under the baseline, when the plan was too short to give up.
pub fn advice_where_the_baseline_failed(experiment: &Experiment) -> Option<String> {
    experiment.programs.iter().filter(|program| program.serve.is_none()).find_map(|program| {
        let of_baseline = experiment.rows(&program.name, &experiment.baseline);
        let mut rows = of_baseline.filter(|row| row.phase.is_measured());
        let last = rows.clone().next_back()?;
        rows.all(|row| !row.outcome.is_ok()).then(|| advice(&last.outcome, never_ready(last)))?
    })
}

fn baseline_fails(experiment: &Experiment) -> RunError {
    let last = experiment.observations.last();
    let output = last.map(|row| row.stderr_tail.trim()).filter(|text| !text.is_empty());
    let is_last = |stack: &&StackInfo| {
        let is_of = |row: &Observation| row.program == stack.program && row.stack == stack.name;
        last.is_some_and(|row| is_of(row) && matches!(row.outcome, Outcome::Signal(_)))
    };
    // The proof run may have shown what a signal was for.
    let proved =
        experiment.stacks.iter().filter(is_last).flat_map(|stack| stack.warnings.iter().map(String::as_str));
    let seen = proved.filter(|warning| warning.contains(IN_PROOF_RUN)).chain(output);
    RunError::BaselineFails {
        program: last.map(|row| row.program.clone()).unwrap_or_default(),
        stack: experiment.baseline.clone(),
        outcome: last.map_or(Outcome::Interrupted, |row| row.outcome.clone()),
        never_ready: last.is_some_and(never_ready),
        output: seen.map(|text| format!("\n  {}", text.replace('\n', "\n  "))).collect(),
    }
}

/// Environment that pins hash seeds, so that a program does the same work in every run. What the caller or the
/// catalog sets wins.
pub const PINNED: [(&str, &str); 3] =
    [("PYTHONHASHSEED", "0"), ("PERL_HASH_SEED", "0"), ("PERL_PERTURB_KEYS", "0")];

/// What a program's environment has besides the caller's: what is pinned, then what the catalog sets, with the scratch
/// folder's name in its place.
pub fn environment_of(program: &ProgramInfo, scratch: &Path) -> Vec<(String, String)> {
    PINNED
        .iter()
        .filter(|(name, _)| std::env::var_os(name).is_none())
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .chain(program.environment.iter().map(|(name, value)| (name.clone(), program.filled(value, scratch))))
        .collect()
}

/// A statistics page in a run's scratch folder, and the variable that names it.
///
/// # Errors
/// [`RunError::Scratch`].
pub fn page_in(scratch: &Scratch) -> Result<(StatsPage, (String, String)), RunError> {
    let path = scratch.path().join("heaptoll-stats");
    let page = StatsPage::create(&path, STAT_SLOTS)
        .map_err(|error| RunError::Scratch(std::io::Error::other(error.to_string())))?;
    Ok((page, (VARIABLE.into(), path.display().to_string())))
}

/// The invocation of a cell, and the scratch folder that must live as long as it runs.
pub(crate) fn prepare(
    experiment: &Experiment,
    cell: &Cell,
    program: &ProgramInfo,
    stack: &StackInfo,
    context: &RunContext,
) -> Result<(Invocation, Scratch, Option<StatsPage>), RunError> {
    let scratch = Scratch::make().map_err(RunError::Scratch)?;
    let mut environment = environment_of(program, scratch.path());
    environment.extend(manager::in_folder(&stack.environment, scratch.path()));
    environment.push(("HEAPTOLL_PADDING".into(), "x".repeat(cell.env_padding as usize)));
    let directory = match experiment.settings.working_copy {
        true => Some(working_copy::make(Path::new(&experiment.settings.directory), scratch.path())?),
        false => stack.directory().map(Path::to_path_buf),
    };
    let page = if stack.reports_statistics && cell.phase != Phase::Startup {
        let (page, variable) = page_in(&scratch)?;
        environment.push(variable);
        Some(page)
    } else {
        None
    };
    let mut preload: Vec<PathBuf> = stack.preload.iter().map(PathBuf::from).collect();
    if cell.phase == Phase::Startup {
        preload.insert(0, context.start_layer.clone());
    }
    let invocation = Invocation {
        command: stack.command_in(program, scratch.path()),
        environment,
        preload,
        directory,
        stdin: program.stdin.as_ref().map(PathBuf::from),
        timeout: experiment.settings.timeout(),
        thp: Thp::parse(&experiment.settings.thp).unwrap_or_default(),
        counters: experiment.machine.no_hardware_counters.is_none(),
        follow: false,
        // A program that allocates by its addresses then does so alike, as far as they are the kernel's choice.
        fixed_addresses: fixes_addresses(&stack.environment),
        together: None,
    };
    Ok((invocation, scratch, page))
}

/// Begins a span over which disturbances are measured; `None` for start-up runs, which are too short to be measured so.
fn since(phase: Phase) -> Option<Since> {
    if phase == Phase::Startup { None } else { Since::now() }
}

/// What a cell runs.
fn program_of<'a>(experiment: &'a Experiment, cell: &Cell) -> Option<&'a ProgramInfo> {
    experiment.program(&experiment.stacks[cell.stack].program)
}

/// The rows of a block in lockstep, in the order of its cells.
fn observe_together(
    experiment: &Experiment,
    cells: &[&Cell],
    context: &RunContext,
) -> Result<Vec<(Observation, Option<MemoryTrack>)>, RunError> {
    let stack = |cell: &Cell| &experiment.stacks[cell.stack];
    let cells: Vec<(&Cell, &ProgramInfo)> =
        cells.iter().filter_map(|cell| Some((*cell, program_of(experiment, cell)?))).collect();
    let prepared =
        cells.iter().map(|(cell, program)| prepare(experiment, cell, program, stack(cell), context));
    let prepared: Vec<(Invocation, Scratch, Option<StatsPage>)> = prepared.collect::<Result<_, _>>()?;
    let started_unix_s = clock::now().as_secs_f64();
    let (load_average, since) = (machine::load()[0], since(cells[0].0.phase));
    let invocations = prepared.iter().map(|(invocation, _, _)| invocation.clone()).collect();
    let finished = lockstep::run(
        &context.launcher,
        invocations,
        cells.iter().any(|(cell, _)| stack(cell).makes_files),
        experiment.settings.slice_s.and_then(|slice_s| Duration::try_from_secs_f64(slice_s).ok()),
        &context.interrupt,
    )?;
    let disturbance = since.and_then(|since| since.disturbance(lockstep::processor().ok()));
    let rows = cells.iter().zip(&prepared).zip(finished).map(|(((cell, program), prepared), finished)| {
        let (invocation, scratch, page) = prepared;
        let outcome = outcome(&finished, None, experiment, context, invocation, cell.phase);
        let row = row(cell, program, stack(cell), &finished, outcome, None)?;
        let row = with_page(row, page.as_ref(), scratch.path(), &finished);
        Ok((Observation { started_unix_s, load_average, disturbance, ..row }, None))
    });
    rows.collect()
}

/// A row, its track, and what is kept with it.
pub(crate) type Observed = (Observation, Option<MemoryTrack>, Option<Vec<u8>>);

pub(crate) fn observe(
    experiment: &Experiment,
    cell: &Cell,
    context: &RunContext,
    around: &mut dyn Around,
) -> Result<Option<Observed>, RunError> {
    let Some(program) = program_of(experiment, cell) else { return Ok(None) };
    let stack = &experiment.stacks[cell.stack];
    let (mut invocation, scratch, page) = prepare(experiment, cell, program, stack, context)?;
    let timeout = invocation.timeout;
    let load = |command| Invocation { command, timeout, ..Invocation::default() };
    let loads = program.serve.iter().flat_map(|info| program.loads_in(info, scratch.path()));
    let mut loads: Vec<Invocation> = loads.map(load).collect();
    around.begins(scratch.path(), &mut invocation, &mut loads)?;
    let started_unix_s = clock::now().as_secs_f64();
    let (load_average, since) = (machine::load()[0], since(cell.phase));
    let (finished, served, sampled) = match (&program.serve, cell.phase) {
        (Some(info), Phase::Timed | Phase::Alone | Phase::Warmup | Phase::Profile | Phase::Search) => {
            let ready = Regex::new(&info.ready)?;
            let round =
                serve::round(&context.launcher, &invocation, &loads, info, &ready, &context.interrupt)?;
            (round.server, Some((round.figures, round.failure)), Some(round.sampled))
        }
        (None, Phase::Profile) => {
            let running = launch::start(&context.launcher, &invocation, &context.interrupt)?;
            let sampler =
                running.pid().map(|pid| Sampler::watch(pid, PACE)).transpose().map_err(LaunchError::from)?;
            let finished = running.wait()?;
            (finished, None, sampler.map(Sampler::finish))
        }
        _ => (launch::run(&context.launcher, &invocation, &context.interrupt)?, None, None),
    };
    let disturbance = since.and_then(|since| since.disturbance(None));
    let outcome = outcome(&finished, served.as_ref(), experiment, context, &invocation, cell.phase);
    let track = sampled.map(|Sampled { samples, vm_hwm_kib, anonymous_peak_kib }| MemoryTrack {
        program: program.name.clone(),
        stack: stack.name.clone(),
        repetition: cell.repetition,
        samples,
        vm_hwm_kib,
        anonymous_peak_kib,
    });
    // Every server round is sampled; one track a stack is enough to draw.
    let track =
        track.filter(|_| program.serve.is_none() || cell.repetition == 0 && cell.phase == Phase::Timed);
    let row = row(cell, program, stack, &finished, outcome, served.map(|(figures, _)| figures))?;
    let row = with_page(row, page.as_ref(), scratch.path(), &finished);
    let mut row = Observation { started_unix_s, load_average, disturbance, ..row };
    let left = Left { scratch: scratch.path(), page: page.as_ref(), finished: &finished };
    // What is left of an interrupted run may be damaged, and nothing of it is kept.
    let kept = match row.outcome {
        Outcome::Interrupted => None,
        _ => around.ended(&left, &mut row)?,
    };
    Ok(Some((row, track.filter(|track| !track.samples.is_empty()), kept)))
}

fn outcome(
    finished: &Finished,
    served: Option<&(ServeFigures, Option<String>)>,
    experiment: &Experiment,
    context: &RunContext,
    invocation: &Invocation,
    phase: Phase,
) -> Outcome {
    let system = |errno: i32| std::io::Error::from_raw_os_error(errno).to_string();
    match (finished.ended, served) {
        _ if context.interrupt.is_set() => Outcome::Interrupted,
        (Ended::Cancelled, None) => Outcome::Interrupted,
        (Ended::ExecFailed(errno), _) => Outcome::NotStarted(system(errno)),
        (Ended::SetupFailed(errno), _) if invocation.thp != Thp::System => Outcome::NotStarted(format!(
            "this kernel cannot set transparent huge pages to `{}` for one process ({})",
            invocation.thp.as_str(),
            system(errno)
        )),
        (Ended::SetupFailed(errno), _) => Outcome::NotStarted(system(errno)),
        (Ended::Timeout, _) => Outcome::Timeout(invocation.timeout.as_secs_f64()),
        (_, Some((_, Some(failure)))) => Outcome::ServeFailed(failure.clone()),
        (_, Some((_, None))) => Outcome::Ok,
        (Ended::Exit(STARTED), None) if phase == Phase::Startup => Outcome::Ok,
        (Ended::Exit(status), None) if phase == Phase::Startup => {
            Outcome::NotStarted(format!("the program did not reach main (exit status {status})"))
        }
        (Ended::Exit(status), None)
            if phase != Phase::Startup && status == experiment.settings.expect_status =>
        {
            Outcome::Ok
        }
        (Ended::Exit(status), None) => Outcome::Exit(status),
        (Ended::Signal(number), None) => Outcome::Signal(number),
    }
}

fn row(
    cell: &Cell,
    program: &ProgramInfo,
    stack: &StackInfo,
    finished: &Finished,
    outcome: Outcome,
    serve: Option<ServeFigures>,
) -> Result<Observation, RunError> {
    let [instructions, cycles, llc_misses, dtlb_misses] = finished.usage.counters;
    // Its own figures; a program that was stopped before main prints none.
    let mut figures = match &program.figures {
        Some(pattern) => serve::read_figures(&Regex::new(pattern)?, &finished.error_tail),
        None => BTreeMap::new(),
    };
    let of_run = Observation::of_run(cell.phase, (&program.name, &stack.name), finished, outcome);
    let mut output_digest = of_run.output_digest.clone();
    if let (Some(pattern), Some(head)) = (&program.varies, finished.whole_output()) {
        figures.extend(serve::read_figures(&Regex::new(pattern)?, &String::from_utf8_lossy(head)));
        output_digest = Varying::new(pattern).map_or(output_digest, |varying| varying.digest(head));
    }
    Ok(Observation {
        repetition: cell.repetition,
        figures,
        counters: Counters { instructions, cycles, llc_misses, dtlb_misses },
        env_padding: cell.env_padding,
        serve,
        output_digest,
        ..of_run
    })
}
