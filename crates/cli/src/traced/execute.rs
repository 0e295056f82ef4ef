//! The runs of a plan, one after the other: each is heard, judged, stored and handed to the command.

use std::path::PathBuf;
use std::time::Duration;

use heaptoll_lab::compare::judge_outputs;
use heaptoll_lab::launch::{Finished, Invocation};
use heaptoll_lab::machine;
use heaptoll_lab::observation::{ByOwner, Counters, ExactFigures, Observation, Outcome, Phase};
use heaptoll_lab::runner::environment_of;
use heaptoll_lab::store::Store;
use heaptoll_launcher::Ended;
use heaptoll_reference::{Clock, Owner, Sink};
use heaptoll_tracer::{Image, Options, Progress, Traced, TracerError, trace_with};
use indicatif::{ProgressBar, ProgressStyle};

use super::cell::{Cell, Figures, Heard};
use super::plan::Plan;
use super::remarks;
use super::scratch;
use crate::command::run::begin::{default_db, now};
use crate::failure::{self, Failure};
use crate::lines::Lines;
use crate::terminal;

/// How the runs of a plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All were made, and all are good.
    Complete,
    /// All were made; some are not good, or could not be kept, or a manager that was asked for was refused.
    Trouble,
    /// Ctrl-C; those before it are whole.
    Interrupted,
}

impl Ending {
    /// The command's exit status, `delivered` being that of its outputs.
    pub fn code(self, delivered: u8) -> u8 {
        match self {
            Ending::Complete => delivered,
            Ending::Trouble => failure::TROUBLE,
            Ending::Interrupted => failure::INTERRUPTED,
        }
    }
}

/// Makes the runs. `begin` gives a sink for each process image; `done` takes each run that was heard, the baseline of a
/// program first, and gives what is to be stored of it. Randomness is pinned as the plan says, whatever `options` say.
///
/// # Errors
/// A program's baseline cannot be traced and nothing else was asked for, or Ctrl-C before anything was heard.
pub fn execute<S: Sink>(
    plan: &mut Plan,
    options: &Options,
    mut begin: impl FnMut(&Cell, &Image) -> S,
    mut done: impl FnMut(&Cell, Heard<S>) -> Figures,
) -> Result<Ending, Failure> {
    let options = Options { pin: plan.pin, ..*options };
    let mut keeper = Keeper { store: None, lost: false };
    let mut ending = if plan.refused_what_was_named() { Ending::Trouble } else { Ending::Complete };
    let mut heard = 0;
    let cells = plan.cells.clone();
    for (number, cell) in cells.iter().enumerate() {
        if plan.interrupt.is_set() {
            ending = Ending::Interrupted;
            break;
        }
        let place = format!("{}/{}", number + 1, cells.len());
        match run(plan, cell, &options, &place, &mut begin)? {
            Ok((traced, started_unix_s, load_average)) => {
                let row = Observation { started_unix_s, load_average, ..row(plan, cell, &traced) };
                let interrupted = row.outcome == Outcome::Interrupted && traced.stopped.is_none();
                plan.experiment.observations.push(row);
                // Stored is what the program did; what it is worth is judged anew by whoever reads it.
                let mut stored = plan.experiment.observations[plan.experiment.observations.len() - 1].clone();
                judge_outputs(&mut plan.experiment);
                if interrupted || traced.images.is_empty() {
                    keeper.keep(plan, stored);
                    ending = if interrupted { Ending::Interrupted } else { Ending::Trouble };
                    if interrupted {
                        break;
                    }
                    continue;
                }
                let outcome =
                    plan.experiment.observations.last().map_or(Outcome::Ok, |last| last.outcome.clone());
                let remarks = remarks::of(cell, &traced, &outcome);
                let heard_now = Heard { traced, outcome, remarks };
                if !heard_now.is_good() {
                    ending = Ending::Trouble;
                }
                heard += 1;
                let figures = done(cell, heard_now);
                if let Some(exact) = &mut stored.exact {
                    exact.heap_high_water_bytes = figures.heap_high_water_bytes;
                }
                stored.locality = figures.locality;
                if let Some(last) = plan.experiment.observations.last_mut() {
                    (last.exact, last.locality) = (stored.exact, stored.locality.clone());
                }
                keeper.keep(plan, stored);
            }
            Err(error) => {
                if cells.len() == 1 {
                    return Err(Failure::Refused(Box::new(error)));
                }
                terminal::warning(&format!("{} under {}: {error}", cell.program.name, cell.stack.name));
                let reason = error.to_string();
                plan.experiment.refused.push((cell.program.name.clone(), cell.stack.name.clone(), reason));
                ending = Ending::Trouble;
            }
        }
    }
    if ending == Ending::Interrupted && heard == 0 {
        keeper.close(plan);
        return Err(Failure::Interrupted);
    }
    if heard == 0 {
        let reasons: Vec<String> = plan
            .refused()
            .iter()
            .map(|(program, stack, why)| format!("  {stack} on {program}: {why}"))
            .collect();
        return Err(Failure::NothingToCompare(format!("nothing was heard:\n{}", reasons.join("\n"))));
    }
    plan.experiment.complete = ending != Ending::Interrupted;
    keeper.close(plan);
    if ending == Ending::Interrupted {
        terminal::note("interrupted: what was finished is shown");
    }
    Ok(if keeper.lost && ending == Ending::Complete { Ending::Trouble } else { ending })
}

