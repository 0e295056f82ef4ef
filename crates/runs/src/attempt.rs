//! One run of a program under a stack with a statistics page, outside of any experiment, for a search and for a first
//! run. Nothing is timed here.

use std::path::PathBuf;

use heaptoll_experiment::experiment::{ProgramInfo, Protocol};
use heaptoll_experiment::extension::extension;
use heaptoll_experiment::launch::{self, Finished, Invocation};
use heaptoll_experiment::manager::{Manager, in_folder};
use heaptoll_experiment::runner::{RunError, environment_of, page_in};
use heaptoll_experiment::serve;
use heaptoll_launcher::Ended;
use heaptoll_preflight::killed_by;
use heaptoll_scratch::Scratch;
use heaptoll_stats_page::SlotRecord;
use regex_lite::Regex;

use crate::preparation::preflights::{Limits, PreflightOutcome, prove};
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// What all runs share.
#[derive(Clone, Copy)]
pub struct Runs<'a> {
    /// The installation, and Ctrl-C.
    pub context: &'a Context<'a>,
    /// How they are made.
    pub protocol: &'a Protocol,
}

/// What is preloaded into a program.
#[derive(Debug, Clone, Default)]
pub struct Set {
    /// Shared objects, in order.
    pub preload: Vec<PathBuf>,
    /// Environment over the program's own.
    pub environment: Vec<(String, String)>,
}

/// The result of a run.
pub struct Attempt {
    /// The launcher's report; a server's own.
    pub finished: Finished,
    /// Statistics of layers and managers.
    pub slots: Vec<SlotRecord>,
    /// Why a server's round is not counted, if it is not.
    pub served_badly: Option<String>,
    /// Its scratch folder, which has the logs of virtual machines.
    pub scratch: Scratch,
}

impl Runs<'_> {
    /// The preloads of a stack, once the preflight has proved it; or why it does not serve the program.
    ///
    /// # Errors
    /// Ctrl-C, or heaptoll's own machinery failed.
    pub fn proven(&self, program: &ProgramInfo, stack: &Manager) -> Result<Result<Set, String>, Failure> {
        let limits = Limits::of(self.protocol);
        Ok(match prove(stack, &stack.name, program, self.context, limits)? {
            PreflightOutcome::Serves(info, _) => Ok(Set {
                preload: info.preload.iter().map(Into::into).collect(),
                environment: stack.environment.clone(),
            }),
            PreflightOutcome::Refused(refusal) => Err(refusal.to_string()),
        })
    }

    /// Runs a program to its end, or a server until its load has ended.
    ///
    /// # Errors
    /// Ctrl-C, or heaptoll's own machinery failed; the program's failures are in the answer.
    pub fn attempt(&self, program: &ProgramInfo, set: &Set) -> Result<Attempt, Failure> {
        self.attempt_with_load(program, set, &Set::default())
    }

    /// The same, with something preloaded into a server's load, too.
    ///
    /// # Errors
    /// As [`Runs::attempt`].
    pub fn attempt_with_load(
        &self,
        program: &ProgramInfo,
        set: &Set,
        load: &Set,
    ) -> Result<Attempt, Failure> {
        let no_scratch = |error| Failure::Run(RunError::Scratch(error));
        let scratch = Scratch::make().map_err(no_scratch)?;
        let (page, variable) = page_in(&scratch)?;
        let mut environment = environment_of(program, scratch.path());
        environment.extend(in_folder(&set.environment, scratch.path()));
        environment.push(variable);
        let timeout = self.protocol.timeout();
        let invocation = Invocation {
            command: program.command_in(scratch.path()),
            environment,
            preload: set.preload.clone(),
            stdin: program.stdin.as_ref().map(PathBuf::from),
            timeout,
            ..Invocation::default()
        };
        let (launcher, interrupt) = (self.context.places.launcher(), self.context.interrupt);
        let (finished, served_badly) = match &program.serve {
            None => (launch::run(&launcher, &invocation, interrupt)?, None),
            Some(info) => {
                let load = Invocation {
                    command: program.load_in(info, scratch.path()),
                    environment: load.environment.clone(),
                    preload: load.preload.clone(),
                    timeout,
                    ..Invocation::default()
                };
                let ready = Regex::new(&info.ready).map_err(RunError::Pattern)?;
                let round = serve::round(&launcher, &invocation, &[load], info, &ready, interrupt)?;
                (round.server, round.failure)
            }
        };
        if interrupt.is_set() || finished.ended == Ended::Cancelled && program.serve.is_none() {
            return Err(Failure::Interrupted);
        }
        let mut slots = page.read().unwrap_or_default();
        slots.extend(extension().slots(scratch.path()).unwrap_or_default());
        Ok(Attempt { finished, slots, served_badly, scratch })
    }
}

impl Attempt {
    /// A counter's largest value in any slot.
    pub fn most(&self, of: fn(&SlotRecord) -> u64) -> u64 {
        self.slots.iter().map(of).max().unwrap_or(0)
    }

    /// A counter's sum over all slots.
    pub fn sum(&self, of: fn(&SlotRecord) -> u64) -> u64 {
        self.slots.iter().map(of).sum()
    }

    /// How it ended, as text, with the last line that it wrote to standard error.
    pub fn ending(&self, timeout_s: f64) -> String {
        let how = match self.finished.ended {
            Ended::Exit(status) => format!("exit status {status}"),
            Ended::Signal(number) => killed_by(number),
            Ended::Timeout => return format!("over the time limit of {timeout_s} s"),
            Ended::Cancelled => return "cancelled".into(),
            Ended::ExecFailed(errno) | Ended::SetupFailed(errno) => {
                return format!("not started: {}", std::io::Error::from_raw_os_error(errno));
            }
        };
        match self.finished.error_tail.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(last_line) => format!("{how}: {}", last_line.trim()),
            None => how,
        }
    }
}
