//! Preflight of every stack on every program, before a second is spent on measuring.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptoll_experiment::experiment::{Experiment, Pairing, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::extension::{extension, require_for};
use heaptoll_experiment::lockstep;
use heaptoll_experiment::manager::{Manager, filled, in_folder};
use heaptoll_experiment::runner::PINNED;
use heaptoll_experiment::working_copy;
use heaptoll_preflight::{Proof, Refusal, Request, Watch, inspect_manager, preflight};
use heaptoll_scratch::Scratch;
use heaptoll_units::limits;

use crate::preparation::derived::{DerivedStacks, Proved, proved_as};
use crate::preparation::proof_run::ProofRun;
use crate::preparation::{baseline, pairing};
use heaptoll_command::context::{Context, Progress};
use heaptoll_command::failure::Failure;
use heaptoll_experiment::places::Places;

/// Time limit of the baseline's proof run, which observes every process that the program starts.
const WHOLE: Duration = Duration::from_secs(10);
/// The limit where the proof run decides about lockstep: files that it writes at its end count, too.
const WATCHED: Duration = Duration::from_secs(60);
/// The other managers' proof runs only have to show that calls arrive.
const BEGINNING: Duration = Duration::from_secs(1);

/// What bounds a proof run, and what counts as a good end of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Whether every process of the run is to be seen, as far as time permits.
    pub whole: bool,
    /// No proof run takes longer than an invocation may, or a second if that is less.
    pub longest: Duration,
    /// Exit status of success.
    pub expect_status: i32,
    /// Whether it runs in a copy of the current folder.
    pub working_copy: bool,
    /// Whether the run is watched for what copies of it at the same time would meet.
    pub watch: bool,
    /// Whether the first Ctrl-C ends the proof run as its limit does, and only the second one all.
    pub goes_on: bool,
}

impl Limits {
    /// Of an experiment's runs, where only malloc is to be proved.
    pub fn of(protocol: &Protocol) -> Limits {
        Limits {
            longest: protocol.timeout(),
            expect_status: protocol.expect_status,
            working_copy: protocol.working_copy,
            ..Limits::default()
        }
    }
}

/// The result of preflight for one manager on one program.
pub enum PreflightOutcome {
    /// It serves the program, as the proof run showed.
    Serves(Box<StackInfo>, ProofRun),
    /// It does not, and why.
    Refused(Refusal),
}

/// Proves one manager on one program.
pub fn prove(
    manager: &Manager,
    name: &str,
    program: &ProgramInfo,
    context: &Context,
    limits: Limits,
) -> Result<PreflightOutcome, Failure> {
    let Limits { whole, expect_status, watch, .. } = limits;
    let scratch = Scratch::make().map_err(|error| {
        Failure::Usage(format!(
            "cannot make a scratch folder: {error}; {}",
            limits::advice_or(&error, "is the temporary folder writable and not full?")
        ))
    })?;
    let directory = match (limits.working_copy, std::env::current_dir()) {
        (true, Ok(here)) => Some(
            working_copy::make(&here, scratch.path()).map_err(|error| Failure::Usage(error.to_string()))?,
        ),
        _ => None,
    };
    let environment = environment(manager, program, scratch.path(), directory.as_deref());
    let request = Request {
        command: program.command_in(scratch.path()),
        environment,
        directory,
        stdin: program.stdin.as_ref().map(PathBuf::from),
        layers: manager.layers.iter().map(|layer| layer.kind.object(context.places)).collect(),
        preload: manager.object.iter().cloned().collect(),
        count_layer: context.places.count_layer(),
        limit: if program.serve.is_some() || !whole {
            BEGINNING
        } else {
            (if watch { WATCHED } else { WHOLE }).min(limits.longest.max(BEGINNING))
        },
        // Where the kernel does not list the processors, no run is paired.
        watch: lockstep::processor()
            .ok()
            .filter(|_| watch)
            .map(|cpu| Watch { cpu, exempt: vec![scratch.path().to_path_buf()] }),
        cancel: if limits.goes_on { context.interrupt.flag_of_second() } else { context.interrupt.flag() },
        hurry: limits.goes_on.then(|| context.interrupt.flag()),
    };
    match preflight(&request) {
        Ok(proof) => {
            let run = ProofRun {
                seconds: proof.seconds,
                finished: proof.finished,
                linked: proof.linked.clone(),
                elsewhere: proof.elsewhere.clone(),
                watched: proof.watched.clone(),
                copied: false,
                anonymous_bytes: proof.together_bytes,
            };
            let mut proven = stack(manager, name, program, proof, context.places);
            if manager.is_java() {
                match extension().proof(manager, &program.command, scratch.path()) {
                    Ok(found) => proven.proof = format!("{found}; {}", proven.proof),
                    Err(why) => return Ok(PreflightOutcome::Refused(Refusal::Stack { why })),
                }
            }
            // An exit status that the user expects gives no warning.
            let expected = format!("the program ended with exit status {expect_status} in the proof run");
            proven.warnings.retain(|warning| expect_status == 0 || *warning != expected);
            Ok(PreflightOutcome::Serves(Box::new(proven), run))
        }
        Err(_) if context.interrupt.is_set() => Err(Failure::Interrupted),
        Err(refusal) => Ok(PreflightOutcome::Refused(refusal)),
    }
}

