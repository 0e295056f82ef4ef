//! One traced run: the launcher starts the program under the tracer, and this thread reads its rings until it is over.

use std::ffi::OsString;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heaptoll_experiment::interrupt::Interrupt;
use heaptoll_experiment::launch::{self, Finished, Invocation, LaunchError};
use heaptoll_launcher::Ended;
use heaptoll_reftrace::Sink;

use crate::error::TracerError;
use crate::find::Tracer;
use crate::image::{Image, ImageEnding, Traced, TracedImage};
use crate::options::{LOGS, Options, SYMBOLS};
use crate::program_reader::{ProgramReader, SystemProcesses};

use crate::{log, memory, scratch};

/// Interval at which memory is sampled and progress reported.
const PACE: Duration = Duration::from_millis(100);

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Instructions recorded so far, of all images.
    pub instructions: u64,
    /// Process images so far.
    pub images: usize,
    /// Time since the start.
    pub elapsed: Duration,
}

/// Runs the program of `invocation` under the tracer. The first `interrupt` is the program's, the second kills it.
/// `begin` makes a sink for each process image; all are called on this thread.
///
/// # Errors
/// See [`TracerError`]: nothing was recorded. A run that was recorded in part is a [`Traced`] with the reason.
pub fn trace<S: Sink>(
    tracer: &Tracer,
    launcher: &Path,
    invocation: &Invocation,
    options: &Options,
    interrupt: &Interrupt,
    begin: impl FnMut(&Image) -> S,
) -> Result<Traced<S>, TracerError> {
    trace_with(tracer, launcher, invocation, options, interrupt, begin, |_| {})
}

/// Like [`trace`]; `progress` is called at intervals.
///
/// # Errors
/// See [`trace`].
pub fn trace_with<S: Sink>(
    tracer: &Tracer,
    launcher: &Path,
    invocation: &Invocation,
    options: &Options,
    interrupt: &Interrupt,
    begin: impl FnMut(&Image) -> S,
    mut progress: impl FnMut(Progress),
) -> Result<Traced<S>, TracerError> {
    let scratch = scratch::make()?;
    let folder = scratch.path();
    let rings = |cause| TracerError::Rings { folder: folder.into(), cause };
    if !options.symbols.is_empty() {
        std::fs::write(folder.join(LOGS).join(SYMBOLS), options.symbols.as_bytes()).map_err(rings)?;
    }
    let mut program_reader = ProgramReader::new(folder, begin, SystemProcesses);
    let mut run = Run::start(tracer, launcher, invocation, options, folder)?;
    let begun = Instant::now();
    let (mut reported, mut stopped) = (Instant::now(), None);
    loop {
        // Before the rings are read: then they hold all that exited processes have left.
        let over = run.is_over();
        let any = program_reader.poll().map_err(rings)?;
        if interrupt.is_repeated() {
            run.cancel();
        } else if interrupt.is_set() {
            run.pass_on();
        }
        if stopped.is_none()
            && let Some(why) = program_reader.full()
        {
            stopped = Some(why);
        }
        if reported.elapsed() >= PACE {
            reported = Instant::now();
            let (instructions, images) = program_reader.so_far();
            progress(Progress { instructions, images, elapsed: begun.elapsed() });
            if stopped.is_none() {
                stopped = memory::shortage();
            }
        }
        if let Some(why) = &stopped
            && !run.cancelled
        {
            // The rest would run at the tracer's pace for no result.
            program_reader.stop(why);
            run.cancel();
        }
        if over && !any {
            break;
        }
        if !any {
            program_reader.wait();
        }
    }
    let (mut images, unread) = program_reader.finish().map_err(rings)?;
    let first = run.first;
    let finished = run.result()?;
    correct_ending(&mut images, first, finished.ended);
    let mut findings = log::read(&folder.join(LOGS));
    let own = log::of_standard_error(&finished.error_tail);
    for fatal in own.fatal {
        if !findings.fatal.contains(&fatal) {
            findings.fatal.push(fatal);
        }
    }
    let cut_short = interrupt.is_set() || matches!(finished.ended, Ended::Timeout | Ended::Cancelled);
    if images.is_empty() && !cut_short {
        return Err(cannot_run(invocation, &finished, &findings, &unread));
    }
    let mut warnings = unread;
    warnings.extend(findings.warnings);
    Ok(Traced { finished, images, stopped, gave_up: findings.fatal, warnings })
}

