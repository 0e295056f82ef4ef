//! One traced run: the launcher starts the program under the tracer, and this thread hears it until it is over.

use std::ffi::OsString;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heaptoll_lab::interrupt::Interrupt;
use heaptoll_lab::launch::{self, Finished, Invocation, LaunchError};
use heaptoll_launcher::Ended;
use heaptoll_reference::Sink;

use crate::error::TracerError;
use crate::find::Tracer;
use crate::follow::{Follower, System};
use crate::image::{Image, ImageEnding, Traced};
use crate::options::{LOGS, Options};

use crate::{log, room, scratch};

/// How often is looked after memory and progress told.
const PACE: Duration = Duration::from_millis(100);

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Instructions told so far, of all images.
    pub instructions: u64,
    /// Process images so far.
    pub images: usize,
    /// Since the start.
    pub elapsed: Duration,
}

/// Runs the program of `invocation` under the tracer. `begin` gives a sink for each process image; all are called on
/// this thread.
///
/// # Errors
/// See [`TracerError`]: nothing was heard. A run that was heard in part is a [`Traced`] that says so.
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

/// As [`trace`]; `progress` is told now and then how far it is.
///
/// # Errors
/// As [`trace`].
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
    let mut followers = Follower::new(folder, begin, System);
    let mut run = Run::start(tracer, launcher, invocation, options, folder)?;
    let begun = Instant::now();
    let (mut told, mut stopped) = (Instant::now(), None);
    loop {
        // Asked first: what the dead have left is there then.
        let over = run.is_over();
        let any = followers.turn().map_err(rings)?;
        if interrupt.is_set() {
            run.call_off();
        }
        if stopped.is_none()
            && let Some(why) = followers.full()
        {
            stopped = Some(why);
        }
        if told.elapsed() >= PACE {
            told = Instant::now();
            let (instructions, images) = followers.so_far();
            progress(Progress { instructions, images, elapsed: begun.elapsed() });
            if stopped.is_none() {
                stopped = room::shortage();
            }
        }
        if let Some(why) = &stopped
            && !run.called_off
        {
            // The rest would be told to nobody, at the tracer's pace.
            followers.stop(why);
            run.call_off();
        }
        if over && !any {
            break;
        }
        if !any {
            followers.rest();
        }
    }
    let (mut images, unread) = followers.finish().map_err(rings)?;
    let first = run.first;
    let finished = run.result()?;
    // The launcher knows better than the tracer how the first process ended.
    if let Some(last) = images.iter_mut().rev().find(|image| Some(image.image.pid) == first)
        && matches!(last.ending, ImageEnding::Ended(_))
    {
        match finished.ended {
            Ended::Exit(status) => last.ending = ImageEnding::Ended(status),
            Ended::Signal(_) => last.ending = ImageEnding::Killed,
            _ => {}
        }
    }
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
    warnings.extend(findings.fatal.into_iter().map(|words| format!("Valgrind gave up: {words}")));
    warnings.extend(findings.warnings);
    Ok(Traced { finished, images, stopped, warnings })
}

fn cannot_run(
    invocation: &Invocation,
    finished: &Finished,
    findings: &log::Findings,
    unread: &[String],
) -> TracerError {
    let system = |errno: i32| std::io::Error::from_raw_os_error(errno).to_string();
    let said = match finished.ended {
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
            let said = finished.error_tail.trim();
            if said.is_empty() {
                format!("{how}, before anything was told")
            } else {
                format!("{how}, saying:\n{said}")
            }
        }
    };
    let program =
        invocation.command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    TracerError::CannotRun { program, said }
}

/// The program under the launcher, waited for by a thread. Dropped before its end, it is called off.
struct Run {
    waiter: Option<JoinHandle<Result<Finished, LaunchError>>>,
    /// The launcher's own: the caller's would not be passed on to a run that ends for another reason.
    interrupt: Interrupt,
    called_off: bool,
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
        Ok(Run { waiter: Some(waiter), interrupt, called_off: false, first })
    }

    fn is_over(&self) -> bool {
        self.waiter.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Has the program ended now.
    fn call_off(&mut self) {
        if !self.called_off {
            self.called_off = true;
            self.interrupt.set();
        }
    }

    fn result(mut self) -> Result<Finished, TracerError> {
        let finished = self.waiter.take().map(JoinHandle::join);
        match finished {
            Some(Ok(finished)) => Ok(finished?),
            // It has no reason to panic; if it does, that is no reason to lose what was heard without a word.
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
            // Nobody is left to be told.
            let _ = waiter.join();
        }
    }
}