/// Heaptoll's own environment with what is pinned, for a watched run.
pub fn own_environment() -> Vec<(OsString, OsString)> {
    let unset = PINNED.iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let own = std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD" && name != "LD_AUDIT");
    own.chain(unset.map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The environment of a proof run.
fn environment(
    manager: &Manager,
    program: &ProgramInfo,
    scratch: &Path,
    directory: Option<&Path>,
) -> Vec<(OsString, OsString)> {
    let mut environment = own_environment();
    let mut set = |name: &str, value: OsString| {
        environment.retain(|(other, _)| other != name);
        environment.push((name.into(), value));
    };
    for (name, value) in &program.environment {
        set(name, program.filled(value, scratch).into());
    }
    let own = manager.environment_for(&program.name);
    for (name, value) in in_folder(&own, scratch) {
        set(&name, value.into());
    }
    for kind in manager.layers.iter().map(|layer| layer.kind) {
        if let (Some(variable), Some(settings)) = (&kind.variable, &kind.in_proof) {
            set(variable, settings.into());
        }
    }
    if let Some(copy) = directory {
        set("PWD", copy.into());
    }
    environment
}

/// A program that frees fewer than one block in this many never frees, as far as managers differ by that.
const NEXT_TO_NONE: u64 = 100;

fn stack(manager: &Manager, name: &str, program: &ProgramInfo, proof: Proof, places: &Places) -> StackInfo {
    let reports_statistics = !manager.layers.is_empty()
        || manager
            .preload(places)
            .iter()
            .any(|object| inspect_manager(object).is_ok_and(|facts| facts.control));
    StackInfo {
        program: program.name.clone(),
        name: name.into(),
        preload: proof.preload.iter().map(|path| path.display().to_string()).collect(),
        environment: manager.environment_for(&program.name),
        version: manager.version.clone(),
        origin: manager.origin.clone(),
        proof: proof.sentence,
        warnings: proof.warnings,
        reports_statistics,
        never_frees: proof.finished && proof.free_calls < proof.malloc_calls / NEXT_TO_NONE,
        ..StackInfo::default()
    }
}

/// Names for rows: of a manager given twice (an A/A test) the second gets `#2`.
pub fn row_names(managers: &[Manager]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for manager in managers {
        let count = 1 + managers[..names.len()].iter().filter(|other| other.name == manager.name).count();
        names.push(if count == 1 { manager.name.clone() } else { format!("{}#{count}", manager.name) });
    }
    names
}

/// What decides on which stacks run at once, and on Ctrl-C.
#[derive(Default)]
pub struct Together<'a> {
    /// The managers' blocks in lockstep. Where there are none stacks may take turns.
    pub blocks: &'a [u32],
    /// Programs that are to run in one block: forms that are compared.
    pub programs: &'a [Vec<String>],
    /// Makes further stacks of those that were proved.
    pub derived: Option<&'a dyn DerivedStacks>,
    /// What the machine gives.
    pub machine: pairing::Machine,
    /// Whether the baseline may be what the program uses by itself, because none was named.
    pub chooses_baseline: bool,
    /// See [`Limits::goes_on`].
    pub goes_on: bool,
}

/// Fills the experiment's stacks and refusals. Returns the baseline's proof runs, by program.
///
/// # Errors
/// The program itself cannot be measured, or the baseline does not serve it.
pub fn run(
    experiment: &mut Experiment,
    managers: &[Manager],
    together: &Together,
    context: &Context,
) -> Result<BTreeMap<String, ProofRun>, Failure> {
    let programs = experiment.programs.clone();
    let bar = context.messages.progress(Some((programs.len() * managers.len()) as u64));
    let preflights = Preflights { managers, names: row_names(managers), together, context, bar: &*bar };
    let (mut proof_runs, mut bytes) = (BTreeMap::new(), BTreeMap::new());
    programs.iter().try_for_each(|program| -> Result<(), Failure> {
        match preflights.prove_all(experiment, program)? {
            Ok(served) => {
                let served = preflights.with_derived(experiment, program, served)?;
                let (of_baseline, held) = preflights.add(experiment, program, served);
                if let Some(linked) = &of_baseline.linked {
                    let chooses = together.chooses_baseline && programs.len() == 1;
                    context.messages.note(&baseline::own(experiment, &program.name, linked, chooses));
                }
                proof_runs.insert(program.name.clone(), of_baseline);
                bytes.insert(program.name.clone(), held);
            }
            // The baseline comes first: what it refuses, the program refuses.
            Err(refusal) if programs.len() == 1 => return Err(refusal.into()),
            Err(refusal) => {
                let of = (program.name.clone(), preflights.names[0].clone(), refusal.to_string());
                experiment.refused.push(of);
                experiment.programs.retain(|other| other.name != program.name);
            }
        }
        Ok(())
    })?;
    for group in together.programs {
        if let Err(why) = pairing::join(experiment, group, &bytes, together.machine) {
            context.messages.warning(&why);
        }
    }
    Ok(proof_runs)
}

/// The managers to prove on each program, and what that needs.
struct Preflights<'a> {
    managers: &'a [Manager],
    /// Their names in rows.
    names: Vec<String>,
    together: &'a Together<'a>,
    context: &'a Context<'a>,
    bar: &'a dyn Progress,
}

