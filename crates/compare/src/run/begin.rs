//! The beginning of `heaptoll run`: what the arguments request is checked, and described as an experiment.

use std::collections::BTreeMap;
use std::time::Duration;

use heaptoll_experiment::experiment::{Experiment, Pairing, ProgramInfo, Protocol};
use heaptoll_experiment::extension::require_for;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::named::Named;
use heaptoll_experiment::runner::RunError;
use heaptoll_experiment::store::Store;
use heaptoll_experiment::varied::Varied;
use heaptoll_experiment::{machine, working_copy};
use heaptoll_launcher::{Thp, slice};
use heaptoll_report::format::shell_path;
use heaptoll_scratch::Scratch;

use super::heaps::{self, Search};
use super::request::RunRequest;
use super::vary::Stacks;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::beginning::{self, Beginning};
use heaptoll_runs::preparation::{baseline, experiment_file, stand_ins};

/// Prepares a new experiment and its file.
///
/// # Errors
/// The request cannot be carried out, or Ctrl-C.
pub fn begin(request: &RunRequest, context: &Context) -> Result<(Store, Experiment), Failure> {
    request.workload.require("--set, --all, --serve, or --resume")?;
    experiment_file::check(request.db.as_deref())?;
    let checked = Checked::of(request, context)?;
    let Some(factors) = &request.heaps else {
        let mut experiment = checked.described(context)?;
        let store = beginning::keep(&mut experiment, request.db.as_deref(), context)?;
        return Ok((store, experiment));
    };
    let mut experiment = beginning::begun(&checked.beginning())?;
    let store = beginning::keep(&mut experiment, request.db.as_deref(), context)?;
    let path = store.path().to_owned();
    checked.searched(factors, store, experiment, context).inspect_err(|_| {
        if path.exists() {
            context.messages.note(&format!(
                "the search of the smallest heaps is kept; go on with: heaptoll run --resume {}",
                shell_path(&path)
            ));
        }
    })
}

/// Describes a new experiment: its programs and managers are found and proved. It has no file, nor rows.
///
/// # Errors
/// The request cannot be carried out, or Ctrl-C.
pub fn describe(request: &RunRequest, context: &Context) -> Result<Experiment, Failure> {
    let checked = Checked::of(request, context)?;
    let Some(factors) = &request.heaps else { return checked.described(context) };
    let scratch = Scratch::make().map_err(RunError::Scratch)?;
    let experiment = beginning::begun(&checked.beginning())?;
    let store = Store::create(&scratch.path().join("search.db"), &experiment)?;
    let (_, found) = checked.searched(factors, store, experiment, context)?;
    Ok(Experiment { observations: vec![], ..found })
}

/// What a request comes to.
struct Checked<'a> {
    request: &'a RunRequest,
    managers: Vec<Manager>,
    varied: BTreeMap<String, Varied>,
    programs: Vec<ProgramInfo>,
    named: Named,
}

impl<'a> Checked<'a> {
    fn of(request: &'a RunRequest, context: &Context) -> Result<Checked<'a>, Failure> {
        can_be_made(request)?;
        let known = manager::known_with_java(context.places)?;
        let Stacks { managers, varied, without } = choose_managers(request, &known)?;
        // Before a note is printed or standard input is read: the laboratory takes the whole command line over.
        managers.iter().try_for_each(require_for)?;
        stand_ins::note(&known, request.manager.iter().chain(&request.baseline), context.messages);
        for (name, reason) in without {
            context.messages.note(&format!("--vary does not apply to {name}: {reason}"));
        }
        let programs = request.workload.resolve(context)?;
        if request.heaps.is_some() {
            heaps::check(request, &managers, &programs)?;
        }
        let (thp, requested) = (machine::read().thp, &request.protocol.thp);
        if !can_have(Thp::parse(requested).unwrap_or_default(), &thp) {
            return Err(Failure::Usage(format!(
                "--thp {requested}: this system's setting is `{thp}`, and a process cannot exceed it; echo \
                 {requested} > /sys/kernel/mm/transparent_hugepage/enabled"
            )));
        }
        Ok(Checked { request, managers, varied, programs, named: named(request, &known) })
    }

    fn beginning(&self) -> Beginning<'_> {
        Beginning {
            programs: self.programs.clone(),
            managers: &self.managers,
            chooses_baseline: self.request.baseline.is_none(),
            together: &self.request.together,
            protocol: Protocol { named: Some(self.named.clone()), ..self.request.protocol.clone() },
            ..Beginning::default()
        }
    }

    fn only_baseline_requested(&self) -> bool {
        !self.request.manager.is_empty() && self.managers.len() == 1
    }

    /// The experiment, proved.
    fn described(&self, context: &Context) -> Result<Experiment, Failure> {
        let mut experiment = beginning::describe(self.beginning(), context)?;
        for stack in &mut experiment.stacks {
            stack.varied = self.varied.get(&stack.name).cloned();
        }
        nothing_left(&experiment, self.only_baseline_requested())?;
        Ok(experiment)
    }

