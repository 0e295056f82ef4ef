//! A new experiment: programs and managers are found, proved and described before anything is measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use heaptoll_experiment::experiment::{Experiment, Pairing, Settings};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::plan;
use heaptoll_experiment::precision::FIRST_ANALYSIS;
use heaptoll_experiment::store::Store;
use heaptoll_experiment::{machine, own_cost, working_copy};

use heaptoll_launcher::slice;

use super::resume::warn_of_settings_in_the_environment;
use super::{Arguments, REPETITIONS};
use crate::estimate::Estimate;
use crate::failure::Failure;
use crate::proof_run::ProofRun;
use crate::workload_args::WorkloadArgs;
use crate::{outputs, pairing, preflights, stand_ins, terminal};

/// The parameters of a new experiment, of any command.
pub struct Beginning<'a> {
    /// The programs.
    pub workload: &'a WorkloadArgs,
    /// The managers, the baseline first.
    pub managers: &'a [Manager],
    /// The block of each manager in lockstep; all in one where it has none.
    pub blocks: Vec<u32>,
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
}

/// Prepares a new experiment and its file.
///
/// # Errors
/// The request cannot be carried out, or Ctrl-C.
pub fn begin(
    arguments: &Arguments,
    places: &Places,
    interrupt: &Interrupt,
) -> Result<(Store, Experiment), Failure> {
    if arguments.workload.is_empty() {
        return Err(Failure::Usage(
            "nothing to run: give a command after `--`, or --program NAME, --all, --serve, or --resume"
                .into(),
        ));
    }
    check_new_db(arguments.db.as_deref())?;
    if arguments.memory_at_once.is_some() && Pairing::from(arguments.pairing) != Pairing::Lockstep {
        return Err(Failure::Usage(
            "--memory-at-once is for runs at once: leave it out, or use --pairing lockstep".into(),
        ));
    }
    if let Some(slice) = arguments.slice {
        can_slice(arguments.pairing.into(), slice)?;
    }
    if arguments.working_copy {
        let here = std::env::current_dir();
        let here =
            here.map_err(|error| Failure::Usage(format!("the current folder is not there: {error}")))?;
        working_copy::check(&here).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let managers = choose_managers(arguments, places)?;
    let thp = machine::read().thp;
    if let Some(requested) = arguments.thp.filter(|requested| !requested.is_allowed_where(&thp)) {
        let requested = requested.as_str();
        return Err(Failure::Usage(format!(
            "--thp {requested}: this system's setting is `{thp}`, and a process cannot have more than the system allows; \
             echo {requested} > /sys/kernel/mm/transparent_hugepage/enabled"
        )));
    }
    let mut experiment = describe(
        &Beginning {
            workload: &arguments.workload,
            managers: &managers,
            blocks: vec![],
            repetitions: arguments.repetitions.unwrap_or(match (arguments.precision, arguments.budget) {
                (None, None) => REPETITIONS,
                _ => FIRST_ANALYSIS,
            }),
            warmup: arguments.warmup,
            seed: arguments.seed,
            timeout_s: arguments.timeout,
            thp: arguments.thp.map(|thp| thp.as_str()).unwrap_or_default(),
            expect_status: arguments.expect_status,
            pairing: arguments.pairing.into(),
            slice_s: arguments.slice,
            at_once_bytes: arguments.memory_at_once,
            working_copy: arguments.working_copy,
            // With a budget alone no interval is narrow enough.
            precision: arguments.precision.or(arguments.budget.map(|_| 0.0)),
            budget_s: arguments.budget,
            exact: arguments.exact,
        },
        places,
        interrupt,
    )?;
    nothing_left(&experiment, !arguments.manager.is_empty() && managers.len() == 1)?;
    let store = keep(&mut experiment, arguments.db.as_deref(), places, interrupt)?;
    Ok((store, experiment))
}

/// Whether slices of `slice_s` seconds can be given.
fn can_slice(pairing: Pairing, slice_s: f64) -> Result<(), Failure> {
    if pairing != Pairing::Lockstep {
        return Err(Failure::Usage(
            "--slice is for runs at once: leave it out, or use --pairing lockstep".into(),
        ));
    }
    slice::try_one(Duration::from_secs_f64(slice_s)).map_err(|error| {
        Failure::Usage(format!(
            "--slice: this system gives ordinary programs no time slices of their own, which needs Linux 6.12 or later: {error}"
        ))
    })
}

/// Finds the programs, proves every manager on each, and describes the experiment; nothing is measured yet.
///
/// # Errors
/// The request cannot be carried out, or Ctrl-C.
pub fn describe(
    beginning: &Beginning,
    places: &Places,
    interrupt: &Interrupt,
) -> Result<Experiment, Failure> {
    let programs = beginning.workload.resolve(places)?;
    if programs.is_empty() {
        return Err(Failure::NothingToCompare(
            "no program of the catalog is installed; see `heaptoll programs`".into(),
        ));
    }
    let seed = beginning.seed.unwrap_or_else(|| now().subsec_nanos().into());
    let mut experiment = Experiment {
        heaptoll_version: env!("CARGO_PKG_VERSION").into(),
        created_unix_s: now().as_secs_f64(),
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
            directory: std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
            repeat_command: repeat_command(outputs::own_arguments(), seed, beginning.seed.is_some()),
        },
        machine: machine::read(),
        baseline: preflights::row_names(beginning.managers)[0].clone(),
        programs,
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
        machine: pairing::Machine { at_once_bytes: beginning.at_once_bytes, ..pairing::Machine::now() },
    };
    let proofs = preflights::run(&mut experiment, beginning.managers, &together, places, interrupt)?;
    if let Some(text) = announced_time(&experiment, &proofs) {
        terminal::note(&text);
    }
    warn_of_settings_in_the_environment(&experiment);
    if interrupt.is_set() {
        return Err(Failure::Interrupted);
    }
    Ok(experiment)
}