/// The stacks that serve a program, the baseline first, each with its proof run.
#[derive(Default)]
struct Served {
    stacks: Vec<StackInfo>,
    runs: Vec<ProofRun>,
}

impl Preflights<'_> {
    /// Proves every manager on a program. The inner error is the baseline's refusal; those of others are added to the
    /// experiment.
    fn prove_all(
        &self,
        experiment: &mut Experiment,
        program: &ProgramInfo,
    ) -> Result<Result<Served, Refusal>, Failure> {
        self.managers.iter().try_for_each(require_for)?;
        let mut served = Served::default();
        let mut proven: Vec<(&Manager, StackInfo, ProofRun)> = Vec::new();
        let mut why_not = extension().file_check();
        for (index, (manager, name)) in self.managers.iter().zip(&self.names).enumerate() {
            self.bar.set_text(&format!("preflight: {} under {}", program.name, filled(name, &program.name)));
            let like = proven.iter().find(|(other, ..)| same_objects(other, manager));
            let found = match (why_not(manager, program), like) {
                (Some(why), _) => PreflightOutcome::Refused(Refusal::Stack { why }),
                (None, Some((_, other, run))) => {
                    let copied = ProofRun { copied: true, ..run.clone() };
                    PreflightOutcome::Serves(
                        Box::new(proved_as(other, manager, name, "with other settings")),
                        copied,
                    )
                }
                (None, None) => {
                    let limits = limits(experiment, program, &served.runs, self.together.goes_on);
                    prove(manager, name, program, self.context, limits)?
                }
            };
            match found {
                PreflightOutcome::Serves(stack, run) => {
                    if like.is_none() {
                        proven.push((manager, StackInfo::clone(&stack), run.clone()));
                    }
                    let block = self.together.blocks.get(index).copied().unwrap_or(0);
                    served.stacks.push(StackInfo { block, ..*stack });
                    served.runs.push(run);
                }
                PreflightOutcome::Refused(refusal) if index == 0 => return Ok(Err(refusal)),
                PreflightOutcome::Refused(refusal) => {
                    experiment.refused.push((program.name.clone(), name.clone(), refusal.to_string()));
                }
            }
            self.bar.advance(1);
        }
        Ok(Ok(served))
    }

    /// Puts the stacks that are made of a proved one after it. They take the memory that it took in its proof run.
    fn with_derived(
        &self,
        experiment: &mut Experiment,
        program: &ProgramInfo,
        served: Served,
    ) -> Result<Served, Failure> {
        let Some(derived) = self.together.derived else { return Ok(served) };
        let manager = |stack: &StackInfo| self.names.iter().position(|name| *name == stack.name);
        let proved = |stack| Some(Proved { manager: &self.managers[manager(stack)?], stack });
        let proved: Vec<Proved> = served.stacks.iter().filter_map(proved).collect();
        let further = derived.of_program(experiment, program, &proved, self.context, self.bar)?;
        let mut all = Served::default();
        for ((stack, run), further) in served.stacks.into_iter().zip(served.runs).zip(further) {
            let copied = ProofRun { copied: true, ..run.clone() };
            all.runs.extend(std::iter::once(run).chain(further.iter().map(|_| copied.clone())));
            all.stacks.extend(std::iter::once(stack).chain(further));
        }
        Ok(all)
    }

    /// Adds a program's stacks to the experiment, and which of them run at once. Gives the baseline's proof run, and what
    /// those that run at once take, bytes.
    fn add(&self, experiment: &mut Experiment, program: &ProgramInfo, served: Served) -> (ProofRun, u64) {
        let Served { mut stacks, runs } = served;
        let (pairing, machine) = (experiment.settings.pairing, self.together.machine);
        let in_turns = self.together.blocks.is_empty();
        if let Some(turns) = pairing::decide(pairing, program, &mut stacks, &runs, machine, in_turns) {
            experiment.settings.turns.insert(program.name.clone(), turns);
        }
        let bytes = pairing::together_bytes(&stacks, &runs);
        let of_baseline = runs.into_iter().next().unwrap_or_default();
        // Of the program, and so of every manager.
        for sentence in &of_baseline.elsewhere {
            self.context.messages.warning(sentence);
            stacks.iter_mut().for_each(|stack| stack.warnings.push(sentence.clone()));
        }
        experiment.stacks.extend(stacks);
        (of_baseline, bytes)
    }
}