    /// The same with heaps in multiples of the smallest; its file, which it has by now, keeps the rows of the search.
    fn searched(
        &self,
        factors: &[f64],
        store: Store,
        experiment: Experiment,
        context: &Context,
    ) -> Result<(Store, Experiment), Failure> {
        let search = Search {
            factors: factors.into(),
            managers: self.managers.iter().map(|one| one.name.clone()).collect(),
            chooses_baseline: self.request.baseline.is_none(),
            together: self.request.together.clone(),
            at_once_bytes: self.request.protocol.at_once_bytes,
        };
        store.attach_value(Search::NAME, &search)?;
        let path = store.path().to_owned();
        let found = heaps::search(store, experiment, context);
        let found = found.and_then(|(store, experiment)| {
            nothing_left(&experiment, self.only_baseline_requested())?;
            Ok((store, experiment))
        });
        let is_empty = || Store::read(&path).is_ok_and(|kept| kept.observations.is_empty());
        if let Err(failure) = &found
            && !context.interrupt.is_set()
            && (matches!(failure, Failure::NothingToCompare(_)) || is_empty())
        {
            // There is nothing to go on with. That the file cannot be removed is no reason to state another failure.
            let _ = std::fs::remove_file(&path);
        }
        found
    }
}

/// Refuses what contradicts itself, or cannot be done on this system.
fn can_be_made(request: &RunRequest) -> Result<(), Failure> {
    let protocol = &request.protocol;
    if protocol.at_once_bytes.is_some() && protocol.pairing != Pairing::Lockstep {
        return Err(Failure::Usage(
            "--memory-at-once is for lockstep: leave it out, or use --pairing lockstep".into(),
        ));
    }
    if request.vary.is_some() && request.heaps.is_some() {
        return Err(Failure::Usage("--vary and --heaps: a run has one of them; leave one out".into()));
    }
    can_run_together(request)?;
    if let Some(slice) = protocol.slice_s {
        can_slice(protocol.pairing, slice)?;
    }
    if protocol.working_copy {
        let here = std::env::current_dir();
        let here =
            here.map_err(|error| Failure::Usage(format!("the current folder is not there: {error}")))?;
        working_copy::check(&here).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok(())
}

/// Whether a process can have these huge pages where the system is set to `system`: it can only have less.
fn can_have(thp: Thp, system: &str) -> bool {
    match thp {
        Thp::Always => system == "always",
        Thp::Madvise => system != "never",
        Thp::System | Thp::Never => true,
    }
}

/// Refuses programs for one block that are not run, or not in lockstep.
fn can_run_together(request: &RunRequest) -> Result<(), Failure> {
    if request.protocol.pairing != Pairing::Lockstep && !request.together.is_empty() {
        return Err(Failure::Usage(
            "--together is for lockstep: leave it out, or use --pairing lockstep".into(),
        ));
    }
    match request.together.iter().flatten().find(|name| !request.workload.program.contains(name)) {
        None => Ok(()),
        Some(name) => {
            Err(Failure::Usage(format!("--together {name}: it does not run; add it with -p {name}")))
        }
    }
}

/// Whether slices of `slice_s` seconds can be given.
fn can_slice(pairing: Pairing, slice_s: f64) -> Result<(), Failure> {
    if pairing != Pairing::Lockstep {
        return Err(Failure::Usage(
            "--slice is for lockstep: leave it out, or use --pairing lockstep".into(),
        ));
    }
    slice::try_one(Duration::from_secs_f64(slice_s)).map_err(|error| {
        Failure::Usage(format!(
            "--slice: this system gives ordinary programs no time slices of their own, which needs Linux \
             6.12 or later: {error}"
        ))
    })
}

/// The managers of the run, the baseline first, with the stacks of those that were named whose setting varies.
fn choose_managers(request: &RunRequest, known: &[Manager]) -> Result<Stacks, Failure> {
    let managers = manager::choose_with_baseline(known, &request.manager, request.baseline())?;
    let Some(vary) = &request.vary else { return Ok(Stacks { managers, ..Stacks::default() }) };
    let named = manager::choose(known, request.manager.iter().map(String::as_str))?;
    let is_named = |one: &Manager| named.is_empty() || named.iter().any(|other| other.name == one.name);
    Ok(vary.stacks(known, managers, is_named)?)
}

/// What the request names one by one.
fn named(request: &RunRequest, known: &[Manager]) -> Named {
    baseline::named(known, &request.manager, request.baseline(), &request.workload.program)
}

/// Refuses to go on when only the baseline is left of what the user named.
fn nothing_left(experiment: &Experiment, only_baseline_requested: bool) -> Result<(), Failure> {
    let others = experiment.stacks.iter().any(|stack| stack.name != experiment.baseline);
    if others || (only_baseline_requested && !experiment.stacks.is_empty()) {
        return Ok(());
    }
    Err(Failure::nothing("no manager is left to compare", experiment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_varies_and_fixed_heaps_are_refused_together() {
        let workload = heaptoll_runs::workload::Workload::of_command(["ls"]);
        let request = RunRequest {
            heaps: Some(vec![2.0]),
            vary: Some("quarantine=1M..2M".parse().expect("a setting")),
            ..RunRequest::of(workload, &[])
        };
        let why = can_be_made(&request).map_err(|why| why.to_string()).expect_err("two at once");
        assert!(why.contains("--vary and --heaps"), "{why}");
    }

    #[test]
    fn a_process_can_have_huge_pages_only_where_the_system_has_them() {
        let allowed = |system| [Thp::Always, Thp::Madvise, Thp::Never].map(|word| can_have(word, system));
        assert_eq!(allowed("always"), [true, true, true]);
        assert_eq!(allowed("madvise"), [false, true, true]);
        assert_eq!(allowed("never"), [false, false, true]);
        assert!(can_have(Thp::System, "never"));
    }
}
