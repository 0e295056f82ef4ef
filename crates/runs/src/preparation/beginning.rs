//! A new experiment: described, its managers proved on each program, its file made. Nothing is measured yet but the
//! cost of an invocation itself.

use std::collections::BTreeMap;
use std::path::Path;

use heaptoll_experiment::experiment::{Experiment, Pairing, ProgramInfo, Settings};
use heaptoll_experiment::manager::Manager;
use heaptoll_experiment::named::Named;
use heaptoll_experiment::observation::Phase;
use heaptoll_experiment::plan::Cell;
use heaptoll_experiment::store::Store;
use heaptoll_experiment::{machine, own_cost};

use crate::cells;
use crate::preparation::derived::DerivedStacks;
use crate::preparation::estimate::Estimate;
use crate::preparation::proof_run::ProofRun;
use crate::preparation::repeat_command::{repeating, with_input};
use crate::preparation::{experiment_file, pairing, preflights, settings_in_environment};
use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_report::format::plural;

/// The parameters of a new experiment, of any command.
pub struct Beginning<'a> {
    /// The programs.
    pub programs: Vec<ProgramInfo>,
    /// The words of the command that began it; empty where none did.
    pub command: Vec<String>,
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
    /// Timed repetitions.
    pub repetitions: u32,
    /// Repetitions before them.
    pub warmup: u32,
    /// Seed, where one was given.
    pub seed: Option<u64>,
    /// Time limit of an invocation, s.
    pub timeout_s: f64,
    /// `always`, `madvise`, `never`, or empty for the system's own.
    pub thp: &'static str,
    /// Exit status of success.
    pub expect_status: i32,
    /// How runs are paired, where the program allows it.
    pub pairing: Pairing,
    /// Whether each run has a copy of the folder.
    pub working_copy: bool,
    /// Time slice of programs in lockstep, s; the kernel's own without one.
    pub slice_s: Option<f64>,
    /// Memory that runs at once may take together, bytes; half of what is available without a limit.
    pub at_once_bytes: Option<u64>,
    /// Half-width of CPU intervals that is enough, as a share; without one the repetitions decide.
    pub precision: Option<f64>,
    /// Measuring ends after so many seconds, where it has no number of repetitions.
    pub budget_s: Option<f64>,
    /// Whether traced runs follow.
    pub exact: bool,
    /// What the user named one by one; `None` where everything counts as named.
    pub named: Option<Named>,
}

/// Finds the programs, proves every manager on each, and describes the experiment; nothing is measured yet.
///
/// # Errors
/// The request cannot be carried out, or Ctrl-C.
pub fn describe(beginning: Beginning, context: &Context) -> Result<Experiment, Failure> {
    if beginning.programs.is_empty() {
        return Err(Failure::NothingToCompare(
            "no program of the catalog is installed; `heaptoll programs` lists them with their packages"
                .into(),
        ));
    }
    let seed = beginning.seed.unwrap_or_else(clock::seed);
    let mut experiment = Experiment {
        heaptoll_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_s: clock::now().as_secs_f64(),
        settings: Settings {
            repetitions: beginning.repetitions,
            warmup: beginning.warmup,
            seed,
            timeout_s: beginning.timeout_s,
            thp: beginning.thp.into(),
            expect_status: beginning.expect_status,
            pairing: beginning.pairing,
            slice_s: beginning.slice_s,
            working_copy: beginning.working_copy,
            precision: beginning.precision,
            budget_s: beginning.budget_s,
            enough: BTreeMap::new(),
            turns: BTreeMap::new(),
            exact: beginning.exact,
            level: None,
            named: beginning.named,
            shards: vec![],
            directory: std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
            repeat_command: repeating(
                with_input(beginning.command, &beginning.programs),
                seed,
                beginning.seed.is_some(),
            ),
        },
        machine: machine::read(),
        baseline: preflights::row_names(beginning.managers)[0].clone(),
        programs: beginning.programs,
        stacks: vec![],
        refused: vec![],
        observations: vec![],
        tracks: vec![],
        exact_notes: vec![],
        own_cost: None,
        complete: false,
    };
    let together = preflights::Together {
        blocks: &beginning.blocks,
        programs: beginning.together,
        derived: beginning.derived,
        machine: pairing::Machine { at_once_bytes: beginning.at_once_bytes, ..pairing::Machine::now() },
        chooses_baseline: beginning.chooses_baseline,
        goes_on: false,
    };
    let proofs = preflights::run(&mut experiment, beginning.managers, &together, context)?;
    if let Some(text) = announced_time(&experiment, &proofs) {
        context.messages.note(&text);
    }
    settings_in_environment::warn(&experiment, context.messages);
    if context.interrupt.is_set() {
        return Err(Failure::Interrupted);
    }
    Ok(experiment)
}

/// How long the runs will take, by the baseline's proof runs, where that is long.
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