/// The limits of the next proof run of a program, after these.
fn limits(experiment: &Experiment, program: &ProgramInfo, before: &[ProofRun], goes_on: bool) -> Limits {
    let watch = experiment.settings.pairing == Pairing::Lockstep;
    Limits {
        whole: before.is_empty() || watch && pairing::wants_another_whole(before),
        watch: watch && program.serve.is_none(),
        goes_on,
        ..Limits::of(&experiment.settings)
    }
}

/// Whether two stacks are the same objects in the same order and differ only in settings of layers: symbols then bind
/// alike, and one proof serves for both. A manager's own options may decide what it exports.
fn same_objects(one: &Manager, other: &Manager) -> bool {
    let kinds = |manager: &Manager| manager.layers.iter().map(|layer| layer.kind).collect::<Vec<_>>();
    let of_layers: Vec<&str> = one.layers.iter().filter_map(|layer| layer.kind.variable.as_deref()).collect();
    let rest = |manager: &Manager| {
        let others = manager.environment.iter().filter(|(name, _)| !of_layers.contains(&name.as_str()));
        others.cloned().collect::<Vec<_>>()
    };
    one.name != other.name
        && !one.layers.is_empty()
        && one.object == other.object
        && kinds(one) == kinds(other)
        && rest(one) == rest(other)
}

#[cfg(test)]
mod tests {
    use heaptoll_experiment::manager;

    use super::*;

    #[test]
    fn stacks_that_differ_in_settings_of_layers_are_proved_once() {
        let known = [manager::glibc(), Manager { name: "m".into(), base: "m".into(), ..manager::glibc() }];
        let stack = |word: &str| manager::find(&known, word).expect(word);
        let same = |one: &str, other: &str| same_objects(&stack(one), &stack(other));
        assert!(same("quarantine=1B/glibc", "quarantine=64K,check=on/glibc"));
        assert!(same("sweep,every=1M/glibc", "sweep/glibc"));
        // An A/A test proves both, and so does what is another chain or sets something besides.
        assert!(!same("quarantine=1B/glibc", "quarantine=1B/glibc"));
        assert!(!same("glibc", "quarantine=1B/glibc") && !same("quarantine=1B/glibc", "sweep/glibc"));
        assert!(!same("quarantine=1B/forward/glibc", "forward/quarantine=2B/glibc"));
        let other =
            Manager { environment: vec![("MODE".into(), "2".into())], ..stack("quarantine=2B/glibc") };
        assert!(!same_objects(&stack("quarantine=1B/glibc"), &other));
        let another = Manager { object: Some("/other.so".into()), ..stack("quarantine=2B/glibc") };
        assert!(!same_objects(&stack("quarantine=1B/glibc"), &another));
    }

    #[test]
    fn a_manager_against_itself_has_two_names() {
        let manager = |name: &str| Manager { name: name.into(), ..manager::glibc() };
        assert_eq!(row_names(&[manager("glibc"), manager("x"), manager("glibc")]), ["glibc", "x", "glibc#2"]);
    }
}
