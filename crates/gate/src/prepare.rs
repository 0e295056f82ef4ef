//! The beginning of one program's gate: both builds are run once and watched, and described as an experiment of two
//! stacks, `base` and `new`.

use std::path::PathBuf;
use std::time::Duration;

use heaptoll_experiment::experiment::{Experiment, OwnCommand, Pairing, ProgramInfo, Protocol, StackInfo};
use heaptoll_experiment::extension::require_for;
use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::{lockstep, words};
use heaptoll_preflight::{Observed, Refusal, Request as Preflight, Watch, killed_by, observe};

use super::request::Entry;
use super::side::BuiltSide;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::pairing;
use heaptoll_runs::preparation::preflights::{Limits, PreflightOutcome, own_environment, prove};
use heaptoll_runs::preparation::proof_run::ProofRun;

/// The stack of the base.
pub const BASE: &str = "base";
/// The stack of the new build.
pub const NEW: &str = "new";
/// Time limit of a watched run.
const WATCHED: Duration = Duration::from_secs(60);

/// A program that can be measured, or how its new build fails.
pub enum Prepared {
    /// Both builds run.
    Runs(Box<Begun>),
    /// The base ends well and the new build does not.
    NewFails(String),
}

/// An experiment that is described and not measured.
pub struct Begun {
    /// Two stacks of one program.
    pub experiment: Experiment,
    /// Wall time of a watched run, s: the longer of both.
    pub run_s: f64,
    /// Memory that is no file's, of the larger of both, bytes.
    pub together_bytes: u64,
}

/// What the gate has of one program.
pub struct Sides<'a> {
    /// Name, limits, exit status.
    pub entry: &'a Entry,
    /// The base, found and built.
    pub base: &'a BuiltSide,
    /// The new build.
    pub new: &'a BuiltSide,
}

/// Runs both sides once, watched, and describes the experiment.
///
/// # Errors
/// The base cannot be run, a side is not there, or Ctrl-C.
pub fn prepare(sides: &Sides, protocol: &Protocol, context: &Context) -> Result<Prepared, Failure> {
    let expect_status = sides.entry.expect_status;
    let protocol = Protocol { expect_status, pairing: Pairing::Lockstep, ..protocol.clone() };
    let program = program(sides, context)?;
    let mut stacks = Vec::new();
    let mut runs = Vec::new();
    for (name, side) in [(BASE, sides.base), (NEW, sides.new)] {
        let progress = context.messages.progress(None);
        progress.set_text(&format!("{}: watching a run of {name}", sides.entry.name));
        let found = match &side.manager {
            None => as_it_is(&program, side, protocol.timeout(), context)?,
            Some(manager) => under(manager, name, &program, side, &protocol, context)?,
        };
        drop(progress);
        if let Some(problem) = found.problem(expect_status) {
            let what = format!("{}: the {name} build {problem}", sides.entry.name);
            return if name == BASE { Err(Failure::Usage(what)) } else { Ok(Prepared::NewFails(problem)) };
        }
        stacks.push(StackInfo {
            name: name.into(),
            own_command: Some(OwnCommand::of(&side.command, side.folder.as_deref())),
            ..found.stack
        });
        runs.push(found.run);
    }
    pairing::decide(protocol.pairing, &program, &mut stacks, &runs, pairing::Machine::now(), false);
    let most = |of: fn(&ProofRun) -> f64| runs.iter().map(of).fold(0.0, f64::max);
    Ok(Prepared::Runs(Box::new(Begun {
        run_s: most(|run| run.seconds),
        together_bytes: most(|run| run.anonymous_bytes as f64) as u64,
        experiment: Experiment { stacks, ..Experiment::begun(protocol, BASE.into(), vec![program]) },
    })))
}

/// One side's watched run.
struct Found {
    stack: StackInfo,
    run: ProofRun,
    observed: Option<Observed>,
}

impl Found {
    /// How it ended, where that is not well.
    fn problem(&self, expect_status: i32) -> Option<String> {
        let observed = self.observed.as_ref()?;
        let last = observed.stderr.lines().rev().find(|line| !line.trim().is_empty());
        let wrote = last.map(|line| format!("; it wrote: {}", line.trim())).unwrap_or_default();
        match (observed.status, observed.signal) {
            (_, Some(signal)) => Some(format!("is {}{wrote}", killed_by(signal))),
            (Some(status), _) if status != expect_status => Some(format!(
                "ends with exit status {status}, not {expect_status}{wrote} (if that is its status when all is well: --expect-status {status})"
            )),
            _ => None,
        }
    }
}

fn program(sides: &Sides, context: &Context) -> Result<ProgramInfo, Failure> {
    let (command, raw_words) = words::stored(&sides.base.command);
    Ok(ProgramInfo {
        name: sides.entry.name.clone(),
        command,
        raw_words,
        stdin: sides.entry.stdin.path(context)?.map(|path| path.display().to_string()),
        ..ProgramInfo::default()
    })
}

/// A side without a manager: nothing is preloaded.
fn as_it_is(
    program: &ProgramInfo,
    side: &BuiltSide,
    timeout: Duration,
    context: &Context,
) -> Result<Found, Failure> {
    let mut environment = own_environment();
    if let Some(folder) = &side.folder {
        environment.retain(|(name, _)| name != "PWD");
        environment.push(("PWD".into(), folder.into()));
    }
    let request = Preflight {
        command: side.command.clone(),
        environment,
        directory: side.folder.clone(),
        stdin: program.stdin.as_ref().map(PathBuf::from),
        layers: vec![],
        preload: vec![],
        count_layer: PathBuf::new(),
        limit: WATCHED.min(timeout),
        watch: lockstep::processor().ok().map(|cpu| Watch { cpu, exempt: vec![] }),
        cancel: context.interrupt.flag(),
        hurry: None,
    };
    let observed = match observe(&request) {
        Ok(observed) => observed,
        Err(Refusal::Cancelled) => return Err(Failure::Interrupted),
        Err(refusal) => return Err(refusal.into()),
    };
    let run = ProofRun {
        seconds: observed.seconds,
        finished: observed.finished,
        watched: observed.watched.clone(),
        anonymous_bytes: observed.together_bytes,
        ..ProofRun::default()
    };
    let stack = StackInfo {
        program: program.name.clone(),
        proof: "it runs as it is, with nothing preloaded".into(),
        ..StackInfo::default()
    };
    Ok(Found { stack, run, observed: Some(observed) })
}

/// A side under a manager, which is proved to serve it.
fn under(
    manager: &str,
    name: &str,
    program: &ProgramInfo,
    side: &BuiltSide,
    protocol: &Protocol,
    context: &Context,
) -> Result<Found, Failure> {
    let known = manager::known(context.places)?;
    let manager: Manager = manager::find(&known, manager)?;
    require_for(&manager)?;
    let (command, raw_words) = words::stored(&side.command);
    let program = ProgramInfo { command, raw_words, ..program.clone() };
    let limits = Limits { whole: true, watch: true, ..Limits::of(protocol) };
    match prove(&manager, name, &program, context, limits)? {
        PreflightOutcome::Serves(stack, run) => Ok(Found { stack: *stack, run, observed: None }),
        PreflightOutcome::Refused(refusal) => Err(refusal.into()),
    }
}