type Begun<S> = (Traced<S>, f64, f64);

/// One run. What keeps a cell from being heard is the inner error; it does not end the others.
fn run<S: Sink>(
    plan: &Plan,
    cell: &Cell,
    options: &Options,
    place: &str,
    begin: &mut impl FnMut(&Cell, &Image) -> S,
) -> Result<Result<Begun<S>, TracerError>, Failure> {
    let scratch = scratch::make()?;
    let invocation = invocation(plan, cell, &scratch);
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    let title = format!("{place}  {} under {}", cell.program.name, cell.stack.name);
    bar.set_message(title.clone());
    let _lines = Lines::of(&bar);
    let (started_unix_s, load_average) = (now().as_secs_f64(), machine::load()[0]);
    let traced = trace_with(
        &plan.tracer,
        &plan.launcher,
        &invocation,
        options,
        &plan.interrupt,
        |image| begin(cell, image),
        |progress| bar.set_message(format!("{title}: {}", how_far(&progress))),
    );
    bar.finish_and_clear();
    Ok(traced.map(|traced| (traced, started_unix_s, load_average)))
}

/// Progress in words.
fn how_far(progress: &Progress) -> String {
    let millions = progress.instructions as f64 / 1e6;
    let images = match progress.images {
        0 | 1 => String::new(),
        many => format!(", {many} process images"),
    };
    format!("{millions:.0} million instructions{images}, {} s", progress.elapsed.as_secs())
}

fn invocation(plan: &Plan, cell: &Cell, scratch: &heaptoll_scratch::Scratch) -> Invocation {
    let mut environment = environment_of(&cell.program, scratch.path());
    environment.extend(cell.stack.environment.iter().cloned());
    let mut preload: Vec<PathBuf> = cell.stack.preload.iter().map(PathBuf::from).collect();
    // It asks the manager behind it to tell its collections.
    if cell.stack.tells && plan.announce.is_file() {
        preload.insert(0, plan.announce.clone());
    }
    Invocation {
        command: cell.program.command_in(scratch.path()),
        environment,
        preload,
        stdin: cell.program.stdin.as_ref().map(PathBuf::from),
        timeout: Duration::from_secs_f64(plan.experiment.settings.timeout_s),
        ..Invocation::default()
    }
}

fn outcome<S>(plan: &Plan, traced: &Traced<S>) -> Outcome {
    let settings = &plan.experiment.settings;
    match traced.finished.ended {
        _ if plan.interrupt.is_set() => Outcome::Interrupted,
        Ended::Cancelled => Outcome::Interrupted,
        Ended::Timeout => Outcome::Timeout(settings.timeout_s),
        Ended::ExecFailed(errno) | Ended::SetupFailed(errno) => {
            Outcome::NotStarted(std::io::Error::from_raw_os_error(errno).to_string())
        }
        Ended::Exit(status) if status == settings.expect_status => Outcome::Ok,
        Ended::Exit(status) => Outcome::Exit(status),
        Ended::Signal(number) => Outcome::Signal(number),
    }
}

