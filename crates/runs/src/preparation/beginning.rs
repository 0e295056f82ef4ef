//! A new experiment: described, its managers proved on each program, its file made. Nothing is measured yet but the
//! cost of an invocation itself.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_experiment::experiment::{Experiment, ProgramInfo, Protocol};
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::observation::Phase;
use heaptoll_experiment::own_cost;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::store::Store;

use crate::cells;
use crate::preparation::derived::DerivedStacks;
use crate::preparation::estimate::Estimate;
use crate::preparation::proof_run::ProofRun;
use crate::preparation::repeat_command::{repeating, with_input};
use crate::preparation::{experiment_file, pairing, preflights, settings_in_environment};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_report::format::plural;

/// The parameters of a new experiment, of any command.
#[derive(Default)]
pub struct Beginning<'a> {
    /// The programs.
    pub programs: Vec<ProgramInfo>,
    /// The managers, the baseline first.
    pub managers: &'a [Manager],
    /// Whether the baseline may be what the program uses by itself, because none was named.
    pub chooses_baseline: bool,
    /// The block of each manager in lockstep; all in one where it has none.
    pub blocks: Vec<u32>,
    /// Programs that are to run in one block in lockstep: forms that are compared.
    pub together: &'a [Vec<String>],
    /// Makes further stacks of those that were proved.
    pub derived: Option<&'a dyn DerivedStacks>,
    /// How it is made; the repeating command is completed.
    pub protocol: Protocol,
}

/// Proves every manager on each program, and describes the experiment; nothing is measured yet.
///
/// # Errors
/// The request cannot be carried out, or Ctrl-C.
pub fn describe(beginning: Beginning, context: &Context) -> Result<Experiment, Failure> {
    let mut experiment = begun(&beginning)?;
    let proofs = prove(&mut experiment, &beginning, context)?;
    announce(&experiment, &proofs, context);
    Ok(experiment)
}

/// An experiment whose managers are not proved yet, so that it has no stacks.
///
/// # Errors
/// There is no program.
pub fn begun(beginning: &Beginning) -> Result<Experiment, Failure> {
    if beginning.programs.is_empty() {
        return Err(Failure::NothingToCompare(
            "no program of the catalog is installed; `heaptoll programs` lists them with their packages"
                .into(),
        ));
    }
    let (programs, mut protocol) = (beginning.programs.clone(), beginning.protocol.clone());
    // A command that chooses nothing at random has no seed.
    let seed = Some(protocol.seed).filter(|seed| *seed > 0);
    protocol.repeat_command = repeating(with_input(protocol.repeat_command, &programs), seed);
    let baseline = preflights::row_names(beginning.managers)[0].clone();
    Ok(Experiment::begun(protocol, baseline, programs))
}

/// Proves every manager on each program of an experiment, and gives it the stacks. Returns the baseline's proof runs, by
/// program.
///
/// # Errors
/// The request cannot be carried out, or Ctrl-C.
pub fn prove(
    experiment: &mut Experiment,
    beginning: &Beginning,
    context: &Context,
) -> Result<BTreeMap<String, ProofRun>, Failure> {
    let at_once_bytes = experiment.settings.at_once_bytes;
    let together = preflights::Together {
        blocks: &beginning.blocks,
        programs: beginning.together,
        derived: beginning.derived,
        machine: pairing::Machine { at_once_bytes, ..pairing::Machine::now() },
        chooses_baseline: beginning.chooses_baseline,
        goes_on: false,
    };
    let proofs = preflights::run(experiment, beginning.managers, &together, context)?;
    settings_in_environment::warn(experiment, context.messages);
    if context.interrupt.is_set() {
        return Err(Failure::Interrupted);
    }
    Ok(proofs)
}

/// Announces how long the runs will take, by the baseline's proof runs, where that is long.
pub fn announce(experiment: &Experiment, proofs: &BTreeMap<String, ProofRun>, context: &Context) {
    if let Some(text) = announced_time(experiment, proofs) {
        context.messages.note(&text);
    }
}

fn announced_time(experiment: &Experiment, proofs: &BTreeMap<String, ProofRun>) -> Option<String> {
    let (mut longer, mut seconds) = (false, 0.0);
    let cells = cells::all(experiment);
    for cell in cells.iter().filter(|cell| cell.phase != Phase::Startup) {
        let Some(proof) = proofs.get(&experiment.stacks[cell.stack].program) else { continue };
        longer |= !proof.finished;
        seconds += proof.seconds;
    }
    let estimate = Estimate {
        what: runs_to_make(experiment, &cells)?,
        seconds,
        at_least: longer,
        provided: "a run takes what the proof run took".into(),
    };
    estimate.sentence()
}

/// How many runs there are, as the progress line counts them, and of what; none where others add the repetitions.
fn runs_to_make(experiment: &Experiment, cells: &[Cell]) -> Option<String> {
    let kinds = [(Phase::Timed, "timed"), (Phase::Startup, "start-up"), (Phase::Alone, "alone")];
    let has = |phase: Phase| cells.iter().any(|cell| cell.phase == phase);
    let kinds: Vec<&str> = kinds.into_iter().filter(|(phase, _)| has(*phase)).map(|(_, kind)| kind).collect();
    let warm_ups = cells.iter().filter(|cell| cell.phase.is_warm_up()).count();
    (!kinds.is_empty()).then(|| {
        format!(
            "{} runs to make ({}, {} of {}, {})",
            cells.len(),
            plural(experiment.stacks.len(), "stack"),
            plural(experiment.settings.repetitions as usize, "repetition"),
            kinds.join(" + "),
            plural(warm_ups, "warm-up")
        )
    })
}

/// Measures the cost of an invocation itself, and makes the experiment's file.
///
/// # Errors
/// The file cannot be made, or Ctrl-C.
pub fn keep(experiment: &mut Experiment, db: Option<&Path>, context: &Context) -> Result<Store, Failure> {
    experiment.own_cost = own_cost::measure(&context.places.launcher(), context.interrupt)?;
    if experiment.own_cost.is_none() {
        return Err(Failure::Interrupted);
    }
    let path = match db {
        Some(path) => path.into(),
        None => experiment_file::default_path(experiment)?,
    };
    Ok(Store::create(&path, experiment)?)
}
