//! One driver, from the tool's side: a fresh process with the manager preloaded, given its job, its answer read.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use heaptoll_scratch::Scratch;
use heaptoll_stats_page::{StatsPage, WriterKind};

use crate::child::{self, End};
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
        let (mut job_file, answer, stderr) = (file()?, file()?, file()?);
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
        let mut command = self.command(stack, handed, job.ledger, padding);
        if let Some(page) = &page {
            command.env("HEAPTOLL_STATS", page.path());
        }
        let stdout =
            stderr.try_clone().map_err(ReplayError::system("make a file for the driver's output"))?;
        command.stdin(Stdio::null()).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
        match child::run(&mut command, self.interrupt, self.timeout)? {
            End::Interrupted => Ok(Ended::Interrupted),
            End::TimedOut => Ok(Ended::Failed(child::over_time(self.timeout))),
            End::Exited(status) => self.answer(status, answer, output, page.as_ref()),
        }
    }

    fn answer(
        &self,
        status: ExitStatus,
        mut answer: File,
        output: File,
        page: Option<&StatsPage>,
    ) -> Result<Ended, ReplayError> {
        let mut text = Vec::new();
        answer
            .rewind()
            .and_then(|()| answer.read_to_end(&mut text))
            .map_err(ReplayError::system("read the driver's answer"))?;
        Ok(match serde_json::from_slice(&text) {
            Ok(Answer::Done(outcome)) => Ended::Done(outcome, page.and_then(high_water)),
            Ok(Answer::Failed(why)) => Ended::Failed(why),
            Err(_) => Ended::Failed(child::why(status, output)),
        })
    }

    fn command(&self, stack: &Stack, handed: [RawFd; 3], also: Option<RawFd>, padding: u32) -> Command {
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
        child::apart(&mut command, handed.into_iter().chain(also).collect());
        command
    }
}

fn high_water(page: &StatsPage) -> Option<u64> {
    let slots = page.read().ok()?;
    slots.iter().filter(|slot| slot.kind == WriterKind::Manager).map(|slot| slot.mapped_high_bytes).max()
}
