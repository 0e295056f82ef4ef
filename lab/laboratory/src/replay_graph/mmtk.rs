//! `heaptoll-mmtk`, from the tool's side: a process that makes a trace with pointers ready, and one for each replay
//! under a collector of MMTk.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use heaptoll_moving_answers::{
    ByAccessor, Caches, PAGE, Prepared, Replayed, Simulated, SimulatedRequest, plans,
};
use serde::de::DeserializeOwned;

use heaptoll_replay::child::{self, End};
use heaptoll_replay::error::ReplayError;

/// How every process of a study is started.
#[derive(Debug, Clone)]
pub struct Mmtk<'a> {
    /// The program.
    pub program: PathBuf,
    /// Threads of the collector.
    pub collector_threads: u32,
    /// Whether the user has cancelled.
    pub interrupt: &'a AtomicBool,
    /// Longest that a process may take.
    pub timeout: Duration,
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered<T> {
    /// With an answer.
    Done(T),
    /// Without one: why.
    Failed(String),
    /// The user cancelled it.
    Interrupted,
}

impl Mmtk<'_> {
    /// Makes a trace ready: `into` is the file that replays read.
    ///
    /// # Errors
    /// The program is missing; the system gives no process or no file.
    pub fn prepare(
        &self,
        trace: &Path,
        into: &Path,
        memory_limit_bytes: u64,
    ) -> Result<Answered<Prepared>, ReplayError> {
        let mut command = Command::new(&self.program);
        command.arg("prepare").arg(trace).arg(into).arg(memory_limit_bytes.to_string());
        self.answer(command)
    }

    /// Replays what was made ready under a plan, in a heap of so many bytes; `check` compares what each collection kept
    /// with the trace.
    ///
    /// # Errors
    /// See [`Mmtk::prepare`].
    pub fn replay(
        &self,
        ready: &Path,
        plan: &str,
        heap_bytes: u64,
        check: bool,
    ) -> Result<Answered<Replayed>, ReplayError> {
        let mut command = Command::new(&self.program);
        command.arg("replay").arg(ready);
        command.args([plan, &heap_bytes.to_string(), &self.collector_threads.to_string()]);
        command.arg(if check { "check" } else { "unchecked" });
        self.answer(command)
    }

    /// Replays with the caches of a machine (JSON), collecting whenever so many bytes were allocated, too; 0: only when
    /// the heap is full.
    ///
    /// # Errors
    /// See [`Mmtk::prepare`].
    pub fn simulate(
        &self,
        ready: &Path,
        plan: &str,
        heap_bytes: u64,
        machine: &str,
        collect_every_bytes: u64,
    ) -> Result<Answered<Replayed>, ReplayError> {
        let mut command = Command::new(&self.program);
        command.arg("simulate").arg(ready);
        command.args([plan, &heap_bytes.to_string(), &self.collector_threads.to_string(), machine]);
        command.arg(collect_every_bytes.to_string());
        self.answer(command)
    }

    fn answer<T: DeserializeOwned>(&self, mut command: Command) -> Result<Answered<T>, ReplayError> {
        if !self.program.is_file() {
            return Err(ReplayError::Missing {
                what: "the program that replays traces with pointers (heaptoll-mmtk)",
                path: self.program.clone(),
            });
        }
        // In memory: a full temporary folder shall not take the reason away.
        let file = || {
            let made = rustix::fs::memfd_create("heaptoll-answer", rustix::fs::MemfdFlags::CLOEXEC);
            made.map(File::from).map_err(|error| ReplayError::system("make a file in memory")(error.into()))
        };
        let (mut answer, messages) = (file()?, file()?);
        let copy = |file: &File| file.try_clone().map_err(ReplayError::system("make a file for the output"));
        command.stdin(Stdio::null()).stdout(copy(&answer)?).stderr(copy(&messages)?);
        child::apart(&mut command, vec![]);
        let status = match child::run(&mut command, self.interrupt, self.timeout)? {
            End::Interrupted => return Ok(Answered::Interrupted),
            End::TimedOut => return Ok(Answered::Failed(child::over_time(self.timeout))),
            End::Exited(status) => status,
        };
        let mut text = Vec::new();
        answer
            .seek(SeekFrom::Start(0))
            .and_then(|_| answer.read_to_end(&mut text))
            .map_err(ReplayError::system("read the answer of heaptoll-mmtk"))?;
        Ok(match serde_json::from_slice(&text) {
            Ok(found) if status.success() => Answered::Done(found),
            // It states its reason itself.
            _ if status.code() == Some(1) => Answered::Failed(reason(messages)),
            _ => Answered::Failed(child::why(status, messages)),
        })
    }
}

/// The message with which the program ended.
fn reason(mut messages: File) -> String {
    let mut text = String::new();
    let read = messages.seek(SeekFrom::Start(0)).and_then(|_| messages.read_to_string(&mut text));
    let text = text.trim();
    match read {
        Ok(_) if !text.is_empty() => text.strip_prefix("heaptoll-mmtk: ").unwrap_or(text).to_owned(),
        _ => "heaptoll-mmtk ended without a reason".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program of this text is seen to answer.
    fn answered(script: &str, timeout: Duration, interrupted: bool) -> Answered<Prepared> {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("mmtk");
        heaptoll_scratch::write_executable(&program, &format!("#!/bin/sh\n{script}\n")).expect("writes");
        let interrupt = AtomicBool::new(interrupted);
        let mmtk = Mmtk { program, collector_threads: 1, interrupt: &interrupt, timeout };
        mmtk.prepare(Path::new("a.graph"), Path::new("ready"), 1 << 20).expect("starts")
    }

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_reason_that_the_program_states_is_its_message_and_other_ends_are_named() {
        let stated = answered("echo heaptoll-mmtk: too large >&2; exit 1", LONG, false);
        assert_eq!(stated, Answered::Failed("too large".into()));
        let Answered::Failed(why) = answered("echo lost >&2; kill -SEGV $$", LONG, false) else { panic!() };
        assert!(why.contains("signal 11") && why.contains("lost"), "{why}");
        let Answered::Failed(why) = answered("echo nothing", LONG, false) else { panic!() };
        assert!(why.contains("status 0"), "{why}");
    }

    #[test]
    fn one_that_takes_too_long_or_is_cancelled_is_ended() {
        let Answered::Failed(why) = answered("sleep 600", Duration::ZERO, false) else { panic!() };
        assert!(why.contains("--timeout"), "{why}");
        assert_eq!(answered("sleep 600", LONG, true), Answered::Interrupted);
    }

    #[test]
    fn the_arguments_are_those_of_the_program_and_its_answer_is_read() {
        let text = serde_json::to_string(&Prepared { objects: 7, ..Prepared::default() }).expect("JSON");
        let script = format!("test \"$*\" = 'prepare a.graph ready 1048576' && echo '{text}'");
        assert_eq!(
            answered(&script, LONG, false),
            Answered::Done(Prepared { objects: 7, ..Prepared::default() })
        );
    }
}
