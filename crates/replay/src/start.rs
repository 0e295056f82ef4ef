//! One driver, from the tool's side: a fresh process with the manager preloaded, given its job, waited for, and killed
//! on the user's request or at the time limit.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use heaptoll_scratch::Scratch;
use heaptoll_stats_page::{StatsPage, WriterKind};

use crate::error::ReplayError;
use crate::job::{Answer, Job, Outcome, Pass};
use crate::program::Program;

/// Under what a driver runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// Name in rows.
    pub name: String,
    /// Shared objects of its layers and its manager, in order; none for the C library's own.
    pub preload: Vec<PathBuf>,
    /// Its environment.
    pub environment: Vec<(String, String)>,
}

/// How one driver ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ended {
    /// With an answer.
    Done(Box<Outcome>, Option<u64>),
    /// Without one that counts: why.
    Failed(String),
    /// The user cancelled it.
    Interrupted,
}

/// What every driver of a study is started with.
#[derive(Debug, Clone)]
pub struct Starter<'a> {
    /// The driver's file.
    pub driver: PathBuf,
    /// Whether the user has cancelled.
    pub interrupt: &'a AtomicBool,
    /// Longest that a driver may take.
    pub timeout: Duration,
}

/// How often a driver is polled.
const PACE: Duration = Duration::from_millis(20);
/// Bytes kept of its output.
const TAIL: usize = 2048;

impl Starter<'_> {
    /// Runs one driver to its end. `padding` is a number of bytes in its environment, which moves its stack.
    ///
    /// # Errors
    /// The system gives no process or no file.
    pub fn run(
        &self,
        stack: &Stack,
        program: &Program,
        job: &Job,
        padding: u32,
    ) -> Result<Ended, ReplayError> {
        let file = || tempfile::tempfile().map_err(ReplayError::system("make a temporary file"));
        let (mut job_file, mut answer, stderr) = (file()?, file()?, file()?);
        let text = serde_json::to_vec(job).map_err(|error| io::Error::other(error.to_string()));
        text.and_then(|text| job_file.write_all(&text))
            .map_err(ReplayError::system("write the driver's job"))?;
        let output =
            stderr.try_clone().map_err(ReplayError::system("make a file for the driver's output"))?;
        let folder = Scratch::make().map_err(ReplayError::system("make a temporary folder"))?;
        let page = (job.pass == Pass::Memory)
            .then(|| StatsPage::create(&folder.path().join("heaptoll-stats"), 16))
            .transpose()
            .map_err(|error| {
                ReplayError::system("make the statistics page")(io::Error::other(error.to_string()))
            })?;
        let handed = [program.as_fd().as_raw_fd(), job_file.as_raw_fd(), answer.as_raw_fd()];
        let mut command = self.command(stack, handed, padding);
        if let Some(page) = &page {
            command.env("HEAPTOLL_STATS", page.path());
        }
        let stdout =
            stderr.try_clone().map_err(ReplayError::system("make a file for the driver's output"))?;
        command.stdin(Stdio::null()).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        let mut child = command.spawn().map_err(ReplayError::system("start the driver"))?;
        let end = end_of(child.id());
        let begun = Instant::now();
        let mut stopped = None;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(ReplayError::system("wait for the driver"))? {
                break status;
            }
            if stopped.is_none() {
                stopped = if self.interrupt.load(Ordering::Relaxed) {
                    Some(Ended::Interrupted)
                } else if begun.elapsed() > self.timeout {
                    let seconds = self.timeout.as_secs_f64();
                    Some(Ended::Failed(format!("killed after {seconds} s (--timeout)")))
                } else {
                    None
                };
                if stopped.is_some() {
                    child.kill().map_err(ReplayError::system("kill the driver"))?;
                }
            }
            wait_for(end.as_ref(), PACE);
        };
        if let Some(ended) = stopped {
            return Ok(ended);
        }
        let mut text = Vec::new();
        answer
            .rewind()
            .and_then(|()| answer.read_to_end(&mut text))
            .map_err(ReplayError::system("read the driver's answer"))?;
        Ok(match serde_json::from_slice(&text) {
            Ok(Answer::Done(outcome)) => Ended::Done(outcome, page.and_then(|page| high_water(&page))),
            Ok(Answer::Failed(why)) => Ended::Failed(why),
            Err(_) => Ended::Failed(format!("{}{}", how(status), tail(output))),
        })
    }

    fn command(&self, stack: &Stack, handed: [RawFd; 3], padding: u32) -> Command {
        let mut command = Command::new(&self.driver);
        command.args(handed.map(|descriptor| descriptor.to_string()));
        for name in ["LD_PRELOAD", "LD_AUDIT", "HEAPTOLL_STATS", "HEAPTOLL_RECORD"] {
            command.env_remove(name);
        }
        if !stack.preload.is_empty() {
            let objects: Vec<&OsStr> = stack.preload.iter().map(|object| object.as_os_str()).collect();
            command.env("LD_PRELOAD", objects.join(OsStr::new(" ")));
        }
        command.envs(stack.environment.iter().map(|(name, value)| (name, value)));
        command.env("HEAPTOLL_PADDING", "x".repeat(padding as usize));
        // SAFETY: the closure calls only setpgid, prctl and fcntl, which are async-signal-safe, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                // A group of its own, so that Ctrl-C reaches us alone; and an end when we end.
                libc::setpgid(0, 0);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                for descriptor in handed {
                    libc::fcntl(descriptor, libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
        command
    }
}

/// A descriptor that can be read when the child has ended; none before Linux 5.3.
fn end_of(child: u32) -> Option<OwnedFd> {
    // SAFETY: pidfd_open takes plain numbers; the child has not been waited for, so the number is still its own.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    // SAFETY: pidfd_open returned this descriptor just now, so nothing else owns it.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

/// Sleeps until the driver has ended or the time is over.
fn wait_for(end: Option<&OwnedFd>, longest: Duration) {
    let Some(end) = end else { return std::thread::sleep(longest) };
    let mut poll = libc::pollfd { fd: end.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` is one live local pollfd, and the count is 1.
    unsafe { libc::poll(&mut poll, 1, longest.as_millis() as i32) };
}

fn high_water(page: &StatsPage) -> Option<u64> {
    let slots = page.read().ok()?;
    slots.iter().filter(|slot| slot.kind == WriterKind::Manager).map(|slot| slot.mapped_high_bytes).max()
}

fn how(status: std::process::ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, Some(code)) => format!("the driver ended with status {code} before it was done"),
        (None, None) => "the driver ended before it was done".into(),
    }
}

/// The end of the output, without surrounding white space.
fn tail(mut output: File) -> String {
    let mut text = Vec::new();
    let length = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let read = output
        .seek(SeekFrom::Start(length.saturating_sub(TAIL as u64)))
        .and_then(|_| output.take(TAIL as u64).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    match (read, text.trim()) {
        (Err(_), _) | (_, "") => String::new(),
        (Ok(_), text) => format!("; it wrote: {text}"),
    }
}
