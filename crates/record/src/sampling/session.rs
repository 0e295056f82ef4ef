//! A program's run under the sampling layer, from its start to the end of the last process that it started.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptoll_sampling::layout::VARIABLE;
use heaptoll_sampling::tool::{Folder, Settings};
use heaptoll_units::limits;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::error::SamplingError;
use super::listener::Listener;
use super::named::NamedProcess;
use super::protocol::{Answer, Command};
use crate::child::{self, Child, ProgramExit};
use crate::error::RecordError;
use crate::interrupt::InterruptPolicy;
use crate::recorded::Progress;
use crate::request::{Children, Request};
use crate::uninstrumented;

/// How long the loop sleeps without an event: an interrupt is noticed after this time.
const TICK: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Processes that outlive the first one are reported after this time.
const REPORT_AFTER: Duration = Duration::from_secs(2);

/// How a program is sampled.
#[derive(Debug, Clone)]
pub struct SamplingOptions {
    /// Rate and seed, and whether the layers are awake from the start.
    pub settings: Settings,
    /// Where clients connect; nowhere without one.
    pub socket: Option<PathBuf>,
    /// A folder for the files of the samples, in memory, that only this user may enter.
    pub folder: PathBuf,
}

/// Makes the profile of a client from what was sampled so far, and whether the layers are awake.
pub type Profiler<'a> = dyn FnMut(&[NamedProcess], bool) -> Result<Answer, String> + 'a;

/// What was sampled.
#[derive(Debug, Clone, Default)]
pub struct SampledOutcome {
    /// All process images in which something was sampled, in the order in which they began.
    pub processes: Vec<NamedProcess>,
    /// Process images that have the layer and a file for their samples.
    pub images: usize,
    /// Those that have the layer and could make no file.
    pub without_file: u32,
    /// The first process's exit status; 128 plus the number of the signal that killed it. `None` when the user stopped
    /// the run.
    pub status: Option<u8>,
    /// From its start to its end.
    pub wall: Duration,
    /// What is in no profile, as messages.
    pub warnings: Vec<String>,
}

/// Runs a program under the sampling layer, `request.layer`. `answer` makes the profile of a client.
///
/// # Errors
/// See [`SamplingError`]. Once the program runs there are none.
pub fn sample(
    request: &Request,
    options: &SamplingOptions,
    progress: &mut dyn Progress,
    answer: &mut Profiler,
) -> Result<SampledOutcome, SamplingError> {
    if request.command.is_empty() {
        return Err(RecordError::NoCommand.into());
    }
    std::fs::File::open(&request.layer)
        .map_err(|source| RecordError::Layer { path: request.layer.clone(), source })?;
    let folder = Folder::create(&options.folder, options.settings)
        .map_err(|source| SamplingError::Folder { folder: options.folder.clone(), source })?;
    let listener = options.socket.as_deref().map(Listener::bind).transpose()?;
    let begun = Instant::now();
    let variable = VARIABLE.to_str().unwrap_or_default();
    let child = child::start(request, (variable, folder.path()))?;
    progress.started(child.pid);
    let mut session = Session {
        request,
        folder,
        listener,
        child,
        ended: None,
        policy: InterruptPolicy::default(),
        reported: false,
    };
    let status = session.run(progress, answer);
    Ok(session.outcome(status, begun.elapsed()))
}

struct Session<'a> {
    request: &'a Request,
    folder: Folder,
    listener: Option<Listener>,
    child: Child,
    ended: Option<(ProgramExit, Instant)>,
    policy: InterruptPolicy,
    reported: bool,
}