/// How long the runs will take, by the baseline's proof runs, where that is long.
fn announced_time(experiment: &Experiment, proofs: &BTreeMap<String, ProofRun>) -> Option<String> {
    let (mut longer, mut seconds) = (false, 0.0);
    for stack in &experiment.stacks {
        let Some(proof) = proofs.get(&stack.program) else { continue };
        // What runs in lockstep runs by itself, too.
        let each = if experiment.runs_in_lockstep(stack) { 2 } else { 1 };
        // Where the others take turns, the baseline runs with each of them.
        let turns = if stack.name == experiment.baseline { experiment.turns(&stack.program) } else { 1 };
        let rounds = each * turns * experiment.settings.repetitions + experiment.settings.warmup;
        longer |= !proof.finished;
        seconds += proof.seconds * f64::from(rounds);
    }
    // Start-up runs are counted as the progress line counts them.
    let runs = plan::plan(experiment, &super::starts(experiment)).len();
    let estimate = Estimate {
        what: format!(
            "{runs} runs to make ({} stacks, {} repetitions after {} warm-up)",
            experiment.stacks.len(),
            experiment.settings.repetitions,
            experiment.settings.warmup
        ),
        seconds,
        at_least: longer,
        provided: "a run takes what the proof run took".into(),
    };
    estimate.sentence()
}

/// Measures the cost of an invocation itself, and makes the experiment's file.
///
/// # Errors
/// The file cannot be made, or Ctrl-C.
pub fn keep(
    experiment: &mut Experiment,
    db: Option<&Path>,
    places: &Places,
    interrupt: &Interrupt,
) -> Result<Store, Failure> {
    experiment.own_cost = own_cost::measure(&places.launcher(), interrupt)?;
    if experiment.own_cost.is_none() {
        return Err(Failure::Interrupted);
    }
    let path = match db {
        Some(path) => path.into(),
        None => default_db(experiment)?,
    };
    Ok(Store::create(&path, experiment)?)
}

/// [`check_db`] for a file that is not there yet.
pub fn check_new_db(db: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = db.filter(|path| path.exists()) {
        return Err(heaptoll_experiment::store::StoreError::Exists(path.into()).into());
    }
    check_db(db)
}

