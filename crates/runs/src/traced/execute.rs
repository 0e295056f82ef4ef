//! The runs of a plan, one after the other: each is traced, judged, stored and handed to the command.

use heaptoll_experiment::compare::judge_outputs;
use heaptoll_experiment::observation::{Observation, Outcome};
use heaptoll_experiment::store::Store;
use heaptoll_reftrace::Sink;
use heaptoll_reftrace_host::{Image, Options, Traced};

use super::cell::{Cell, Figures, JudgedRun};
use super::plan::Plan;
use super::remarks;
use super::single::Run;
use crate::preparation::experiment_file;
use heaptoll_command::context::{Context, Messages};
use heaptoll_command::failure::Failure;

/// How the runs of a plan ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All were made, and all are good.
    Complete,
    /// All were made; some are not good, or could not be kept, or a requested manager was refused.
    Trouble,
    /// Ctrl-C; the run that it ended is not whole.
    Interrupted,
}

/// Makes the runs. `begin` gives a sink for each process image; `done` takes each traced run, the baseline of a
/// program first, and returns the figures to store. Randomness is pinned as the plan requires, whatever the `options`.
///
/// # Errors
/// A program's baseline cannot be traced and nothing else was requested, or Ctrl-C before anything was traced.
pub fn execute<S: Sink>(
    plan: &mut Plan,
    context: &Context,
    options: &Options,
    mut begin: impl FnMut(&Cell, &Image) -> S,
    mut done: impl FnMut(&Cell, JudgedRun<S>) -> Figures,
) -> Result<Ending, Failure> {
    let options = Options { pin: plan.pin, ..options.clone() };
    let mut keeper = Keeper { store: None, lost: false, messages: context.messages };
    let mut ending =
        if plan.experiment.refused_what_was_named() { Ending::Trouble } else { Ending::Complete };
    let mut runs_made = 0;
    let cells = plan.cells.clone();
    for (number, cell) in cells.iter().enumerate() {
        if context.interrupt.is_set() {
            ending = Ending::Interrupted;
            break;
        }
        let place = format!("{}/{}", number + 1, cells.len());
        let Run { traced, row } = match plan.runner(context).run(cell, &options, &place, &mut begin)? {
            Ok(run) => run,
            Err(error) if cells.len() == 1 => return Err(Failure::Refused(Box::new(error))),
            Err(error) => {
                refuse(plan, cell, &error.to_string(), context);
                ending = Ending::Trouble;
                continue;
            }
        };
        let interrupted = row.outcome == Outcome::Interrupted && traced.stopped.is_none();
        let mut stored = add_row(plan, cell, row);
        let mut is_good = false;
        if !traced.images.is_empty() {
            let run = judged(plan, cell, traced);
            is_good = run.is_good();
            runs_made += 1;
            let figures = done(cell, run);
            stored = add_figures(plan, stored, figures);
        }
        keeper.keep(plan, stored);
        if interrupted {
            ending = Ending::Interrupted;
            break;
        }
        if !is_good {
            ending = Ending::Trouble;
        }
    }
    finish(plan, keeper, ending, runs_made)
}

/// Leaves a cell out that cannot be traced.
fn refuse(plan: &mut Plan, cell: &Cell, why: &str, context: &Context) {
    context.messages.warning(&format!("{} under {}: {why}", cell.program.name, cell.stack.name));
    plan.experiment.refused.push((cell.program.name.clone(), cell.stack.name.clone(), why.to_owned()));
}

/// Adds a run's row to the experiment, where its output is judged, and gives the row to store: what the program did,
/// which a reader of the file judges again.
fn add_row(plan: &mut Plan, cell: &Cell, mut row: Observation) -> Observation {
    row.order = plan.experiment.observations.last().map_or(0, |last| last.order + 1);
    row.repetition = repetition(plan, cell);
    plan.experiment.observations.push(row.clone());
    judge_outputs(&mut plan.experiment);
    row
}

/// The run whose row was added last, with its outcome.
fn judged<S>(plan: &Plan, cell: &Cell, traced: Traced<S>) -> JudgedRun<S> {
    let outcome = plan.experiment.observations.last().map_or(Outcome::Ok, |last| last.outcome.clone());
    let remarks = remarks::of(cell, &traced, &outcome);
    JudgedRun { traced, outcome, remarks }
}

/// Adds the command's figures to the last row, and to the one to store.
fn add_figures(plan: &mut Plan, mut stored: Observation, figures: Figures) -> Observation {
    if let Some(exact) = &mut stored.exact {
        exact.heap_high_water_bytes = figures.heap_high_water_bytes;
    }
    stored.locality = figures.locality;
    if let Some(last) = plan.experiment.observations.last_mut() {
        (last.exact, last.locality) = (stored.exact, stored.locality.clone());
    }
    stored
}

/// Completes the file, and gives how it all ended.
///
/// # Errors
/// Nothing was traced.
fn finish(plan: &mut Plan, mut keeper: Keeper, ending: Ending, runs_made: usize) -> Result<Ending, Failure> {
    if ending == Ending::Interrupted && runs_made == 0 {
        keeper.close(plan);
        return Err(Failure::Interrupted);
    }
    if runs_made == 0 {
        let reasons: Vec<String> = plan
            .refused()
            .iter()
            .map(|(program, stack, why)| format!("  {stack} on {program}: {why}"))
            .collect();
        return Err(Failure::NothingToCompare(format!("nothing was traced:\n{}", reasons.join("\n"))));
    }
    plan.experiment.complete = ending != Ending::Interrupted;
    keeper.close(plan);
    if ending == Ending::Interrupted {
        keeper.messages.note("interrupted: the figures cover the run until then");
    }
    Ok(if keeper.lost && ending == Ending::Complete { Ending::Trouble } else { ending })
}

/// Number of this run among those of its program under its manager, from 0.
fn repetition(plan: &Plan, cell: &Cell) -> u32 {
    let same = |row: &&Observation| row.program == cell.program.name && row.stack == cell.stack.name;
    u32::try_from(plan.experiment.observations.iter().filter(same).count()).unwrap_or(u32::MAX)
}

/// Stores rows. When the disk is full rows are not stored, but still shown.
struct Keeper<'a> {
    messages: &'a dyn Messages,
    store: Option<Store>,
    lost: bool,
}

impl Keeper<'_> {
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
            None => experiment_file::default_path(&plan.experiment)?,
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
            self.messages.note(&format!("every run is kept in {}", store.path().display()));
        }
        self.judge(described);
    }

    fn judge(&mut self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.lost = true;
            self.messages.error(&format!("the runs cannot be kept: {failure}"));
        }
    }
}