fn row<S>(plan: &Plan, cell: &Cell, traced: &Traced<S>) -> Observation {
    let Finished { usage, output_bytes, digest, error_tail, .. } = &traced.finished;
    let outcome = outcome(plan, traced);
    Observation {
        order: plan.experiment.observations.last().map_or(0, |last| last.order + 1),
        repetition: repetition(plan, cell),
        phase: Phase::Traced,
        program: cell.program.name.clone(),
        stack: cell.stack.name.clone(),
        user_s: usage.user_us as f64 / 1e6,
        system_s: usage.system_us as f64 / 1e6,
        wall_s: usage.wall_ns as f64 / 1e9,
        peak_rss_kib: usage.peak_rss_kib,
        minor_faults: usage.minor_faults,
        major_faults: usage.major_faults,
        voluntary_switches: usage.voluntary_switches,
        involuntary_switches: usage.involuntary_switches,
        output_bytes: *output_bytes,
        output_digest: digest.clone(),
        heap_high_water_bytes: None,
        collections: None,
        collector_cpu_ns: None,
        used_high_bytes: None,
        refused_calls: None,
        held_high_bytes: None,
        written_after_free: None,
        figures: Default::default(),
        counters: Counters::default(),
        started_unix_s: 0.0,
        load_average: 0.0,
        env_padding: 0,
        stderr_tail: if outcome.is_ok() { String::new() } else { error_tail.clone() },
        left_behind: usage.left_behind,
        outcome,
        serve: None,
        exact: Some(exact(traced)),
        locality: None,
        disturbance: None,
    }
}

/// The how manieth run of its program under its manager it is, from 0.
fn repetition(plan: &Plan, cell: &Cell) -> u32 {
    let same = |row: &&Observation| row.program == cell.program.name && row.stack == cell.stack.name;
    u32::try_from(plan.experiment.observations.iter().filter(same).count()).unwrap_or(u32::MAX)
}

fn exact<S>(traced: &Traced<S>) -> ExactFigures {
    let totals = traced.totals();
    let of = |figure: fn(&Clock) -> u64| ByOwner {
        program: figure(&totals[Owner::Program as usize]),
        allocator: figure(&totals[Owner::Allocator as usize]),
        collector: figure(&totals[Owner::Collector as usize]),
    };
    ExactFigures {
        instructions: of(|clock| clock.instructions),
        loads: of(|clock| clock.loads),
        stores: of(|clock| clock.stores),
        allocations: traced.images.iter().map(|image| image.calls.allocations).sum(),
        frees: traced.images.iter().map(|image| image.calls.frees).sum(),
        heap_high_water_bytes: None,
        images: u32::try_from(traced.images.len()).unwrap_or(u32::MAX),
        whole: traced.is_whole(),
    }
}

/// Keeps rows. A disk that is full costs what is kept, not what is shown.
struct Keeper {
    store: Option<Store>,
    lost: bool,
}

impl Keeper {
    fn keep(&mut self, plan: &Plan, row: Observation) {
        if self.lost {
            return;
        }
        let kept = match &self.store {
            Some(store) => store.append(&row).map_err(Failure::from),
            None => self.create(plan).and_then(|store| Ok(store.append(&row)?)),
        };
        self.judge(kept);
    }

    fn create(&mut self, plan: &Plan) -> Result<&Store, Failure> {
        let path = match &plan.db {
            Some(path) => path.clone(),
            None => default_db(&plan.experiment)?,
        };
        let store = Store::create(&path, &plan.experiment)?;
        Ok(self.store.insert(store))
    }

    fn close(&mut self, plan: &Plan) {
        let Some(store) = &self.store else { return };
        if self.lost {
            return;
        }
        let described = store.describe(&plan.experiment).map_err(Failure::from);
        if described.is_ok() {
            terminal::note(&format!("every run is kept in {}", store.path().display()));
        }
        self.judge(described);
    }

    fn judge(&mut self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.lost = true;
            terminal::error(&format!("the runs are not kept: {failure}"));
        }
    }
}