/// Refuses a place where the experiment could not be kept, before time is spent on anything.
pub fn check_db(db: Option<&Path>) -> Result<(), Failure> {
    match db {
        Some(path) => outputs::check(path).map_err(|why| {
            Failure::Usage(format!("cannot keep the experiment in {}: {why}", path.display()))
        }),
        // The folder is made when it is needed: below which one there is?
        None => {
            let folder = Places::experiments();
            let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(&folder);
            outputs::check(&there.join("e.db")).map_err(|why| {
                Failure::Usage(format!("cannot write in {}: {why}; name a file with --db", folder.display()))
            })
        }
    }
}

/// The managers of the run, the baseline first.
fn choose_managers(arguments: &Arguments, places: &Places) -> Result<Vec<Manager>, Failure> {
    let known = manager::known(places)?;
    stand_ins::note(&known, arguments.manager.iter().chain([&arguments.baseline]));
    Ok(manager::choose_with_baseline(&known, &arguments.manager, &arguments.baseline)?)
}

/// Refuses to go on when only the baseline is left of what the user named.
fn nothing_left(experiment: &Experiment, only_baseline_requested: bool) -> Result<(), Failure> {
    let others = experiment.stacks.iter().any(|stack| stack.name != experiment.baseline);
    if others || (only_baseline_requested && !experiment.stacks.is_empty()) {
        return Ok(());
    }
    let reasons: Vec<String> = experiment
        .refused
        .iter()
        .map(|(program, stack, reason)| format!("  {stack} on {program}: {reason}"))
        .collect();
    Err(Failure::NothingToCompare(format!("no manager is left to compare:\n{}", reasons.join("\n"))))
}

/// Since 1970.
pub fn now() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The command that repeats the one of these words, with the seed made explicit and without the experiment's name.
pub fn repeat_command(mut words: Vec<String>, seed: u64, given: bool) -> Vec<String> {
    if let Some(first) = words.first_mut() {
        *first = "heaptoll".into();
    }
    // Each experiment is a file of its own: the same name again would be refused.
    let options = words.iter().position(|word| word == "--").unwrap_or(words.len());
    if let Some(at) = words[..options].iter().position(|word| word == "--db") {
        words.drain(at..(at + 2).min(options));
    } else if let Some(at) = words[..options].iter().position(|word| word.starts_with("--db=")) {
        words.remove(at);
    }
    if !given && words.len() >= 2 {
        words.splice(2..2, ["--seed".to_string(), seed.to_string()]);
    }
    words
}

/// `$XDG_STATE_HOME/heaptoll/<date>-<program>.db`, numbered when taken.
pub fn default_db(experiment: &Experiment) -> Result<PathBuf, Failure> {
    let folder = Places::experiments();
    std::fs::create_dir_all(&folder).map_err(|error| {
        Failure::Usage(format!("cannot make {}: {error}; name a file with --db", folder.display()))
    })?;
    let program = match experiment.programs.as_slice() {
        [one] => one.name.replace(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c), "_"),
        many => format!("{}-programs", many.len()),
    };
    let date = heaptoll_report::format::date(experiment.created_unix_s)
        .replace(|c: char| !c.is_ascii_digit(), "-")
        .trim_matches('-')
        .to_string();
    let names = (1..).map(|number| match number {
        1 => format!("{date}-{program}.db"),
        _ => format!("{date}-{program}-{number}.db"),
    });
    names
        .map(|name| folder.join(name))
        .find(|path| !path.exists())
        .ok_or_else(|| Failure::Usage("no free name for the experiment; name a file with --db".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeated(line: &str, seed_given: bool) -> String {
        let words = line.split(' ').map(str::to_string).collect();
        repeat_command(words, 7, seed_given).join(" ")
    }

    #[test]
    fn a_command_is_repeated_with_its_seed_and_into_another_file() {
        assert_eq!(repeated("/x/heaptoll run -- ls", false), "heaptoll run --seed 7 -- ls");
        assert_eq!(repeated("heaptoll run --db e.db --seed 3 -- ls", true), "heaptoll run --seed 3 -- ls");
        assert_eq!(repeated("heaptoll run -n 3 --db=e.db -- ls", true), "heaptoll run -n 3 -- ls");
        assert_eq!(repeated("heaptoll run --all --db e.db", true), "heaptoll run --all");
        // What follows the dashes is the program's.
        assert_eq!(repeated("heaptoll run -- x --db e.db", true), "heaptoll run -- x --db e.db");
    }
}
