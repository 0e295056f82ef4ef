//! The runs of a plan, one after the other: each is traced, judged, stored and handed to the command, whose row of it is
//! kept.

use std::collections::BTreeMap;

use heaptoll_experiment::compare::judge_outputs;
use heaptoll_experiment::experiment::ProgramInfo;
use heaptoll_experiment::observation::{Observation, Outcome};
use heaptoll_experiment::store::Store;
use heaptoll_reftrace::Sink;
use heaptoll_reftrace_host::{Image, Options, Traced};
use heaptoll_report::document::Document;
use heaptoll_report::format::shell_command;

use super::cell::{Cell, Figures, JudgedRun};
use super::plan::Plan;
use super::remarks;
use super::single::Run;
use crate::findings::{Ending, Findings};
use crate::preparation::experiment_file;
use heaptoll_command::context::{Context, Messages};
use heaptoll_command::failure::Failure;

/// A plan whose runs were made.
pub struct Executed<R> {
    /// The plan, with the rows that were stored, and what was refused since.
    pub plan: Plan,
    /// How its runs ended.
    pub ending: Ending,
    rows: BTreeMap<String, Vec<R>>,
}

/// What the runs of one program gave.
pub struct Made<'a, R> {
    /// The program.
    pub program: &'a ProgramInfo,
    /// Its baseline; empty where there is none.
    pub baseline: &'a str,
    /// A row a run, the baseline's first.
    pub rows: Vec<R>,
    /// The managers that were refused on it, with the reasons.
    pub refused: Vec<(String, String)>,
}

impl<R> Executed<R> {
    /// What `made` gives for each program, in the order requested.
    pub fn programs<P>(&mut self, made: impl Fn(Made<R>) -> P) -> Vec<P> {
        let Executed { plan, rows, .. } = self;
        let each = |program: &ProgramInfo| {
            let baseline =
                plan.cells.iter().find(|cell| cell.is_baseline && cell.program.name == program.name);
            let refused = plan.refused().iter().filter(|(name, ..)| *name == program.name);
            made(Made {
                program,
                baseline: baseline.map_or("", |cell| cell.stack.name.as_str()),
                rows: rows.remove(&program.name).unwrap_or_default(),
                refused: refused.map(|(_, manager, why)| (manager.clone(), why.clone())).collect(),
            })
        };
        plan.experiment.programs.iter().map(each).collect()
    }

    /// The findings. `facts` are the command's own about all runs; those that the document has come last.
    pub fn findings<F>(self, figures: F, facts: Vec<(String, String)>, document: Document) -> Findings<F> {
        let Executed { plan, ending, .. } = self;
        let all = [plan.manager_facts(), facts, plan.tracer_facts().into(), document.facts].concat();
        let command = shell_command(&plan.experiment.settings.repeat_command);
        Findings { figures, document: Document { facts: all, command, ..document }, ending }
    }
}

/// Makes the runs. `begin` gives a sink for each process image; `done` takes each traced run, the baseline of a
/// program first, and returns its row and the figures to store. Randomness is pinned as the plan requires, whatever the
/// `options`.
///
/// # Errors
/// A program's baseline cannot be traced and nothing else was requested, or Ctrl-C before anything was traced.
pub fn execute<S: Sink, R>(
    mut plan: Plan,
    context: &Context,
    options: &Options,
    mut begin: impl FnMut(&Cell, &Image) -> S,
    mut done: impl FnMut(&Cell, JudgedRun<S>) -> (R, Figures),
) -> Result<Executed<R>, Failure> {
    let options = Options { pin: plan.pin, ..options.clone() };
    let mut keeper = Keeper { store: None, lost: false, messages: context.messages };
    let mut ending =
        if plan.experiment.refused_what_was_named() { Ending::Trouble } else { Ending::Complete };
    let mut rows: BTreeMap<String, Vec<R>> = BTreeMap::new();
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
                refuse(&mut plan, cell, &error.to_string(), context);
                ending = Ending::Trouble;
                continue;
            }
        };
        let interrupted = row.outcome == Outcome::Interrupted && traced.stopped.is_none();
        let mut stored = add_row(&mut plan, cell, row);
        let mut is_good = false;
        if let Some(main) = traced.main_at() {
            let run = judged(&plan, cell, traced, main);
            is_good = run.is_good();
            let (row, figures) = done(cell, run);
            rows.entry(cell.program.name.clone()).or_default().push(row);
            stored = add_figures(&mut plan, stored, figures);
        }
        keeper.keep(&plan, stored);
        if interrupted {
            ending = Ending::Interrupted;
            break;
        }
        if !is_good {
            ending = Ending::Trouble;
        }
    }
    let ending = finish(&mut plan, keeper, ending, rows.is_empty())?;
    Ok(Executed { plan, ending, rows })
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
fn judged<S>(plan: &Plan, cell: &Cell, traced: Traced<S>, main: usize) -> JudgedRun<S> {
    let outcome = plan.experiment.observations.last().map_or(Outcome::Ok, |last| last.outcome.clone());
    let remarks = remarks::of(cell, &traced, &outcome);
    JudgedRun { traced, main, outcome, remarks }
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
fn finish(
    plan: &mut Plan,
    mut keeper: Keeper,
    ending: Ending,
    nothing_traced: bool,
) -> Result<Ending, Failure> {
    if ending == Ending::Interrupted && nothing_traced {
        keeper.close(plan);
        return Err(Failure::Interrupted);
    }
    if nothing_traced {
        return Err(Failure::nothing("nothing was traced", &plan.experiment));
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
    let same = plan.experiment.rows(&cell.program.name, &cell.stack.name);
    u32::try_from(same.count()).unwrap_or(u32::MAX)
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