impl Session<'_> {
    /// To the end; `None` when the user stops it.
    fn run(&mut self, progress: &mut dyn Progress, answer: &mut Profiler) -> Option<u8> {
        // A kernel that gives none is polled.
        let process = Pid::from_raw(self.child.pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        loop {
            let interrupts = self.request.interrupt.count();
            if self.ended.is_none()
                && let Some(ended) = self.child.ended()
            {
                self.policy.program_ended(interrupts, ended.was_signalled());
                self.ended = Some((ended, Instant::now()));
            }
            if let Some((ended, when)) = self.ended
                && !self.others_remain(when, progress)
            {
                return Some(ended.code());
            }
            if self.is_stopped(interrupts) {
                // Where that fails the program goes on to sample, for none to see.
                let _ = self.folder.wake(false);
                return None;
            }
            let process = process.as_ref().filter(|_| self.ended.is_none());
            let mut waits: Vec<PollFd> = Vec::new();
            waits.extend(self.listener.as_ref().map(|listener| PollFd::new(listener, PollFlags::IN)));
            waits.extend(process.map(|process| PollFd::new(process, PollFlags::IN)));
            // An interrupted or failed wait is one that ended early.
            let _ = poll(&mut waits, Some(&TICK));
            if let Some(listener) = &self.listener {
                listener.serve(&mut |command| self.answer(command, answer));
            }
        }
    }

    fn is_stopped(&mut self, interrupts: u32) -> bool {
        if let Some(signal) = self.request.interrupt.take_signal()
            && self.ended.is_none()
        {
            self.child.signal(signal);
        }
        let since_end = self.ended.map_or(Duration::ZERO, |(_, when)| when.elapsed());
        self.policy.stop(interrupts, since_end)
    }

    /// Whether a process that the first one started is still sampled; reports them once.
    fn others_remain(&mut self, ended: Instant, progress: &mut dyn Progress) -> bool {
        if self.request.options.children == Children::Ignore {
            return false;
        }
        let entry = [VARIABLE.to_bytes(), b"="].concat();
        let pids = uninstrumented::inheriting(&entry, self.folder.path());
        if !pids.is_empty() && !self.reported && ended.elapsed() >= REPORT_AFTER {
            self.reported = true;
            progress.waits_for(&pids);
        }
        !pids.is_empty()
    }

    fn answer(&self, command: Command, profile: &mut Profiler) -> Result<Answer, String> {
        let failed = |error: std::io::Error| format!("the files of the samples cannot be used: {error}");
        match command {
            Command::Start => self.folder.wake(true).map_err(failed)?,
            Command::Stop => self.folder.wake(false).map_err(failed)?,
            Command::Status => {}
            Command::Dump => return profile(&self.processes(), self.folder.is_awake().map_err(failed)?),
        }
        let awake = self.folder.is_awake().map_err(failed)?;
        let samples: u64 = self.folder.processes().map_err(failed)?.iter().map(|one| one.samples()).sum();
        let state = if awake { "samples" } else { "is dormant" };
        Ok(Answer {
            text: format!("process {} {state}; {samples} samples so far", self.child.pid),
            profile: Vec::new(),
        })
    }

    fn processes(&self) -> Vec<NamedProcess> {
        let here = std::env::current_dir().unwrap_or_default();
        let here = self.request.directory.clone().unwrap_or(here);
        let all = self.folder.processes().unwrap_or_default();
        let first = self.child.pid.unsigned_abs();
        let is_wanted = |pid: u32| self.request.options.children == Children::Files || pid == first;
        let sampled = all.iter().filter(|process| process.samples() > 0 && is_wanted(process.pid));
        sampled
            .map(|process| {
                let folder = std::fs::read_link(format!("/proc/{}/cwd", process.pid));
                NamedProcess::new(process, folder.as_deref().unwrap_or(Path::new(&here)))
            })
            .collect()
    }

    fn outcome(self, status: Option<u8>, wall: Duration) -> SampledOutcome {
        let processes = self.processes();
        let mut warnings = Vec::new();
        let without_file = self.folder.without_file().unwrap_or(0);
        if without_file > 0 {
            let limit = limits::advice(&Errno::FBIG.into()).or_else(limits::memory);
            let why = limit.unwrap_or_else(|| {
                "there was no memory for their samples, or a limit of theirs forbids the file".into()
            });
            warnings.push(format!("{without_file} process images were not sampled: {why}"));
        }
        let images = self.folder.processes().map_or(0, |all| all.len());
        SampledOutcome { processes, images, without_file, status, wall, warnings }
    }
}
