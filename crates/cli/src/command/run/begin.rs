//! The beginning of `heaptoll run`: what the arguments request is checked, and described as an experiment.

use std::time::Duration;

use heaptoll_experiment::experiment::{Experiment, Pairing};
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::places::Places;
use heaptoll_experiment::precision::FIRST_ANALYSIS;
use heaptoll_experiment::store::Store;
use heaptoll_experiment::{machine, working_copy};
use heaptoll_launcher::slice;

use super::arguments::{Arguments, REPETITIONS};
use crate::beginning::{self, Beginning};
use crate::{experiment_file, stand_ins};
use heaptoll_experiments::failure::Failure;

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
    experiment_file::check(arguments.db.as_deref())?;
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
    let mut experiment = beginning::describe(
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
    let store = beginning::keep(&mut experiment, arguments.db.as_deref(), places, interrupt)?;
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