/// Gives the first process the ending that the launcher saw, which observes it more exactly than the tracer.
fn correct_ending<S>(images: &mut [TracedImage<S>], first: Option<i32>, ended: Ended) {
    let Some(last) = images.iter_mut().rev().find(|image| Some(image.image.pid) == first) else { return };
    match (&last.ending, ended) {
        (ImageEnding::Ended(_), Ended::Exit(status)) => last.ending = ImageEnding::Ended(status),
        (ImageEnding::Ended(_) | ImageEnding::Unrecorded, Ended::Signal(_))
        | (ImageEnding::Unrecorded, Ended::Timeout | Ended::Cancelled) => last.ending = ImageEnding::Killed,
        _ => {}
    }
}

fn cannot_run(
    invocation: &Invocation,
    finished: &Finished,
    findings: &log::Findings,
    unread: &[String],
) -> TracerError {
    let system = |errno: i32| std::io::Error::from_raw_os_error(errno).to_string();
    let output = match finished.ended {
        Ended::ExecFailed(errno) | Ended::SetupFailed(errno) => {
            format!("the tracer could not be started ({})", system(errno))
        }
        _ if !findings.fatal.is_empty() => findings.fatal.join("\n"),
        _ if !unread.is_empty() => unread.join("\n"),
        _ if !findings.warnings.is_empty() => findings.warnings.join("\n"),
        ended => {
            let how = match ended {
                Ended::Exit(status) => format!("exit status {status}"),
                Ended::Signal(number) => format!("killed by signal {number}"),
                _ => "it ended".into(),
            };
            let output = finished.error_tail.trim();
            if output.is_empty() {
                format!("{how}, before anything was recorded")
            } else {
                format!("{how}, with this output:\n{output}")
            }
        }
    };
    let program =
        invocation.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    TracerError::CannotRun { program, output }
}

/// The program under the launcher; a thread waits for it. Dropping the run before its end cancels it.
struct Run {
    waiter: Option<JoinHandle<Result<Finished, LaunchError>>>,
    /// The launcher's own: the caller's is not set when a run ends for another reason.
    interrupt: Interrupt,
    cancelled: bool,
    passed_on: bool,
    /// The program's first process.
    first: Option<i32>,
}

impl Run {
    fn start(
        tracer: &Tracer,
        launcher: &Path,
        invocation: &Invocation,
        options: &Options,
        folder: &Path,
    ) -> Result<Run, TracerError> {
        let mut traced = invocation.clone();
        let mut command = vec![tracer.tool().as_os_str().to_owned()];
        command.extend(options.arguments(folder, std::process::id()).into_iter().map(OsString::from));
        command.append(&mut traced.command);
        traced.command = command;
        traced.environment.extend(tracer.environment());
        let interrupt = Interrupt::default();
        let running = launch::start(launcher, &traced, &interrupt)?;
        let first = running.pid();
        let waiter = std::thread::Builder::new()
            .name("waits for the program".into())
            .spawn(move || running.wait())
            .map_err(LaunchError::System)?;
        Ok(Run { waiter: Some(waiter), interrupt, cancelled: false, passed_on: false, first })
    }

    fn is_over(&self) -> bool {
        self.waiter.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Lets the program have the user's Ctrl-C, once: where it ends in its own way, its end is in the trace.
    fn pass_on(&mut self) {
        if !self.passed_on {
            self.passed_on = true;
            self.interrupt.pass_on();
        }
    }

    /// Ends the program now.
    fn cancel(&mut self) {
        if !self.cancelled {
            self.cancelled = true;
            self.interrupt.set();
        }
    }

    fn result(mut self) -> Result<Finished, TracerError> {
        let finished = self.waiter.take().map(JoinHandle::join);
        match finished {
            Some(Ok(finished)) => Ok(finished?),
            // It has no reason to panic; if it does, that is an error and not the loss of a result.
            _ => {
                Err(LaunchError::System(std::io::Error::other("the thread that waits for the program died"))
                    .into())
            }
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.interrupt.set();
            // The result is of no use any more.
            let _ = waiter.join();
        }
    }
}
