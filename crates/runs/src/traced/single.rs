//! One traced run: its execution, its progress, and its row.

use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::Protocol;
use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::Invocation;
use heaptoll_experiment::observation::{ByOwner, ExactFigures, Observation, Outcome, Phase};
use heaptoll_experiment::runner::environment_of;
use heaptoll_experiment::{machine, working_copy};

use heaptoll_launcher::Ended;
use heaptoll_reftrace::{Clock, Owner, Sink};
use heaptoll_reftrace_host::{Image, Options, Progress, Traced, Tracer, TracerError, trace_with};

use super::cell::Cell;
use super::scratch;
use super::seen::doubt;
use heaptoll_command::clock;
use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;

/// What traced runs share.
#[derive(Clone, Copy)]
pub struct TracedRunner<'a> {
    /// The tracer.
    pub tracer: &'a Tracer,
    /// The installation, Ctrl-C, and where progress goes.
    pub context: Context<'a>,
    /// Folder of which each run has a copy to run in; without one they run where heaptoll does.
    pub copied: Option<&'a Path>,
    /// Their time limit and their exit status of success.
    pub protocol: &'a Protocol,
}

/// A finished run.
pub struct Run<S> {
    /// The trace.
    pub traced: Traced<S>,
    /// Its row, whose position in the experiment and repetition are still 0; without the results of a sink.
    pub row: Observation,
}

impl TracedRunner<'_> {
    /// One run. `place` is its position among all, for the progress line. The inner error is of a cell that cannot be
    /// traced; it does not end the others.
    ///
    /// # Errors
    /// The scratch folder, or the copy of the folder it runs in, cannot be made.
    pub fn run<S: Sink>(
        &self,
        cell: &Cell,
        options: &Options,
        place: &str,
        begin: &mut impl FnMut(&Cell, &Image) -> S,
    ) -> Result<Result<Run<S>, TracerError>, Failure> {
        let scratch = scratch::make()?;
        let invocation = invocation(self, cell, options, &scratch)?;
        let shown = self.context.messages.progress(None);
        let title = format!("{place}  {} under {}", cell.program.name, cell.stack.name);
        shown.set_text(&title);
        let (started_unix_s, load_average) = (clock::now().as_secs_f64(), machine::load()[0]);
        let options = Options { symbols: cell.follow.symbols.clone(), ..options.clone() };
        let traced = trace_with(
            self.tracer,
            &self.context.places.launcher(),
            &invocation,
            &options,
            self.context.interrupt,
            |image| begin(cell, image),
            |progress| {
                shown.set_text(&format!("{title}: {}{}", how_far(&progress), waits(self.context.interrupt)))
            },
        );
        drop(shown);
        let whole = traced.and_then(|traced| match doubt(&cell.follow, &traced) {
            Some(why) => Err(TracerError::HalfSeen { why }),
            None => Ok(traced),
        });
        Ok(whole.map(|traced| {
            let row = Observation { started_unix_s, load_average, ..row(self, cell, &traced) };
            Run { traced, row }
        }))
    }
}

/// Progress in words.
fn how_far(progress: &Progress) -> String {
    let millions = progress.instructions as f64 / 1e6;
    let images = match progress.images {
        0 | 1 => String::new(),
        many => format!(", {many} process images"),
    };
    format!("{millions:.0} million instructions{images}, {} s", progress.elapsed.as_secs())
}

/// What an interrupted run waits for.
fn waits(interrupt: &Interrupt) -> &'static str {
    match interrupt.is_set() {
        true => "; interrupted: waits for the program to end, Ctrl-C again kills it",
        false => "",
    }
}

fn invocation(
    runner: &TracedRunner,
    cell: &Cell,
    options: &Options,
    scratch: &heaptoll_scratch::Scratch,
) -> Result<Invocation, Failure> {
    let copy = runner.copied.map(|folder| working_copy::make(folder, scratch.path())).transpose();
    let copy = copy.map_err(|error| Failure::Run(error.into()))?;
    let directory = copy.or_else(|| cell.stack.directory().map(Path::to_path_buf));
    let mut environment = environment_of(&cell.program, scratch.path());
    environment.extend(cell.stack.environment.iter().cloned());
    let mut preload: Vec<PathBuf> = cell.stack.preload.iter().map(PathBuf::from).collect();
    // Through this layer the manager after it reports its collections.
    let announce = runner.context.places.announce_layer();
    if cell.stack.reports_statistics && announce.is_file() {
        preload.insert(0, announce);
    }
    // Its functions are what marks call. Without a file for its own records it keeps none.
    let events = runner.context.places.layer("events");
    if options.requests && events.is_file() {
        preload.insert(0, events);
    }
    Ok(Invocation {
        command: cell.stack.command_in(&cell.program, scratch.path()),
        environment,
        preload,
        directory,
        stdin: cell.program.stdin.as_ref().map(PathBuf::from),
        timeout: runner.protocol.timeout(),
        ..Invocation::default()
    })
}

/// How a traced run ended that had this time limit.
pub fn outcome(ended: Ended, expect_status: i32, timeout_s: f64, interrupt: &Interrupt) -> Outcome {
    match ended {
        _ if interrupt.is_set() => Outcome::Interrupted,
        Ended::Cancelled => Outcome::Interrupted,
        Ended::Timeout => Outcome::Timeout(timeout_s),
        Ended::ExecFailed(errno) | Ended::SetupFailed(errno) => {
            Outcome::NotStarted(std::io::Error::from_raw_os_error(errno).to_string())
        }
        Ended::Exit(status) if status == expect_status => Outcome::Ok,
        Ended::Exit(status) => Outcome::Exit(status),
        Ended::Signal(number) => Outcome::Signal(number),
    }
}

fn row<S>(runner: &TracedRunner, cell: &Cell, traced: &Traced<S>) -> Observation {
    let Protocol { expect_status, timeout_s, .. } = *runner.protocol;
    let outcome = outcome(traced.finished.ended, expect_status, timeout_s, runner.context.interrupt);
    let names = (cell.program.name.as_str(), cell.stack.name.as_str());
    Observation {
        exact: Some(exact(traced)),
        ..Observation::of_run(Phase::Traced, names, &traced.finished, outcome)
    }
}

fn exact<S>(traced: &Traced<S>) -> ExactFigures {
    let totals = traced.totals();
    let by_owner = |clocks: &[Clock; 3], figure: fn(&Clock) -> u64| ByOwner {
        program: figure(&clocks[Owner::Program as usize]),
        allocator: figure(&clocks[Owner::Allocator as usize]),
        collector: figure(&clocks[Owner::Collector as usize]),
    };
    let of = |figure: fn(&Clock) -> u64| by_owner(&totals, figure);
    let startup = traced.images.first().and_then(|image| image.before_main);
    ExactFigures {
        instructions: of(|clock| clock.instructions),
        loads: of(|clock| clock.loads),
        stores: of(|clock| clock.stores),
        allocations: traced.images.iter().map(|image| image.calls.allocations).sum(),
        frees: traced.images.iter().map(|image| image.calls.frees).sum(),
        heap_high_water_bytes: None,
        images: u32::try_from(traced.images.len()).unwrap_or(u32::MAX),
        whole: traced.is_whole(),
        startup: startup.map(|before| by_owner(&before, |clock| clock.instructions)),
    }
}
