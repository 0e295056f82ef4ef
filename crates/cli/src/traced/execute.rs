//! The runs of a plan, one after the other: each is heard, judged, stored and handed to the command.

use heaptoll_lab::compare::judge_outputs;
use heaptoll_lab::observation::{Observation, Outcome};
use heaptoll_lab::store::Store;
use heaptoll_reference::Sink;
use heaptoll_tracer::{Image, Options};

use super::cell::{Cell, Figures, Heard};
use super::plan::Plan;
use super::remarks;
use super::single::Run;
use crate::command::run::begin::default_db;
use crate::failure::{self, Failure};
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
        match plan.bench().run(cell, &options, &place, &mut begin)? {
            Ok(Run { traced, mut row }) => {
                row.order = plan.experiment.observations.last().map_or(0, |last| last.order + 1);
                row.repetition = repetition(plan, cell);
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

/// The how manieth run of its program under its manager it is, from 0.
fn repetition(plan: &Plan, cell: &Cell) -> u32 {
    let same = |row: &&Observation| row.program == cell.program.name && row.stack == cell.stack.name;
    u32::try_from(plan.experiment.observations.iter().filter(same).count()).unwrap_or(u32::MAX)
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
